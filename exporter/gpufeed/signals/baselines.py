# SPDX-License-Identifier: Apache-2.0
"""What is usual here, learned: a few quantiles, each a single number that a person can read and check.

A quantile is followed by small steps in proportion to itself: up by `quantile`, down by `1 - quantile`, whenever a
value lies above or below it. It comes to rest where that share of values is below. Nothing else is kept, so it is
bounded, cannot be poisoned by one wild value, and is harmless when it is not there: until ten minutes of data have
been seen, whatever stands on it says nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp
from types import MappingProxyType
from typing import Final, Literal

from gpufeed.model.fabric import IbCounters
from gpufeed.model.gpu import GpmInterval, GpuFast
from gpufeed.model.ids import GpuKey, IbPortKey, StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.meters import Timelines
from gpufeed.signals.timeline import Segment, mean
from gpufeed.units import seconds

BaselineName = Literal["read_latency", "read_full", "wait_per_byte", "power_idle"]

QUANTILES: Final[Mapping[BaselineName, float]] = MappingProxyType(
    {"read_latency": 0.5, "read_full": 0.9, "wait_per_byte": 0.5, "power_idle": 0.05}
)
TRUSTED_AFTER_S: Final = 600.0
STEP_PER_S: Final = 0.02
"""A quantile can double in about half a minute of values that are all above it."""
MAX_ENTRIES: Final = 2_000
LOWEST, HIGHEST = 1e-12, 1e12
READS_MIN_PER_S: Final = 5.0
TRAFFIC_MIN_BYTES_PER_S: Final = 1e8


@dataclass(frozen=True, slots=True)
class Learned:
    """A quantile as far as it is known, and of how many seconds of data."""

    value: float
    seen_s: float


@dataclass(frozen=True, slots=True)
class Baselines:
    """By name and by the thing they are of, written as text so that they can be saved."""

    entries: Mapping[tuple[BaselineName, str], Learned] = field(default_factory=dict)

    def usual(self, name: BaselineName, of: str) -> float | None:
        """The learned value, once there are ten minutes of data behind it."""
        learned = self.entries.get((name, of))
        return learned.value if learned is not None and learned.seen_s >= TRUSTED_AFTER_S else None


def fold(previous: Baselines, before: Timelines, after: Timelines) -> Baselines:
    """What the segments that `after` has and `before` has not add."""
    entries = dict(previous.entries)
    for key, line in after.items():
        if not line or before.get(key) is line:
            continue
        segment = line[-1]
        kind, subject = key
        if kind is StorageCounters and isinstance(subject, StorageKey):
            _learn_storage(entries, target_name(subject), segment)
        elif kind is IbCounters and isinstance(subject, IbPortKey):
            _learn_port(entries, port_name(subject), segment)
        elif kind is GpmInterval and isinstance(subject, GpuKey) and not subject.is_instance:
            _learn_gpu(entries, subject, segment, after)
    return Baselines(entries)


def nudged(learned: Learned | None, value: float, quantile: float, length_s: float) -> Learned:
    """`learned` after `value` held for `length_s` seconds."""
    value = min(HIGHEST, max(LOWEST, value))
    if learned is None:
        return Learned(value, length_s)
    step = STEP_PER_S * min(length_s, 10.0)
    if value > learned.value:
        moved = min(value, learned.value * exp(step * quantile))
    else:
        moved = max(value, learned.value * exp(-step * (1 - quantile)))
    return Learned(moved, learned.seen_s + length_s)


def target_name(storage: StorageKey) -> str:
    """A storage target in one word: `nfs:/data`."""
    return f"{storage.kind}:{storage.target}"


def port_name(port: IbPortKey) -> str:
    """A fabric port in one word: `mlx5_0/1`."""
    return f"{port.device}/{port.port}"


_Entries = dict[tuple[BaselineName, str], Learned]


def _learn(entries: _Entries, name: BaselineName, of: str, value: float, segment: Segment) -> None:
    key = (name, of)
    if key not in entries and len(entries) >= MAX_ENTRIES:
        del entries[min(entries, key=lambda one: entries[one].seen_s)]  # mounts of pods come and go: the briefest goes
    length_s = max(0.0, seconds(segment.ended_ns - segment.began_ns))
    entries[key] = nudged(entries.get(key), value, QUANTILES[name], length_s)


def _learn_storage(entries: _Entries, of: str, segment: Segment) -> None:
    values = segment.values
    latency = values.get("read_latency")
    if latency is None or values.get("reads", 0.0) < READS_MIN_PER_S:
        return
    _learn(entries, "read_latency", of, latency, segment)
    usual = entries.get(("read_latency", of))
    if usual is None or usual.seen_s < TRUSTED_AFTER_S:
        return
    if values.get("read_outstanding", 0.0) >= FULL_OUTSTANDING and latency >= FULL_LATENCY * usual.value:
        _learn(entries, "read_full", of, values.get("read", 0.0), segment)


FULL_OUTSTANDING, FULL_LATENCY = 4.0, 1.5
"""Reads under way, and their latency over the usual one: beyond both a target gives what it can."""


def _learn_port(entries: _Entries, of: str, segment: Segment) -> None:
    wait, sent = segment.values.get("wait"), segment.values.get("transmit", 0.0)
    if wait is not None and sent >= TRAFFIC_MIN_BYTES_PER_S:
        _learn(entries, "wait_per_byte", of, wait / sent, segment)


def _learn_gpu(entries: _Entries, key: GpuKey, segment: Segment, timelines: Timelines) -> None:
    fast = mean(timelines.get((GpuFast, key), ()), segment.began_ns, segment.ended_ns)
    if segment.values.get("graphics", 1.0) < IDLE_MAX and "power" in fast:
        _learn(entries, "power_idle", key.uuid, fast["power"], segment)


IDLE_MAX: Final = 0.01
