# SPDX-License-Identifier: Apache-2.0
"""From one reading of a thing, and the one before it, to means over the time between: a segment of its timeline."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, cast

from gpufeed.model.fabric import IbCounters, IbErrors
from gpufeed.model.frame import Reading
from gpufeed.model.gpu import GpmInterval, GpuFast, NvlinkTotals
from gpufeed.model.host import HostCpu, JobTasks, Pressure
from gpufeed.model.sample import Sample
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.counters import counted
from gpufeed.signals.samples import Samples
from gpufeed.signals.timeline import Segment, Timeline, extended
from gpufeed.units import NS_PER_S

Values = dict[str, float | None]
Key = tuple[type[Sample], Hashable]
Timelines = Mapping[Key, Timeline]

GAUGE_REACH_NS: Final = NS_PER_S
"""A value of the moment stands for at most this long before it, where the read before is further away than that."""
FORGOTTEN_NS: Final = 60 * NS_PER_S
"""What has not been read for so long is no input any more."""
SLACK: Final = 0.05
"""A ratio may be out of range by so much of rounding; beyond, it is garbage."""
GAUGES: Final = (GpuFast, JobTasks)
"""Samples that have values of the moment; the others are counters, which are exact over any interval."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two readings of one thing, and the seconds between them; `old` is None at the first."""

    old: Any
    new: Any
    apart_s: float

    def rate(self, name: str) -> float | None:
        """Increase of a counter per second, where it is known."""
        if self.old is None or self.apart_s <= 0:
            return None
        step = counted(getattr(self.old, name), getattr(self.new, name))
        return None if step is None else step / self.apart_s

    def ratio_of(self, upper: str, lower: str) -> float | None:
        """Increase of one counter per increase of another: a mean latency, a mean size."""
        if self.old is None:
            return None
        above = counted(getattr(self.old, upper), getattr(self.new, upper))
        below = counted(getattr(self.old, lower), getattr(self.new, lower))
        return above / below if above is not None and below else None


def observe(timelines: Timelines, before: Samples, readings: Iterable[Reading], now_ns: int) -> Timelines:
    """The timelines with what `readings` add; `before` has the reading that each thing had last."""
    forgotten_ns = now_ns - FORGOTTEN_NS
    after = {key: line for key, line in timelines.items() if line and line[-1].ended_ns > forgotten_ns}
    newest: dict[Key, tuple[Sample, int]] = {}
    for reading in readings:
        for sample in reading.samples:
            kind: type[Sample] = type(sample)
            meter = METERS.get(kind)
            if meter is None:
                continue
            key = (kind, sample.subject)
            old = newest.get(key)
            if old is None and (held := before.get(kind, {}).get(sample.subject)) is not None:
                old = (held.sample, held.read_at_ns)
            newest[key] = (sample, reading.ended_ns)
            segment = _segment(meter, sample, reading, old)
            after[key] = extended(after.get(key, ()), segment, now_ns)
    return after


def _segment(
    meter: Callable[[Pair], Values], sample: Sample, reading: Reading, old: tuple[Sample, int] | None
) -> Segment:
    if isinstance(sample, GpmInterval):
        return Segment(sample.began_ns, sample.ended_ns, _known(meter(Pair(None, sample, 0))))
    apart_ns = reading.ended_ns - old[1] if old is not None else 0
    pair = Pair(old[0] if old is not None else None, sample, apart_ns / NS_PER_S)
    reach_ns = apart_ns
    if isinstance(sample, GAUGES) and not 0 < apart_ns <= max(GAUGE_REACH_NS, 2 * reading.period_ns):
        reach_ns = min(GAUGE_REACH_NS, reading.period_ns)
    return Segment(reading.ended_ns - reach_ns, reading.ended_ns, _known(meter(pair)))


def _known(values: Values) -> Mapping[str, float]:
    return {name: value for name, value in values.items() if value is not None and isfinite(value)}


def _ratio(value: float | None) -> float | None:
    """A share of time. What is out of range beyond rounding is garbage and not known."""
    return None if value is None or not -SLACK <= value <= 1 + SLACK else min(1.0, max(0.0, value))


def _gpm(pair: Pair) -> Values:
    new: GpmInterval = pair.new
    return {
        "graphics": _ratio(new.graphics_ratio),
        "sm": _ratio(new.sm_ratio),
        "occupancy": _ratio(new.occupancy_ratio),
        "tensor": _ratio(new.tensor_ratio),
        "dram": _ratio(new.dram_ratio),
        "pcie_receive": new.pcie_receive_bytes_per_s,
        "pcie_transmit": new.pcie_transmit_bytes_per_s,
        "nvlink_receive": new.nvlink_receive_bytes_per_s,
        "nvlink_transmit": new.nvlink_transmit_bytes_per_s,
    }


