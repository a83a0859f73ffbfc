# SPDX-License-Identifier: Apache-2.0
"""Which GPUs there are, which there should be, and how each is found: answering, lost, hung, missing."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpufeed.model.frame import Frame, LaneStatus
from gpufeed.model.gpu import DriverInfo, GpuCondition, GpuFast, GpuIdentity, GpuProcesses, PciGpus
from gpufeed.model.host import JobTasks
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import GpuRecord, Held
from gpufeed.signals.lanes import is_stuck
from gpufeed.signals.samples import Samples
from gpufeed.signals.settings import Settings
from gpufeed.units import MEBIBYTE

HELD_MIN_BYTES = 600 * MEBIBYTE
HELD_MIN_RATIO = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """GPUs remembered, the board last found in each PCI slot, and since when a GPU has no lane (monotonic)."""

    records: Mapping[GpuUuid, GpuRecord] = field(default_factory=dict)
    slots: Mapping[str, GpuIdentity] = field(default_factory=dict)
    laneless_since_ns: Mapping[GpuUuid, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is known of the node at the time of a frame."""

    frame: Frame
    samples: Samples
    lanes: Mapping[LaneId, LaneStatus]
    settings: Settings


def fold(previous: Inventory, around: Around) -> Inventory:
    """The inventory after a frame. Records outlive their GPUs; only a board put into the same slot ends one."""
    records, slots = dict(previous.records), dict(previous.slots)
    for identity, lane in _identities(around.frame):
        _identify(records, slots, identity, lane, around.frame.time.monotonic_ns)
    for condition, lane in _conditions(around.frame):
        _settle(records, condition, lane)
    for status in around.lanes.values():
        if status.gpu is not None and is_stuck(status, around.frame.time.monotonic_ns):
            _hang(records, status)
    laneless = previous.laneless_since_ns
    if not around.frame.gap:
        laneless = _search(records, slots, laneless, around)
    for uuid, record in records.items():
        records[uuid] = _used(record, around)
    return Inventory(records=records, slots=slots, laneless_since_ns=laneless)


def expected(inventory: Inventory, samples: Samples, settings: Settings) -> Mapping[str, int]:
    """How many GPUs there should be, by who says so: config, inventory, pci. Whoever does not know is absent."""
    counts: dict[str, int] = {}
    if settings.expected_gpus is not None:
        counts["config"] = settings.expected_gpus
    if inventory.slots:
        counts["inventory"] = len(inventory.slots)
    for held in samples.get(PciGpus, {}).values():
        counts["pci"] = len(held.sample.bus_ids)
    return counts


def forget(inventory: Inventory, uuid: GpuUuid) -> Inventory:
    """Without a GPU that was taken out on purpose."""
    return Inventory(
        records={key: record for key, record in inventory.records.items() if key != uuid},
        slots={slot: identity for slot, identity in inventory.slots.items() if identity.gpu.uuid != uuid},
        laneless_since_ns={key: since for key, since in inventory.laneless_since_ns.items() if key != uuid},
    )


def is_held(uuid: GpuUuid, samples: Samples) -> bool | None:
    """Whether somebody holds the GPU: a process, or memory beyond what an unused one shows; None: not known."""
    found = is_part_held(GpuKey(uuid), samples)
    if any(uuid in held.sample.gpus for held in samples.get(JobTasks, {}).values()):
        return True
    return found


def is_part_held(key: GpuKey, samples: Samples) -> bool | None:
    """The same of a board or of a GPU instance of it, by what the driver says of it alone."""
    processes = processes_of(key, samples)
    fast = samples.get(GpuFast, {}).get(key)
    used = fast.sample.memory_used_bytes if fast is not None else None
    total = fast.sample.memory_total_bytes if fast is not None else None
    if processes or holds_memory(used, total):
        return True
    return None if processes is None and used is None else False


def processes_of(key: GpuKey, samples: Samples) -> int | None:
    """Processes on a board, or on one GPU instance of it; None: no list was read."""
    lists: Mapping[Hashable, Held[Any]] = samples.get(GpuProcesses, {})
    found = [held.sample for held in lists.values() if held.sample.gpu.is_within(key)]
    return sum(len(sample.processes) for sample in found) if found else None


def holds_memory(used_bytes: float | None, total_bytes: float | None) -> bool:
    """Whether more memory is in use than a board shows that nobody uses."""
    return used_bytes is not None and used_bytes > max(HELD_MIN_BYTES, HELD_MIN_RATIO * (total_bytes or 0))


