# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as people read them. What was not measured is a dash, never a zero."""

from datetime import UTC, datetime
from typing import Final

MISSING: Final = "–"
_STEP: Final = 1000.0
_PREFIXES: Final = ("", "k", "M", "G", "T", "P")
_GIBIBYTE: Final = 1024.0**3


def label(state: str, cause: str) -> str:
    """`starved: host cpu`."""
    text = f"{state}: {cause}" if cause else state
    return text.replace("_", " ")


def css_class(colour_name: str) -> str:
    """The class of an entry of the palette."""
    return "c-" + colour_name.replace(" ", "-").replace("_", "-")


def percent(ratio: float | None) -> str:
    """`37 %`; what is above zero never shows as zero."""
    if ratio is None:
        return MISSING
    return "<1 %" if 0 < ratio < 0.005 else f"{ratio * 100:.0f} %"  # noqa: PLR2004 what rounds to nothing


def flow(bytes_per_s: float | None) -> str:
    """`2.4 GB/s`."""
    if bytes_per_s is None:
        return MISSING
    number, prefix = bytes_per_s, 0
    while number >= _STEP and prefix < len(_PREFIXES) - 1:
        number, prefix = number / _STEP, prefix + 1
    shown = f"{number:.1f}" if prefix and number < 100 else f"{number:.0f}"  # noqa: PLR2004 three digits are enough
    return f"{shown} {_PREFIXES[prefix]}B/s"


def latency(duration_s: float | None) -> str:
    """`0.8 ms`, `16 ms`, `2.1 s`."""
    if duration_s is None:
        return MISSING
    if duration_s >= 1:
        return f"{duration_s:.1f} s"
    number = duration_s * 1000
    return f"{number:.0f} ms" if number >= 10 else f"{number:.1f} ms"  # noqa: PLR2004 two digits are enough


def age(duration_s: float | None) -> str:
    """`3 s`, `4 min`, `2 h`."""
    if duration_s is None:
        return "never"
    if duration_s < 100:  # noqa: PLR2004 up to there seconds read well
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 6000 else f"{duration_s / 3600:.0f} h"  # noqa: PLR2004 as above


def moment(time_s: float) -> str:
    """A time of day that does not change while it is looked at."""
    return f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(value: float | None, unit: str) -> str:
    """A whole number with its unit."""
    return f"{value:.0f} {unit}" if value is not None else MISSING


def memory(used: int | None, total: int | None) -> str:
    """`67 of 80 GiB`."""
    if used is None or total is None:
        return MISSING
    return f"{used / _GIBIBYTE:.0f} of {total / _GIBIBYTE:.0f} GiB"


def evidence(value: float, unit: str) -> str:
    """A value of any unit."""
    if unit == "ratio":
        return percent(value)
    if unit == "seconds":
        return latency(value)
    if unit == "bytes_per_second":
        return flow(value)
    return f"{value:.4g} {unit}".rstrip()