CLOCK_EVENTS: Final[Mapping[str, tuple[tuple[str, ...], int]]] = MappingProxyType(
    {
        "thermal": (("hw_thermal", "sw_thermal"), 0x40 | 0x20),
        "power_brake": (("hw_power_brake",), 0x80),
        "power_cap": (("sw_power_cap",), 0x4),
    }
)
"""Our three causes: the driver's counters that say so, and the bits of the moment where it counts none."""


def _fast(pair: Pair) -> Values:
    new: GpuFast = pair.new
    values: Values = {
        "utilization": _ratio(new.utilization_ratio),
        "memory_utilization": _ratio(new.memory_utilization_ratio),
        "power": new.power_w,
        "power_limit": new.power_limit_enforced_w,
        "sm_clock": new.sm_clock_hz,
        "memory_used": None if new.memory_used_bytes is None else float(new.memory_used_bytes),
    }
    for cause, (reasons, bits) in CLOCK_EVENTS.items():
        values[cause] = _held_down(pair, reasons, bits)
    return values


def _held_down(pair: Pair, reasons: tuple[str, ...], bits: int) -> float | None:
    """Share of the time in which the clock was held down for one of `reasons`."""
    new: GpuFast = pair.new
    counters: Mapping[str, int] = _counters(new)
    if not any(reason in counters for reason in reasons):
        return None if new.clock_events is None else float(bool(new.clock_events & bits))
    if pair.old is None or pair.apart_s <= 0:
        return None
    old = _counters(pair.old)
    steps = [counted(old.get(reason), counters.get(reason)) for reason in reasons]
    known = [step for step in steps if step is not None]
    return min(1.0, max(known) / NS_PER_S / pair.apart_s) if known else None


def _counters(of: GpuFast) -> Mapping[str, int]:
    return cast("Mapping[str, int]", of.clock_event_ns or {})


def _nvlink(pair: Pair) -> Values:
    return {"receive": pair.rate("receive_bytes"), "transmit": pair.rate("transmit_bytes")}


def _fabric(pair: Pair) -> Values:
    return {
        "receive": pair.rate("receive_bytes"),
        "transmit": pair.rate("transmit_bytes"),
        "wait": pair.rate("transmit_wait_ticks"),
    }


RESENT: Final = ("packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err")
"""Names of the kernel's hw_counters of packets that had to be sent again, of mlx5 and rxe."""


def _fabric_errors(pair: Pair) -> Values:
    """Packets sent again per second. Not `out_of_sequence`: adaptive routing reorders packets that are all there."""
    if pair.old is None or pair.apart_s <= 0:
        return {}
    old: Mapping[str, int] = pair.old.hw_events
    new: Mapping[str, int] = pair.new.hw_events
    steps = [counted(old.get(name), new.get(name)) for name in RESENT]
    known = [step for step in steps if step is not None]
    return {"lost": sum(known) / pair.apart_s} if known else {}


def _storage(pair: Pair) -> Values:
    return {
        "read": pair.rate("read_bytes"),
        "write": pair.rate("write_bytes"),
        "reads": pair.rate("reads"),
        "read_outstanding": pair.rate("read_s"),
        "write_outstanding": pair.rate("write_s"),
        "read_latency": pair.ratio_of("read_s", "reads"),
    }


def _pressure(pair: Pair) -> Values:
    return {"waiting": pair.rate("waiting_s"), "stalled": pair.rate("stalled_s")}


def _tasks(pair: Pair) -> Values:
    new: JobTasks = pair.new
    busiest = None
    if new.busiest_thread_cpu_s is not None and new.busiest_thread_wall_s:
        busiest = new.busiest_thread_cpu_s / new.busiest_thread_wall_s
    return {
        "threads": float(new.threads),
        "running": float(new.running),
        "blocked": float(new.blocked),
        "cores": pair.rate("cpu_s"),
        "busiest": busiest,
        "cpus": None if new.cpus_allowed is None else float(new.cpus_allowed),
    }


def _cpu(pair: Pair) -> Values:
    if pair.old is None or pair.apart_s <= 0:
        return {}
    old: HostCpu = pair.old
    new: HostCpu = pair.new
    busy = [counted(old.seconds.get(mode), new.seconds.get(mode)) or 0.0 for mode in ("user", "nice", "system")]
    return {"cores": sum(busy) / pair.apart_s, "cpus": float(new.cpus)}


METERS: Final[Mapping[type[Sample], Callable[[Pair], Values]]] = MappingProxyType(
    {
        GpmInterval: _gpm,
        GpuFast: _fast,
        NvlinkTotals: _nvlink,
        IbCounters: _fabric,
        IbErrors: _fabric_errors,
        StorageCounters: _storage,
        Pressure: _pressure,
        JobTasks: _tasks,
        HostCpu: _cpu,
    }
)
"""What attribution looks at. Everything else is exported without being measured over time."""
