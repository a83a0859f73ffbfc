# SPDX-License-Identifier: Apache-2.0
"""TLS settings to a context, and what Python's ssl cannot keep, refused by name: never weakened in silence."""

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from gpufeed.web.access.schema import Tls

_SUITES: Final[Mapping[str, str]] = {
    f"TLS_ECDHE_{auth}_WITH_{go}": f"ECDHE-{auth}-{ours}"
    for auth in ("ECDSA", "RSA")
    for go, ours in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
    )
}
_SUITES_1_3: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
_CURVES: Final = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_POLICIES: Final = {
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_UNVERIFIED: Final = frozenset({"RequestClientCert", "RequireAnyClientCert", "RequireClientCert"})


def is_on(tls: Tls) -> bool:
    """Whether TLS is asked for."""
    given = (tls.cert, tls.cert_file, tls.key, tls.key_file, tls.client_ca, tls.client_ca_file, tls.client_auth_type)
    return any(given)


def refusals(tls: Tls) -> Iterator[tuple[str, str]]:
    """Every (key, why it cannot be served as written)."""
    if not (tls.cert or tls.cert_file):
        yield "cert_file", "is missing: TLS needs a certificate"
    if not (tls.key or tls.key_file):
        yield "key_file", "is missing: TLS needs the certificate's key"
    if tls.client_auth_type in _UNVERIFIED:
        text = "asks for certificates without verifying them, which Python's ssl cannot; use RequireAndVerifyClientCert"
        yield "client_auth_type", f"{tls.client_auth_type} {text}"
    has_authorities = bool(tls.client_ca or tls.client_ca_file)
    if has_authorities and tls.client_auth_type in {"", "NoClientCert"}:
        yield "client_ca_file", "is given, but client_auth_type asks no client for a certificate"
    if tls.client_auth_type in _POLICIES and not has_authorities:
        yield "client_ca_file", f"is missing: {tls.client_auth_type} needs authorities to verify against"
    if tls.client_allowed_sans and tls.client_auth_type != "RequireAndVerifyClientCert":
        yield "client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert"
    yield from _bad_parameters(tls)


def context(tls: Tls, folder: Path) -> ssl.SSLContext:
    """A new context for settings without refusals. Reads files below `folder`. Raises OSError and ValueError."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = _VERSIONS[tls.min_version]
    made.maximum_version = _VERSIONS[tls.max_version]
    made.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if tls.prefer_server_cipher_suites:
        made.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    suites = [_SUITES[name] for name in tls.cipher_suites if name in _SUITES]
    made.set_ciphers(":".join(suites) if suites else "ECDHE+AESGCM:ECDHE+CHACHA20")
    for curve in tls.curve_preferences:
        made.set_ecdh_curve(_CURVES[curve])
    with _named(tls.cert_file, tls.cert, folder) as certificate, _named(tls.key_file, tls.key, folder) as private:
        made.load_cert_chain(certificate.path, private.path, password=_no_password)
    if tls.client_auth_type in _POLICIES:
        with _named(tls.client_ca_file, tls.client_ca, folder) as authorities:
            made.load_verify_locations(cafile=authorities.path)
        made.verify_mode = _POLICIES[tls.client_auth_type]
    return made


def files(tls: Tls, folder: Path) -> tuple[Path, ...]:
    """The files that a context is made from."""
    return tuple(folder / name for name in (tls.cert_file, tls.key_file, tls.client_ca_file) if name)


def names(certificate: Mapping[str, object] | None) -> frozenset[str]:
    """The alternative names (DNS, mail, address, URI) of a verified certificate, as `getpeercert` gives it."""
    found = (certificate or {}).get("subjectAltName", ())
    pairs = found if isinstance(found, tuple) else ()
    return frozenset(value for kind, value in pairs if kind in {"DNS", "email", "IP Address", "URI"})


def _bad_parameters(tls: Tls) -> Iterator[tuple[str, str]]:
    for name, version in (("min_version", tls.min_version), ("max_version", tls.max_version)):
        if version not in _VERSIONS:
            yield name, f"{version} is not served: TLS12 and TLS13 are"
    if (tls.min_version, tls.max_version) == ("TLS13", "TLS12"):
        yield "max_version", "is below min_version"
    for suite in tls.cipher_suites:
        if suite not in _SUITES and suite not in _SUITES_1_3:
            yield "cipher_suites", f"{suite} is no suite that is served; known: {', '.join(sorted(_SUITES))}"
    if len(tls.curve_preferences) > 1:
        yield "curve_preferences", "more than one curve cannot be set from Python; name one, or none for the defaults"


def _no_password() -> str:
    """Asked for where a key is encrypted: without this, a prompt would wait at the terminal."""
    raise ValueError("the key is encrypted; a daemon has nobody to ask for its password")


class _named:  # noqa: N801 a context manager in the form of a function
    """A path for the library, which reads files only: the named file, or text of the configuration held in memory."""

    def __init__(self, name: str | None, text: bytes | None, folder: Path) -> None:
        self._fd = -1
        if name:
            self.path = str(folder / name)
            return
        self._fd = os.memfd_create("gpufeed-pem", os.MFD_CLOEXEC)
        os.write(self._fd, text or b"")
        self.path = f"/dev/fd/{self._fd}"

    def __enter__(self) -> "_named":
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
