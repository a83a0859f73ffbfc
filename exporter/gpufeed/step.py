# SPDX-License-Identifier: Apache-2.0
"""The fold: a node and a frame in, the node after it out. Pure; this file only composes.

Every part is a file of its own in `signals` or `health` and sees what the parts before it made. The order is the
order below: what was said, what is fresh, which GPUs there are, what accumulates, what is healthy, where time went.
"""

from dataclasses import dataclass, field, replace

from gpufeed.health import fold as health
from gpufeed.health.latches import Latches
from gpufeed.health.latches import acknowledge as acknowledged
from gpufeed.model.frame import Frame, FrameTime
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import NodeState, ProbeRecord
from gpufeed.signals import (
    attribution,
    balance,
    baselines,
    collectors,
    cpu_time,
    flaps,
    integrals,
    intensity,
    inventory,
    lanes,
    meters,
    ownership,
    reports,
    samples,
    xids,
)
from gpufeed.signals.attribution import Attributions
from gpufeed.signals.balance import Balance
from gpufeed.signals.baselines import Baselines
from gpufeed.signals.capacity import capacities
from gpufeed.signals.collectors import Collectors
from gpufeed.signals.faults import Signs
from gpufeed.signals.flaps import Flaps
from gpufeed.signals.integrals import Integrals
from gpufeed.signals.inventory import Around, Inventory
from gpufeed.signals.meters import Timelines
from gpufeed.signals.ownership import Owned
from gpufeed.signals.reports import Reports
from gpufeed.signals.saved import Saved, decoded, encoded, is_same_boot
from gpufeed.signals.settings import Capacity, Settings
from gpufeed.signals.view import View
from gpufeed.signals.xids import Xids

