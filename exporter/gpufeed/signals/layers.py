# SPDX-License-Identifier: Apache-2.0
"""The layers of a node: what the most loaded device of each carries, of what it can, and how many GPUs that feeds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpufeed.model.balance import Layer, LayerCapacity, LayerName
from gpufeed.model.fabric import IbCounters
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.ids import GpuKey, StorageKey
from gpufeed.model.state import GpuTotals
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.affinity import fabric_ports
from gpufeed.signals.baselines import port_name, target_name
from gpufeed.signals.capacity import LINK_ACHIEVABLE, nvlink_capacity, pcie_capacity, storage_capacity
from gpufeed.signals.timeline import Timeline
from gpufeed.signals.view import View
from gpufeed.signals.window import LENGTH_NS, Window
from gpufeed.units import seconds

DEMAND_MIN: Final = 0.01
"""Of a capacity: from less than this nothing is foretold."""


class Carried(NamedTuple):
    """Bytes that a device moved in its busier direction, in so many seconds, up to a moment."""

    amount: float
    length_s: float
    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is remembered of one device."""

    until_ns: int
    demand: Window = field(default_factory=Window)
    rate: float = 0.0  # when last seen
    counters: tuple[float, float] | None = None  # where it is read as two totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Loads of all devices; seconds of the layers; GPUs that worked."""

    loads: Mapping[tuple[LayerName, str], Load] = field(default_factory=dict)
    busy_s: Mapping[LayerName, float] = field(default_factory=dict)
    useful: Window = field(default_factory=Window)
    results: Mapping[LayerName, Layer] = field(default_factory=dict)


def fold(
    previous: Layers, view: View, totals: Mapping[GpuKey, GpuTotals], now_ns: int, *, useful_s: float, length_s: float
) -> Layers:
    """The layers `length_s` seconds later; `useful_s`: GPU-seconds of work in them."""
    loads: dict[tuple[LayerName, str], Load] = {}
    capacities: dict[tuple[LayerName, str], LayerCapacity | None] = {}
    for name, device, line, capacity in _lines(view):
        before = previous.loads.get((name, device))
        loads[name, device] = _loaded(before, _carried(line, name, before), now_ns)
        capacities[name, device] = capacity
    for key, total in totals.items():
        record = view.records.get(key.uuid)
        if key.is_instance or record is None:
            continue
        before = previous.loads.get(("pcie", key.uuid))
        loads["pcie", key.uuid] = _by_totals(before, total, now_ns)
        capacities["pcie", key.uuid] = pcie_capacity(key.uuid, view)
    useful = previous.useful.after(now_ns, useful_s, length_s)
    return _summed(previous, loads, capacities, useful, length_s)


def _lines(view: View) -> Iterator[tuple[LayerName, str, Timeline, LayerCapacity | None]]:
    """Every device that has a timeline, and its capacity."""
    ports = {limit.port: limit.bytes_per_s for limit in fabric_ports(view)}
    for (kind, subject), line in view.timelines.items():
        if kind is NvlinkTotals and isinstance(subject, GpuKey) and not subject.is_instance:
            yield "nvlink", subject.uuid, line, nvlink_capacity(subject.uuid, view)
        elif kind is IbCounters and subject in ports:
            rate = ports[subject]
            yield "fabric", port_name(subject), line, LayerCapacity(LINK_ACHIEVABLE * rate, "spec") if rate else None
        elif kind is StorageCounters and isinstance(subject, StorageKey):
            yield "storage_read", target_name(subject), line, storage_capacity(subject, "read", view)
            yield "storage_write", target_name(subject), line, storage_capacity(subject, "write", view)


_DIRECTIONS: Final[Mapping[LayerName, tuple[str, ...]]] = {
    "nvlink": ("receive", "transmit"),
    "fabric": ("receive", "transmit"),
    "storage_read": ("read",),
    "storage_write": ("write",),
}


def _carried(line: Timeline, name: LayerName, before: Load | None) -> Carried | None:
    """What the segments say that have not been counted; None: there is none."""
    since_ns = before.until_ns if before is not None else 0
    amount = length_s = 0.0
    for began_ns, ended_ns, values in reversed(line):
        if ended_ns <= since_ns:
            break
        rates = [values[direction] for direction in _DIRECTIONS[name] if direction in values]
        if rates:
            part_s = seconds(ended_ns - max(began_ns, since_ns))
            amount += max(rates) * part_s
            length_s += part_s
    return Carried(amount, length_s, line[-1].ended_ns) if length_s > 0 else None


def _loaded(before: Load | None, carried: Carried | None, now_ns: int) -> Load:
    if carried is None:
        return before if before is not None else Load(until_ns=now_ns)
    demand = (before.demand if before is not None else Window()).after(now_ns, carried.amount, carried.length_s)
    return Load(until_ns=carried.until_ns, demand=demand, rate=carried.amount / carried.length_s)


def _by_totals(before: Load | None, total: GpuTotals, now_ns: int) -> Load:
    """Bytes over PCIe are totals that the server keeps itself: they never fall."""
    now = (total.pcie_receive_bytes or 0.0, total.pcie_transmit_bytes or 0.0)
    if before is None or before.counters is None or now_ns <= before.until_ns:
        return Load(until_ns=now_ns, counters=now)
    length_s = seconds(now_ns - before.until_ns)
    amount = max(0.0, *(new - old for new, old in zip(now, before.counters, strict=True)))
    return Load(
        until_ns=now_ns, demand=before.demand.after(now_ns, amount, length_s), rate=amount / length_s, counters=now
    )


def _summed(
    previous: Layers,
    loads: Mapping[tuple[LayerName, str], Load],
    capacities: Mapping[tuple[LayerName, str], LayerCapacity | None],
    useful: Window,
    length_s: float,
) -> Layers:
    """By layer: the device that is nearest to its capacity; where none has any, the one that carries most."""
    busy_s = dict(previous.busy_s)
    results: dict[LayerName, Layer] = {}
    for name in dict.fromkeys(name for name, _ in loads):
        devices = [(load, capacities[key], key[1]) for key, load in loads.items() if key[0] == name]
        shares = [load.rate / capacity.bytes_per_s for load, capacity, _ in devices if capacity is not None]
        busy_s[name] = busy_s.get(name, 0.0) + min(1.0, max(shares, default=0.0)) * length_s
        known = [(load.demand.mean, capacity, device) for load, capacity, device in devices]
        measured = [(mean, capacity, device) for mean, capacity, device in known if mean is not None]
        if measured:
            demand, capacity, device = max(measured, key=_loadedness)
            results[name] = Layer(
                device=device,
                busy_s=busy_s[name],
                demand_bytes_per_s=demand,
                capacity=capacity,
                gpus_supportable=_supportable(demand, capacity, useful.mean),
            )
    return Layers(loads=loads, busy_s=busy_s, useful=useful, results=results)


def _loadedness(of: tuple[float, LayerCapacity | None, str]) -> tuple[bool, float]:
    demand, capacity, _ = of
    return (capacity is not None, demand / capacity.bytes_per_s if capacity is not None else demand)


def _supportable(demand: float, capacity: LayerCapacity | None, useful: float | None) -> float | None:
    """GPUs that could work all the time at this many bytes per second of work. Never from a learned capacity."""
    if capacity is None or capacity.origin == "learned" or not useful:
        return None
    load = demand / capacity.bytes_per_s
    return useful / load if load >= DEMAND_MIN else None


SLOT_NS: Final = LENGTH_NS // 60
"""Layers and stragglers are looked at this often: sooner than timelines forget."""
