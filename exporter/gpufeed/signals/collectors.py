# SPDX-License-Identifier: Apache-2.0
"""How each collector fares: its last success, its last duration, its errors by reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpufeed.model.frame import Failure, Frame, Reading
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.model.state import CollectorRecord
from gpufeed.units import NS_PER_S, seconds

NOT_AN_ERROR = frozenset({"absent", "unsupported", "released"})
"""There is nothing to read: that is known and not counted as an error, though it is no success either."""

Failing = Mapping[CollectorName, frozenset[tuple[LaneId, GroupName]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectors:
    """Records, and which lanes' groups of each gave nothing when they were last read."""

    records: Mapping[CollectorName, CollectorRecord] = field(default_factory=dict)
    failing: Failing = field(default_factory=dict)


def fold(previous: Collectors, frame: Frame, stuck: frozenset[LaneId]) -> Collectors:
    """The collectors after `frame`. A collector is successful while all its lanes are."""
    if not (frame.readings or frame.failures or frame.withdrawn or stuck or frame.gap):
        return previous
    records, failing = dict(previous.records), dict(previous.failing)
    for name, reading in _newest(frame).items():
        records[name] = _read(records, reading, frame)
    for failure in frame.failures:
        records[failure.collector] = _failed(records, failure)
    _mark(failing, frame)
    stuck_names = {status.collector for status in frame.lanes if status.lane in stuck}
    for name, record in records.items():
        is_successful = not (failing.get(name) or name in stuck_names or frame.gap)
        if record.is_successful != is_successful:
            records[name] = replace(record, is_successful=is_successful)
    return Collectors(records=records, failing=failing)


def _newest(frame: Frame) -> Mapping[CollectorName, Reading]:
    """The last reading of each collector that succeeded."""
    failed = {(failure.lane, failure.group) for failure in frame.failures}
    return {
        reading.collector: reading
        for reading in frame.readings
        if reading.samples or (reading.lane, reading.group) not in failed
    }


def _mark(failing: dict[CollectorName, frozenset[tuple[LaneId, GroupName]]], frame: Frame) -> None:
    """Which lanes' groups give nothing after `frame`."""
    gave = set()
    for reading in frame.readings:
        key = (reading.lane, reading.group)
        if reading.samples:
            gave.add(key)
        here = failing.setdefault(reading.collector, frozenset())
        if key in here:
            failing[reading.collector] = here - {key}
    for failure in frame.failures:
        key = (failure.lane, failure.group)
        if key not in gave:
            failing[failure.collector] = failing.get(failure.collector, frozenset()) | {key}
    if frame.withdrawn:
        for name, where in failing.items():
            failing[name] = frozenset(key for key in where if key[0] not in frame.withdrawn)


def _failed(records: Mapping[CollectorName, CollectorRecord], failure: Failure) -> CollectorRecord:
    record = records.get(failure.collector, CollectorRecord())
    if failure.reason in NOT_AN_ERROR:
        return record
    count = record.errors.get(failure.reason, 0) + 1
    return replace(record, errors={**record.errors, failure.reason: count})


def _read(records: Mapping[CollectorName, CollectorRecord], reading: Reading, frame: Frame) -> CollectorRecord:
    age_ns = frame.time.monotonic_ns - reading.ended_ns
    return replace(
        records.get(reading.collector, CollectorRecord()),
        last_success_ns=reading.ended_ns,
        last_success_wall_s=(frame.time.wall_ns - age_ns) / NS_PER_S,
        duration_s=seconds(max(0, reading.ended_ns - reading.began_ns)),
    )
