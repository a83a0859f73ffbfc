# SPDX-License-Identifier: Apache-2.0
"""Kinds of values that are more than their type: addresses, regular expressions, paths, names.

A check takes the decoded value and raises ValueError with what was expected, as the end of a sentence.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Meta

from gpufeed.config.duration import Duration
from gpufeed.config.pattern import check_pattern

MAX_PORT: Final = 65_535
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_ALERT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_SOURCE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, `[IPv6]:PORT` or `:PORT` (every address). Raises ValueError."""
    if "://" in text:
        raise ValueError("expected HOST:PORT; schemes such as vsock:// are not served")
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > MAX_PORT:
        raise ValueError("expected HOST:PORT, such as 0.0.0.0:9937 or [::1]:9937")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host:
        raise ValueError("expected an IPv6 address in brackets, such as [::1]:9937")
    return host, int(port)


def between(low: str, high: str) -> Callable[[Duration], None]:
    """A check that a duration lies within bounds, both included."""
    least, most = Duration.parse(low), Duration.parse(high)

    def check(value: Duration) -> None:
        if not least <= value <= most:
            raise ValueError(f"expected a duration from {low} to {high}")

    return check


def _absolute(text: str) -> None:
    if not text.startswith("/"):
        raise ValueError("expected an absolute path")


def _url(text: str) -> None:
    try:
        parts = urlsplit(text)
        complete = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        complete = False
    if not complete:
        raise ValueError("expected a URL such as http://127.0.0.1:9093")


def _http_path(text: str) -> None:
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]+", text) or text.startswith(("/-/", "/api/")):
        raise ValueError("expected a path such as /metrics, and none below /-/ or /api/")


def _shape(pattern: re.Pattern[str], expected: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        if pattern.match(text) is None:
            raise ValueError(f"expected {expected}")

    return check


RESERVED_ALERT_LABELS: Final = frozenset(
    {"alertname", "severity", "layer", "action", "gpu", "uuid", "device", "port", "kind", "target", "check", "class"}
)
"""What an alert says of itself: a site's label of that name would make another alert of it."""


def _alert_label(text: str) -> None:
    _shape(_LABEL_NAME, "a label name: letters, digits and _")(text)
    if text in RESERVED_ALERT_LABELS or text.startswith("__"):
        raise ValueError(f"expected a label that alerts do not set themselves, as they do {text}")


def _check(function: Callable[[Any], object]) -> Meta:
    return Meta(extra={"check": function})


Address = Annotated[str, _check(parse_address)]
Regex = Annotated[str, _check(check_pattern)]
AbsolutePath = Annotated[str, _check(_absolute)]
Url = Annotated[str, _check(_url)]
HttpPath = Annotated[str, _check(_http_path)]
AlertLabel = Annotated[str, _check(_alert_label)]
LabelName = Annotated[str, _check(_shape(_LABEL_NAME, "a label name: letters, digits and _"))]
AlertName = Annotated[str, _check(_shape(_ALERT_NAME, "an alert name such as GpuLost"))]
SourceName = Annotated[str, _check(_shape(_SOURCE_NAME, "the name of an entry point, such as my_source"))]
