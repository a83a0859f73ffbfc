# SPDX-License-Identifier: Apache-2.0
"""Raw numbers of NVML as base units, or None for what cannot be a reading. Converted here once, nowhere after.

NVML answers "not available" with all bits set in places, and sick devices have given absurd numbers with success:
a value outside what hardware can be is no value. The limits are far from every real product on purpose.
"""

from typing import Final

from gpufeed.units import KIBIBYTE, MEBIBYTE, MEGABYTE, MEGAHERTZ

_BLANK_32: Final = 0xFFFF_FFFF
_BLANK_64: Final = 0xFFFF_FFFF_FFFF_FFFF
_MAX_W: Final = 100_000.0
_MAX_HZ: Final = 20_000_000_000.0
_MAX_MEMORY_BYTES: Final = 1 << 50
_MAX_BYTES_PER_S: Final = 1e14
_MIN_C: Final = -100.0
_MAX_C: Final = 250.0
_PERCENT: Final = 100.0
_PERCENT_SLACK: Final = 1.0  # measured windows differ a little from the time they are divided by
_MILLI: Final = 1000.0
_BER_MANTISSA_SHIFT: Final = 8
_NVLINK_VERSIONS: Final = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}


def count(raw: float) -> int | None:
    """A cumulative count of anything."""
    return None if raw == _BLANK_32 else counter_bytes(raw)


def counter_bytes(raw: float) -> int | None:
    """A byte counter, which may stand at any 32-bit value. All bits of 64 set are none."""
    return int(raw) if 0 <= raw < _BLANK_64 else None  # the comparison also drops NaN


def counter_bytes_of_kib(raw: float) -> int | None:
    """KiB, cumulative, as bytes."""
    kib = count(raw)
    return None if kib is None else counter_bytes(kib * KIBIBYTE)


def memory_bytes(raw: float) -> int | None:
    """A size of memory in bytes."""
    return int(raw) if 0 <= raw <= _MAX_MEMORY_BYTES else None


def ratio_of_percent(raw: float) -> float | None:
    """Percent as a ratio of 0 to 1."""
    if not 0 <= raw <= _PERCENT + _PERCENT_SLACK:
        return None
    return min(raw / _PERCENT, 1.0)


def watts_of_mw(raw: float) -> float | None:
    """Milliwatts as watts."""
    watts = raw / _MILLI
    return watts if 0 <= watts <= _MAX_W else None


def joules_of_mj(raw: float) -> float | None:
    """Millijoules, cumulative, as joules."""
    millijoules = count(raw)
    return None if millijoules is None else millijoules / _MILLI


def hertz_of_mhz(raw: float) -> float | None:
    """Megahertz as hertz."""
    hertz = float(raw) * MEGAHERTZ
    return hertz if 0 <= hertz <= _MAX_HZ else None


def celsius(raw: float) -> float | None:
    """Degrees Celsius, which may be negative."""
    return float(raw) if _MIN_C <= raw <= _MAX_C else None


def bytes_per_s_of_mbps(raw: float) -> float | None:
    """MByte/s, which NVML spells MBPS, as bytes per second."""
    return _rate(raw * MEGABYTE)


def bytes_per_s_of_mib(raw: float) -> float | None:
    """MiB/s as bytes per second."""
    return _rate(raw * MEBIBYTE)


def bit_error_ratio(raw: int) -> float:
    """Mantissa × 10^-exponent, which NVML packs into twelve bits (NVML_NVLINK_ERROR_COUNTER_BER_GET)."""
    mantissa, exponent = raw >> _BER_MANTISSA_SHIFT & 0xF, raw & 0xFF
    return float(f"{mantissa}e-{exponent}")


def nvlink_version(number: int) -> str | None:
    """Version of the protocol by nvmlNvlinkVersion_t."""
    return _NVLINK_VERSIONS.get(number)


def _rate(bytes_per_s: float) -> float | None:
    return float(bytes_per_s) if 0 <= bytes_per_s <= _MAX_BYTES_PER_S else None