__all__ = ["Capacity", "Memory", "Node", "Settings", "acknowledge", "forget", "initial", "restore", "save", "step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the next step needs of this one and nobody else does."""

    settings: Settings
    heard_ns: int  # monotonic time of the last frame that was the probe's own
    probe_since_ns: int  # when the present probe was first heard
    timelines: Timelines = field(default_factory=dict)
    inventory: Inventory = field(default_factory=Inventory)
    integrals: Integrals = field(default_factory=Integrals)
    collectors: Collectors = field(default_factory=Collectors)
    flaps: Flaps = field(default_factory=Flaps)
    xids: Xids
    baselines: Baselines = field(default_factory=Baselines)
    owned: Owned = field(default_factory=Owned)
    attributions: Attributions = field(default_factory=Attributions)
    balance: Balance = field(default_factory=Balance)
    reports: Reports = field(default_factory=Reports)
    latches: Latches = field(default_factory=Latches)
    saved: Saved | None = None  # found, but not known yet whether it is of this boot


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The node at one moment: `state` for everybody, `memory` for the next step."""

    state: NodeState
    memory: Memory


def initial(settings: Settings, time: FrameTime) -> Node:
    """A node of which nothing is known yet. What the kernel log says of before `time` is history."""
    now_ns = time.monotonic_ns
    memory = Memory(settings=settings, heard_ns=now_ns, probe_since_ns=now_ns, xids=Xids(cutoff_ns=now_ns))
    return Node(state=NodeState(time=time), memory=memory)


def step(node: Node, frame: Frame) -> Node:
    """The node after `frame`."""
    return _judged(_counted(_recalled(_observed(node, frame)), frame))


def acknowledge(node: Node, uuid: GpuUuid) -> Node:
    """Somebody has seen the latched fault of a GPU and wants it cleared. It latches again if it is still there."""
    return replace(node, memory=replace(node.memory, latches=acknowledged(node.memory.latches, uuid)))


def forget(node: Node, uuid: GpuUuid) -> Node:
    """A GPU was taken out on purpose: it is no longer expected, nor shown."""
    verdicts, latches = health.forget(node.state.verdicts, node.memory.latches, uuid)
    return Node(
        state=replace(node.state, verdicts=verdicts),
        memory=replace(node.memory, latches=latches, inventory=inventory.forget(node.memory.inventory, uuid)),
    )


def save(node: Node) -> bytes:
    """What has to outlive the daemon. Never raises."""
    memory = node.memory
    return encoded(
        node.state,
        flaps=memory.flaps,
        slots=memory.inventory.slots,
        learned=memory.baselines,
        latches=memory.latches,
    )


def restore(node: Node, data: bytes | None) -> Node:
    """With what an earlier life saved. Anything that cannot be read is as if it had not been there. Never raises."""
    saved = decoded(data)
    if saved is None:
        return node
    return _recalled(replace(node, memory=replace(node.memory, saved=saved)))


def _observed(node: Node, frame: Frame) -> Node:
    """What the frame says, and which of it is fresh."""
    state, memory = node.state, node.memory
    is_up, now_ns = not frame.gap, frame.time.monotonic_ns
    is_new_probe = is_up and (not state.probe.is_up or frame.probe_pid != state.probe.pid)
    probe_since_ns = now_ns if is_new_probe else memory.probe_since_ns
    lanes_now = lanes.fold(state.lanes, frame, memory.heard_ns, probe_since_ns)
    stuck = lanes.stuck_lanes(lanes_now, now_ns)
    timelines = meters.observe(memory.timelines, state.samples, frame.readings, now_ns)
    collected = collectors.fold(memory.collectors, frame, stuck)
    return Node(
        state=replace(
            state,
            time=frame.time,
            lanes=lanes_now,
            samples=samples.fold(state.samples, frame, stuck),
            collectors=collected.records,
            inputs={**state.inputs, **{(said.input, said.scope): said for said in frame.inputs}},
            probe=ProbeRecord(
                is_up=is_up,
                pid=frame.probe_pid if is_up else state.probe.pid,
                cost=frame.cost or state.probe.cost,
                frames=state.probe.frames + is_up,
                silent_ns=0 if is_up else max(0, now_ns - memory.heard_ns),
            ),
        ),
        memory=replace(
            memory,
            heard_ns=now_ns if is_up else memory.heard_ns,
            probe_since_ns=probe_since_ns,
            timelines=timelines,
            baselines=baselines.fold(memory.baselines, memory.timelines, timelines),
            collectors=collected,
        ),
    )


def _counted(node: Node, frame: Frame) -> Node:
    """Which GPUs there are, and what is added up of them."""
    state, memory = node.state, node.memory
    found = inventory.fold(
        memory.inventory,
        Around(frame=frame, samples=state.samples, lanes=state.lanes, settings=memory.settings),
    )
    totals = integrals.fold(memory.integrals, frame, found.records)
    ports = flaps.fold(memory.flaps, frame.readings)
    counted = xids.fold(memory.xids, frame, found.records)
    owned = ownership.fold(memory.owned, state.samples, found.records)
    return Node(
        state=replace(
            state,
            gpus=found.records,
            gpus_expected=inventory.expected(found, state.samples, memory.settings),
            gpu_totals=totals.totals,
            ib_flaps=ports.counts,
            cpu_s=cpu_time.fold(state.cpu_s, state.samples),
            xids=counted.totals,
            ownership=owned.result,
        ),
        memory=replace(memory, inventory=found, integrals=totals, flaps=ports, xids=counted, owned=owned),
    )


def _judged(node: Node) -> Node:
    """What is healthy, and where the GPUs' time went."""
    state, memory = node.state, node.memory
    verdicts, latches = health.fold(state.verdicts, state, memory.latches)
    view = View(
        timelines=memory.timelines,
        samples=state.samples,
        records=state.gpus,
        baselines=memory.baselines,
        settings=memory.settings,
    )
    signs = Signs(
        samples=state.samples,
        lanes=state.lanes,
        verdicts=verdicts,
        latched_xids={uuid: latch.xid for uuid, latch in latches.xids.items()},
        inputs=state.inputs,
        is_probe_up=state.probe.is_up,
        now_ns=state.time.monotonic_ns,
        heard_ns=memory.heard_ns,
    )
    attributions = attribution.fold(memory.attributions, view, signs)
    balanced = balance.fold(memory.balance, view, state.gpu_totals, attributions.results, state.time.monotonic_ns)
    peaks = intensity.peak_flops(state.gpus)
    owners = {key.uuid: job for key, job in state.ownership.jobs.items() if not key.is_instance}
    told = reports.fold(memory.reports, state.samples, owners, peaks)
    return Node(
        state=replace(
            state,
            verdicts=verdicts,
            attributions=attributions.results,
            stalls=attributions.stalls,
            layers=balanced.layers.results,
            stragglers=balanced.stragglers.results,
            storage_capacity=capacities(view),
            tensor_intensity=intensity.tensor_intensity(state.gpus, state.samples),
            peak_flops=peaks,
            progress=told.results,
        ),
        memory=replace(memory, latches=latches, attributions=attributions, balance=balanced, reports=told),
    )


def _recalled(node: Node) -> Node:
    """With what was saved, as soon as it is known whether it is of this boot."""
    state, memory = node.state, node.memory
    saved = memory.saved
    same = None if saved is None else is_same_boot(saved, state)
    if saved is None or same is None:
        return node
    return replace(
        node,
        memory=replace(
            memory,
            saved=None,
            inventory=replace(memory.inventory, slots=saved.slots_beside(memory.inventory.slots)),
            baselines=saved.baselines_beside(memory.baselines),
            flaps=saved.flaps_beside(memory.flaps) if same else memory.flaps,
            xids=xids.restored(memory.xids, saved.xids, saved.time.monotonic_ns) if same else memory.xids,
            latches=saved.latches_beside(memory.latches, is_same_boot=same),
        ),
    )
