# SPDX-License-Identifier: Apache-2.0
"""From request headers to what is sent: text 0.0.4 or OpenMetrics 1.0, gzip or plain.

Source: RFC 9110 §12.5.1 and §12.5.3. Prometheus prefers OpenMetrics and takes either.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final


class Format(Enum):
    """An exposition format; the value is its content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


_OPENMETRICS_VERSIONS: Final = frozenset({"", "1.0.0", "0.0.1"})
_TEXT_VERSIONS: Final = frozenset({"", "0.0.4"})


def exposition_format(accept: str) -> Format:
    """The format an Accept header weighs most; text where it names none that we write. At equal weight OpenMetrics."""
    weights = {Format.OPENMETRICS: 0.0, Format.TEXT: 0.0}
    for name, parameters, weight in _preferences(accept):
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in _OPENMETRICS_VERSIONS:
            weights[Format.OPENMETRICS] = max(weights[Format.OPENMETRICS], weight)
        elif name == "text/plain" and version in _TEXT_VERSIONS:
            weights[Format.TEXT] = max(weights[Format.TEXT], weight)
    best = weights[Format.OPENMETRICS]
    return Format.OPENMETRICS if best > 0 and best >= weights[Format.TEXT] else Format.TEXT


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header allows gzip: by name, or by `*` where it is not named."""
    weights = {name: weight for name, _, weight in _preferences(accept_encoding)}
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _preferences(header: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for part in header.split(","):
        name, *pieces = (piece.strip() for piece in part.split(";"))
        pairs = (piece.partition("=") for piece in pieces)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        yield name.lower(), parameters, _weight(parameters.get("q", "1"))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0