def _identities(frame: Frame) -> Iterator[tuple[GpuIdentity, LaneId]]:
    for reading in frame.readings:
        for sample in reading.samples:
            if isinstance(sample, GpuIdentity) and not sample.gpu.is_instance:
                yield sample, reading.lane


def _conditions(frame: Frame) -> Iterator[tuple[GpuCondition, LaneId]]:
    for reading in frame.readings:
        for sample in reading.samples:
            if isinstance(sample, GpuCondition):
                yield sample, reading.lane


def _identify(
    records: dict[GpuUuid, GpuRecord], slots: dict[str, GpuIdentity], found: GpuIdentity, lane: LaneId, now_ns: int
) -> None:
    uuid, slot = found.gpu.uuid, found.pci_bus_id
    record = records.get(uuid)
    if record is None:
        records[uuid] = GpuRecord(
            uuid=uuid, index=found.index, lane=lane, identity=found, condition="ok", first_seen_ns=now_ns
        )
    else:
        condition = "ok" if record.condition == "missing" else record.condition
        records[uuid] = replace(record, index=found.index, lane=lane, identity=found, condition=condition)
    if slot is None:
        return
    before = slots.get(slot)
    if before is not None and before.gpu.uuid != uuid:
        records.pop(before.gpu.uuid, None)
    for other in [key for key, identity in slots.items() if identity.gpu.uuid == uuid and key != slot]:
        del slots[other]
    slots[slot] = found


def _settle(records: dict[GpuUuid, GpuRecord], said: GpuCondition, lane: LaneId) -> None:
    """What a lane says of its GPU. One that does not answer may have no uuid to say: its lane and index name it.

    An index may be another's by now: a GPU that is missing has none.
    """
    for uuid, record in records.items():
        by_index = record.index == said.index and record.lane == lane and record.condition != "missing"
        if uuid == said.uuid or (said.uuid is None and by_index):
            records[uuid] = replace(record, index=said.index, lane=lane, condition=said.condition, detail=said.detail)


def _hang(records: dict[GpuUuid, GpuRecord], status: LaneStatus) -> None:
    for uuid, record in records.items():
        by_index = record.index == status.gpu and record.lane == status.lane
        if (uuid == status.uuid or (status.uuid is None and by_index)) and record.condition != "hung":
            records[uuid] = replace(record, condition="hung", detail=status.call)


def _search(
    records: dict[GpuUuid, GpuRecord],
    slots: Mapping[str, GpuIdentity],
    laneless: Mapping[GpuUuid, int],
    around: Around,
) -> Mapping[GpuUuid, int]:
    """GPUs without a lane: missing once the driver has answered for a while, and before that only unread."""
    now_ns = around.frame.time.monotonic_ns
    identities = {identity.gpu.uuid: identity for identity in slots.values()}
    identities.update((uuid, record.identity) for uuid, record in records.items() if record.identity is not None)
    unread = [uuid for uuid in identities if uuid not in records or records[uuid].lane not in around.lanes]
    driver_answers = bool(around.samples.get(DriverInfo))
    since = {uuid: laneless.get(uuid, now_ns) if driver_answers else now_ns for uuid in unread}
    for uuid in unread:
        if now_ns - since[uuid] >= around.settings.missing_after_ns:
            records[uuid] = _missing(records.get(uuid), identities[uuid], now_ns)
        elif not driver_answers and uuid in records:
            records[uuid] = _unread(records[uuid])
    return since


def _missing(record: GpuRecord | None, identity: GpuIdentity, now_ns: int) -> GpuRecord:
    if record is not None:
        return record if record.condition in {"lost", "missing"} else replace(record, condition="missing", detail="")
    return GpuRecord(
        uuid=identity.gpu.uuid,
        index=identity.index,
        lane=LaneId(""),
        identity=identity,
        condition="missing",
        first_seen_ns=now_ns,
    )


def _unread(record: GpuRecord) -> GpuRecord:
    if record.condition in {"lost", "missing", "released"}:
        return record
    return replace(record, condition="error", detail="the driver does not answer")


def _used(record: GpuRecord, around: Around) -> GpuRecord:
    count = processes_of(GpuKey(record.uuid), around.samples)
    used_at_ns = record.in_use_at_ns
    if is_held(record.uuid, around.samples):
        used_at_ns = around.frame.time.monotonic_ns
    if count == record.processes and used_at_ns == record.in_use_at_ns:
        return record
    return replace(record, processes=count, in_use_at_ns=used_at_ns)
