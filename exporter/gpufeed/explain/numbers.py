# SPDX-License-Identifier: Apache-2.0
"""Numbers with their units, as a person says them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.explain.shape import Number

_WORTH_SAYING: Final = 1.3
_ROUND_FROM: Final = 10
_PHRASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tasks in uninterruptible sleep": "{} of the job's awake threads wait for I/O (D state)",
        "processors of the job in use": "{} of the job's processors in use",
        "busiest thread": "its busiest thread takes {} of one processor",
        "io pressure": "PSI io {}",
        "cpu pressure": "PSI cpu {}",
        "memory pressure": "PSI memory {}",
        "active": "a kernel ran {} of the time",
        "SMs with work": "SMs with work {}",
        "tensor pipes": "tensor pipes {}",
        "device memory": "device memory {}",
        "NVLink of capacity": "NVLink at {} of its capacity",
        "fabric port of rate": "its network port at {} of its rate",
        "SM clock of highest": "SM clock at {} of its highest",
        "power of limit": "power at {} of the way to its limit",
        "PCIe receive of achievable": "PCIe receive at {} of what the link can do",
        "writes": "writes {}",
        "writes of capacity": "writes at {} of capacity",
    }
)


def phrase(of: Number) -> str:
    """`nfs:/data read latency 95 ms, 31× its usual 3 ms`."""
    shown = quantity(of.value, of.unit)
    text = _PHRASES[of.input].format(shown) if of.input in _PHRASES else f"{of.input} {shown}"
    if of.usual and of.unit == "seconds" and of.value >= _WORTH_SAYING * of.usual:
        times = of.value / of.usual
        text += f", {times:.{0 if times >= _ROUND_FROM else 1}f}× its usual {quantity(of.usual, of.unit)}"
    return text


def quantity(value: float, unit: str) -> str:
    """A value with its unit: `61 %`, `95 ms`, `2.4 GB/s`."""
    if unit == "ratio":
        return percent(value)
    if unit == "seconds":
        return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.3g} ms"
    if unit == "hertz":
        return f"{value / 1e6:.0f} MHz"
    if unit == "bytes_per_second":
        for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
            if value >= size:
                return f"{value / size:.3g} {prefix}B/s"
        return f"{value:.0f} B/s"
    return f"{value:.4g} {unit}".rstrip()


def percent(ratio: float) -> str:
    """`61 %`; what is above zero never shows as zero."""
    return "<1 %" if 0 < ratio < 0.005 else f"{ratio * 100:.0f} %"  # noqa: PLR2004 what rounds to nothing


def span(duration_s: float) -> str:
    """`45 s`, `5 min`, `2 h`."""
    if duration_s < 100:  # noqa: PLR2004 up to there seconds read well
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 6000 else f"{duration_s / 3600:.0f} h"  # noqa: PLR2004 as above
