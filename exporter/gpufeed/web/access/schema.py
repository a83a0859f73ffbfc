# SPDX-License-Identifier: Apache-2.0
"""The keys of the web configuration file: the exporter-toolkit's, with its names and defaults."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from gpufeed.config.mark import key as marked

SECURITY_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Headers that may be set, and their values where not every value is allowed."""

_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_BCRYPT: Final = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}\Z", re.ASCII)

ClientAuth = Literal[
    "",
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "RequireClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
]
Version = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
Curve = Literal["CurveP256", "CurveP384", "CurveP521", "X25519"]


def go_duration_s(text: str) -> float:
    """Seconds of a duration as Go writes it: `1s`, `1m30s`, `1.5h`, `0`. Raises ValueError."""
    parts = list(_PART.finditer(text))
    if text == "0":
        return 0.0
    if not parts or "".join(part.group(0) for part in parts) != text:
        raise ValueError("expected a duration such as 100ms, 1s or 1m30s")
    return sum(float(part.group(1)) * _UNIT_S[part.group(2)] for part in parts)


def _duration(text: str) -> None:
    go_duration_s(text)


def _hash(text: str) -> None:
    if _BCRYPT.match(text) is None:
        raise ValueError("expected a bcrypt hash, as `htpasswd -nBC 10 NAME` prints after the colon")


class Tls(Struct, frozen=True, kw_only=True):
    """`tls_server_config`."""

    cert: Annotated[bytes | None, marked("Our certificate and its chain, PEM.")] = None
    cert_file: Annotated[str | None, marked("The same from a file, which is followed when it changes.")] = None
    key: Annotated[bytes | None, marked("Its key, PEM.", is_secret=True)] = None
    key_file: Annotated[str | None, marked("The same from a file, which is followed when it changes.")] = None
    client_ca: Annotated[bytes | None, marked("Authorities of clients, PEM.")] = None
    client_ca_file: Annotated[str | None, marked("The same from a file, which is followed when it changes.")] = None
    client_auth_type: Annotated[ClientAuth, marked("Whether clients must show a certificate.")] = ""
    client_allowed_sans: Annotated[tuple[str, ...], marked("Names of which a client's certificate must have one.")] = ()
    min_version: Annotated[Version, marked("Lowest version of TLS.")] = "TLS12"
    max_version: Annotated[Version, marked("Highest version of TLS.")] = "TLS13"
    cipher_suites: Annotated[tuple[str, ...], marked("Suites of TLS 1.2, by their names in Go.")] = ()
    curve_preferences: Annotated[tuple[Curve, ...], marked("Elliptic curve of the key exchange.")] = ()
    prefer_server_cipher_suites: Annotated[bool, marked("Our order of suites counts, not the client's.")] = True


class Http(Struct, frozen=True, kw_only=True):
    """`http_server_config`."""

    http2: Annotated[bool, marked("Accepted; HTTP/1.1 is served either way.")] = True
    headers: Annotated[dict[str, str], marked("Security headers of every answer.")] = field(default_factory=dict)


class RateLimit(Struct, frozen=True, kw_only=True):
    """`rate_limit`: of all requests together."""

    interval: Annotated[str, marked("One more request is let through so often; 0: no limit.", check=_duration)] = "0"
    burst: Annotated[int, marked("So many are let through at once.", ge=0)] = 0


class WebConfig(Struct, frozen=True, kw_only=True):
    """The file."""

    tls_server_config: Annotated[Tls, marked("TLS.")] = Tls()
    http_server_config: Annotated[Http, marked("HTTP.")] = Http()
    basic_auth_users: Annotated[
        dict[str, Annotated[str, Meta(extra={"check": _hash, "is_secret": True})]],
        marked("Bcrypt hashes of passwords, by user; none: nobody is asked for one."),
    ] = field(default_factory=dict)
    rate_limit: Annotated[RateLimit, marked("How many requests are answered.")] = RateLimit()
