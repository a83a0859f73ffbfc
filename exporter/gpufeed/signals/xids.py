# SPDX-License-Identifier: Apache-2.0
"""XIDs counted per GPU, class and code: each once, though the driver and the kernel log both report it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from gpufeed.health.xid_catalogue import XidWord, classify
from gpufeed.model.frame import Frame, FrameTime, XidEvent
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import GpuRecord, XidTotals
from gpufeed.units import NS_PER_S

CLASSES: Final[tuple[XidWord, ...]] = get_args(XidWord)
TWIN_NS: Final = 5 * NS_PER_S
"""Within this the driver's and the kernel log's report of the same code are the same event."""
WAITING_MAX: Final = 64
"""Events kept that cannot be judged yet: their GPU is not known, or it is not known what was counted before."""


class Report(NamedTuple):
    """A counted report whose twin has not come yet."""

    uuid: GpuUuid
    xid: int
    origin: Literal["nvml", "kernel_log"]
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Xids:
    """Totals by GPU, and what they are counted from.

    `cutoff_ns`: the kernel log keeps what happened before; what is older was counted then, or is history.
    """

    cutoff_ns: int
    totals: Mapping[GpuUuid, XidTotals] = field(default_factory=dict)
    reports: tuple[Report, ...] = ()
    homeless: tuple[XidEvent, ...] = ()
    log_sequence: int = -1  # of the last record of the kernel log: a probe that is replaced reads it all again
    history: tuple[XidEvent, ...] = ()  # older than the cutoff: judged again if what was saved says an earlier one


def fold(previous: Xids, frame: Frame, records: Mapping[GpuUuid, GpuRecord]) -> Xids:
    """The totals after `frame`. Every GPU of `records` has all classes, at 0 from the start."""
    new, log_sequence = _unread(frame, previous.log_sequence)
    events = (*previous.homeless, *new)
    missing = [uuid for uuid in records if uuid not in previous.totals]
    if not events and not missing:
        return previous
    totals = {**previous.totals, **{uuid: XidTotals(by_class=dict.fromkeys(CLASSES, 0)) for uuid in missing}}
    reports = list(previous.reports)
    homeless, history = [], list(previous.history)
    for event in events:
        uuid = _home(event, records)
        if uuid is None:
            homeless.append(event)
            continue
        is_history = event.origin == "kernel_log" and event.at_ns <= previous.cutoff_ns
        if is_history:
            history.append(event)
        is_new = not is_history and not _pair(reports, uuid, event)
        totals[uuid] = _counted(totals[uuid], event, frame.time, amount=int(is_new))
    newest_ns = frame.time.monotonic_ns
    return Xids(
        cutoff_ns=previous.cutoff_ns,
        totals=totals,
        reports=tuple(report for report in reports if newest_ns - report.at_ns <= 2 * TWIN_NS),
        homeless=tuple(homeless[-WAITING_MAX:]),
        log_sequence=log_sequence,
        history=tuple(history[-WAITING_MAX:]),
    )


def restored(now: Xids, saved: Mapping[GpuUuid, XidTotals], saved_at_ns: int) -> Xids:
    """`now` with what an earlier life of the daemon, in this boot, had counted until `saved_at_ns` (monotonic).

    Events of the kernel log between then and our start have been counted by nobody: they are put back to be.
    """
    totals = {uuid: _sum(saved[uuid], now.totals.get(uuid)) for uuid in saved}
    return Xids(
        cutoff_ns=min(now.cutoff_ns, saved_at_ns),
        totals={**now.totals, **totals},
        reports=now.reports,
        log_sequence=now.log_sequence,
        homeless=(*now.homeless, *(event for event in now.history if event.at_ns > saved_at_ns))[-WAITING_MAX:],
        history=(),
    )


def _unread(frame: Frame, log_sequence: int) -> tuple[list[XidEvent], int]:
    """Events of the frame without records of the log that were read before, and the last record now."""
    found = []
    for event in frame.events:
        if not isinstance(event, XidEvent) or (event.sequence is not None and event.sequence <= log_sequence):
            continue
        found.append(event)
        log_sequence = log_sequence if event.sequence is None else event.sequence
    return found, log_sequence


def _home(event: XidEvent, records: Mapping[GpuUuid, GpuRecord]) -> GpuUuid | None:
    if event.uuid is not None:
        return event.uuid if event.uuid in records else None
    slot = _slot(event.pci_bus_id)
    for uuid, record in records.items():
        if slot and record.identity is not None and _slot(record.identity.pci_bus_id) == slot:
            return uuid
    return None


def _slot(bus_id: str | None) -> str:
    """The slot of a PCI address, which the kernel log writes without its function."""
    return (bus_id or "").lower().partition(".")[0]


def _pair(reports: list[Report], uuid: GpuUuid, event: XidEvent) -> bool:
    """Whether the other origin has reported this one; else it is remembered for its twin."""
    for position, report in enumerate(reports):
        is_same = report.uuid == uuid and report.xid == event.xid and report.origin != event.origin
        if is_same and abs(report.at_ns - event.at_ns) <= TWIN_NS:
            del reports[position]
            return True
    reports.append(Report(uuid, event.xid, event.origin, event.at_ns))
    return False


def _counted(totals: XidTotals, event: XidEvent, time: FrameTime, amount: int) -> XidTotals:
    word = classify(event.xid).word
    wall_s = (time.wall_ns - (time.monotonic_ns - event.at_ns)) / NS_PER_S
    by_xid = totals.by_xid
    if amount:
        by_xid = {**by_xid, event.xid: by_xid.get(event.xid, 0) + amount}
    return XidTotals(
        by_class={**totals.by_class, word: totals.by_class.get(word, 0) + amount},
        by_xid=by_xid,
        last_wall_s={**totals.last_wall_s, event.xid: max(wall_s, totals.last_wall_s.get(event.xid, wall_s))},
    )


def _sum(saved: XidTotals, now: XidTotals | None) -> XidTotals:
    if now is None:
        return saved
    return XidTotals(
        by_class={word: saved.by_class.get(word, 0) + now.by_class.get(word, 0) for word in CLASSES},
        by_xid={xid: saved.by_xid.get(xid, 0) + now.by_xid.get(xid, 0) for xid in {*saved.by_xid, *now.by_xid}},
        last_wall_s={**saved.last_wall_s, **now.last_wall_s},
    )
