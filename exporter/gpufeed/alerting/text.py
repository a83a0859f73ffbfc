# SPDX-License-Identifier: Apache-2.0
"""PURE. The words of an alert: once as a template for Prometheus, once filled in by ourselves, to the same effect."""

import string
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Final

_PIPES: Final = {
    "percent": "{{ $value | humanizePercentage }}",
    "duration": "{{ $value | humanizeDuration }}",
    "number": '{{ $value | printf "%.4g" }}',
}


def template(text: str) -> str:
    """`text` for Prometheus: `{gpu}` becomes `{{ $labels.gpu }}`, `{value:percent}` a pipe through its formatter."""
    return "".join(
        before + ("" if name is None else _PIPES[form or "number"] if name == "value" else f"{{{{ $labels.{name} }}}}")
        for before, name, form, _ in string.Formatter().parse(text)
    )


def filled(text: str, labels: Mapping[str, str], value: float) -> str:
    """`text` with the labels and the value of one alert, as Prometheus would write it."""
    return "".join(
        before + ("" if name is None else _FORMS[form or "number"](value) if name == "value" else labels.get(name, ""))
        for before, name, form, _ in string.Formatter().parse(text)
    )


def percent(ratio: float) -> str:
    """0.25 as `25%`."""
    return f"{number(ratio * 100)}%"


def duration(length_s: float) -> str:
    """Seconds as `1d 2h 3m 4s`; below a minute with four digits, below a second with a prefix."""
    if length_s == 0 or not isfinite(length_s):
        return "0s" if length_s == 0 else number(length_s)
    sign, left = ("-", -length_s) if length_s < 0 else ("", length_s)
    if left < 1:
        return sign + _small(left)
    whole = int(left)
    days, hours, minutes, seconds = whole // 86_400, whole // 3_600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    if minutes:
        return f"{sign}{minutes}m {seconds}s"
    return f"{sign}{left:.4g}s"


def number(value: float) -> str:
    """Four digits; what is no number as Go spells it."""
    if isfinite(value):
        return f"{value:.4g}"
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


_FORMS: Final[Mapping[str, Callable[[float], str]]] = {"percent": percent, "duration": duration, "number": number}


def _small(length_s: float) -> str:
    for prefix in ("m", "u"):
        length_s *= 1000
        if length_s >= 1:
            return f"{length_s:.4g}{prefix}s"
    return f"{length_s * 1000:.4g}ns"
