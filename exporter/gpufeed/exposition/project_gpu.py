# SPDX-License-Identifier: Apache-2.0
"""GPUs: what they are and hold, whether they answer, what the driver reads off them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gpufeed.catalogue import gpu, gpu_limits
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import family, flag, slice_family, text
from gpufeed.health.in_use import is_gpu_in_use
from gpufeed.model.gpu import (
    DriverInfo,
    GpmInterval,
    GpuFast,
    GpuIdentity,
    GpuProcesses,
    GpuSlow,
    PcieBytes,
    TemperatureLimit,
)
from gpufeed.model.state import NodeState
from gpufeed.units import seconds

_DOWN: Final = frozenset({"lost", "reset_required", "hung", "missing"})
_GONE: Final = frozenset({"lost", "missing"})


def families(state: NodeState) -> Iterator[Family]:
    """Inventory, then readings."""
    yield from _inventory(state)
    yield from _memory_and_use(state)
    yield from _power_and_clocks(state)
    yield from _pcie(state)
    yield from _switches(state)
    yield from _temperature_limits_and_modes(state)


def _inventory(state: NodeState) -> Iterator[Family]:
    records = rows.records(state)
    yield Family(gpu.GPU_INFO, [((*labels, *_description(found)), 1) for labels, found in _identities(state)])
    yield Family(
        gpu.DRIVER_INFO,
        [
            ((text(driver.driver_version), text(driver.nvml_version), text(driver.cuda_version)), 1)
            for driver in (held.sample for held in state.latest(DriverInfo).values())
        ],
    )
    yield Family(gpu.GPUS_EXPECTED, [((origin,), count) for origin, count in state.gpus_expected.items()])
    if state.gpus or state.gpus_expected or state.latest(DriverInfo):
        present = sum(record.condition not in _GONE for _, record in records)
        yield Family(gpu.GPUS_PRESENT, [((), present)])
    yield family(gpu.GPU_UP, records, lambda record: int(record.condition not in _DOWN))
    now_ns = state.time.monotonic_ns
    yield family(gpu.GPU_IN_USE_RECENTLY, records, lambda record: int(is_gpu_in_use(record, now_ns)))


def _memory_and_use(state: NodeState) -> Iterator[Family]:
    fast = rows.boards(state, GpuFast)
    yield family(gpu.GPU_UTILIZATION_RATIO, fast, lambda sample: sample.utilization_ratio)
    yield family(gpu.GPU_MEMORY_UTILIZATION_RATIO, fast, lambda sample: sample.memory_utilization_ratio)
    slow = rows.boards(state, GpuSlow)
    yield family(gpu.GPU_ENCODER_UTILIZATION_RATIO, slow, lambda sample: sample.encoder_utilization_ratio)
    yield family(gpu.GPU_DECODER_UTILIZATION_RATIO, slow, lambda sample: sample.decoder_utilization_ratio)
    sliced = rows.board_or_instances(state, GpuFast)
    yield slice_family(gpu.GPU_MEMORY_TOTAL_BYTES, sliced, lambda sample: sample.memory_total_bytes)
    yield slice_family(gpu.GPU_MEMORY_USED_BYTES, sliced, lambda sample: sample.memory_used_bytes)
    yield slice_family(gpu.GPU_MEMORY_RESERVED_BYTES, sliced, lambda sample: sample.memory_reserved_bytes)
    yield slice_family(gpu.GPU_MEMORY_FREE_BYTES, sliced, lambda sample: sample.memory_free_bytes)
    slices = rows.board_or_instances(state, GpuSlow)
    yield slice_family(gpu.GPU_BAR1_TOTAL_BYTES, slices, lambda sample: sample.bar1_total_bytes)
    yield slice_family(gpu.GPU_BAR1_USED_BYTES, slices, lambda sample: sample.bar1_used_bytes)
    processes = rows.board_or_instances(state, GpuProcesses)
    yield slice_family(gpu.GPU_PROCESSES, processes, lambda sample: len(sample.processes))


def _power_and_clocks(state: NodeState) -> Iterator[Family]:
    fast = rows.boards(state, GpuFast)
    yield family(gpu.GPU_POWER_WATTS, fast, lambda sample: sample.power_w)
    yield family(gpu.GPU_POWER_INSTANT_WATTS, fast, lambda sample: sample.power_instant_w)
    yield from _limits(state, fast)
    yield family(gpu.GPU_ENERGY_JOULES_TOTAL, fast, lambda sample: sample.energy_j)
    die = family(gpu.GPU_TEMPERATURE_CELSIUS, _named(fast, "gpu"), lambda sample: sample.temperature_c)
    memory = family(gpu.GPU_TEMPERATURE_CELSIUS, _named(fast, "memory"), lambda sample: sample.memory_temperature_c)
    yield Family(gpu.GPU_TEMPERATURE_CELSIUS, die.rows + memory.rows)
    yield from _clocks(state, fast)
    yield from _clock_events(fast)


def _limits(state: NodeState, fast: rows.Labelled[GpuFast]) -> Iterator[Family]:
    limit, identities = gpu.GPU_POWER_LIMIT_WATTS, _identities(state)
    yield _joined(
        family(limit, _named(fast, "enforced"), lambda sample: sample.power_limit_enforced_w),
        family(limit, _named(identities, "default"), lambda found: found.power_limit_default_w),
        family(limit, _named(identities, "min"), lambda found: found.power_limit_min_w),
        family(limit, _named(identities, "max"), lambda found: found.power_limit_max_w),
    )


def _clocks(state: NodeState, fast: rows.Labelled[GpuFast]) -> Iterator[Family]:
    now, slow = gpu.GPU_CLOCK_HERTZ, rows.boards(state, GpuSlow)
    yield _joined(
        family(now, _named(fast, "graphics"), lambda sample: sample.graphics_clock_hz),
        family(now, _named(fast, "sm"), lambda sample: sample.sm_clock_hz),
        family(now, _named(fast, "memory"), lambda sample: sample.memory_clock_hz),
        family(now, _named(slow, "video"), lambda sample: sample.video_clock_hz),
    )
    highest, identities = gpu.GPU_CLOCK_MAX_HERTZ, _identities(state)
    yield _joined(
        family(highest, _named(identities, "sm"), lambda found: found.sm_clock_max_hz),
        family(highest, _named(identities, "memory"), lambda found: found.memory_clock_max_hz),
        family(highest, _named(identities, "graphics"), lambda found: found.graphics_clock_max_hz),
        family(highest, _named(identities, "video"), lambda found: found.video_clock_max_hz),
    )


def _clock_events(fast: rows.Labelled[GpuFast]) -> Iterator[Family]:
    yield Family(
        gpu.GPU_CLOCK_EVENT_SECONDS_TOTAL,
        [
            ((*labels, reason), seconds(held_ns))
            for labels, sample in fast
            for reason, held_ns in (sample.clock_event_ns or {}).items()
        ],
    )
    yield Family(
        gpu.GPU_CLOCK_EVENT_ACTIVE,
        [
            ((*labels, reason), int(bool(sample.clock_events & bit)))
            for labels, sample in fast
            if sample.clock_events is not None
            for reason, bit in gpu.CLOCK_EVENT_BITS.items()
        ],
    )


def _pcie(state: NodeState) -> Iterator[Family]:
    fresh = rows.slices(state, rows.fresh_totals(state, PcieBytes, GpmInterval))
    totals = [(labels[:2], total) for labels, total in fresh if not labels[2]]
    yield family(gpu.GPU_PCIE_RECEIVE_BYTES_TOTAL, totals, lambda total: total.pcie_receive_bytes)
    yield family(gpu.GPU_PCIE_TRANSMIT_BYTES_TOTAL, totals, lambda total: total.pcie_transmit_bytes)
    slow = rows.boards(state, GpuSlow)
    yield family(gpu.GPU_PCIE_LINK_GENERATION, slow, lambda sample: sample.pcie_generation)
    yield family(gpu.GPU_PCIE_LINK_WIDTH, slow, lambda sample: sample.pcie_width)
    identities = _identities(state)
    yield family(gpu.GPU_PCIE_LINK_GENERATION_MAX, identities, lambda found: found.pcie_generation_max)
    yield family(gpu.GPU_PCIE_LINK_WIDTH_MAX, identities, lambda found: found.pcie_width_max)
    yield family(gpu.GPU_PCIE_REPLAYS_TOTAL, slow, lambda sample: sample.pcie_replays)


def _switches(state: NodeState) -> Iterator[Family]:
    slow = rows.boards(state, GpuSlow)
    yield family(gpu.GPU_PERSISTENCE_ENABLED, slow, lambda sample: flag(sample.persistence_enabled))
    yield family(gpu.GPU_ECC_ENABLED, slow, lambda sample: flag(sample.ecc_enabled))
    yield family(gpu.GPU_MIG_ENABLED, slow, lambda sample: flag(sample.mig_enabled))
    actions = Family(gpu.GPU_RECOVERY_ACTION)
    for labels, sample in slow:
        if sample.recovery_action is not None:
            actions.rows.append(((*labels, "none"), int(sample.recovery_action == 0)))
            if sample.recovery_action != 0:
                actions.rows.append(((*labels, _action(sample.recovery_action)), 1))
    yield actions


def _temperature_limits_and_modes(state: NodeState) -> Iterator[Family]:
    slow = rows.boards(state, GpuSlow)
    yield family(gpu_limits.GPU_TEMPERATURE_MARGIN_CELSIUS, slow, lambda sample: sample.temperature_margin_c)
    identities = _identities(state)
    yield Family(
        gpu_limits.GPU_TEMPERATURE_LIMIT_CELSIUS,
        [((*labels, name), at) for labels, found in identities for name, at in _items(found.temperature_limits_c)],
    )
    yield Family(
        gpu_limits.GPU_TEMPERATURE_LIMIT_MARGIN_CELSIUS,
        [
            ((*labels, name), at)
            for labels, found in identities
            for name, at in _items(found.temperature_limit_margins_c)
        ],
    )
    yield family(gpu_limits.GPU_PERFORMANCE_STATE, slow, lambda sample: sample.performance_state)
    yield family(gpu_limits.GPU_COMPUTE_MODE, slow, lambda sample: sample.compute_mode)


def _items(limits: Mapping[TemperatureLimit, float] | None) -> Iterable[tuple[TemperatureLimit, float]]:
    return () if limits is None else limits.items()


def _identities(state: NodeState) -> rows.Labelled[GpuIdentity]:
    return [(labels, record.identity) for labels, record in rows.records(state) if record.identity is not None]


def _description(found: GpuIdentity) -> tuple[str, ...]:
    return (
        text(found.name),
        text(found.serial),
        text(found.pci_bus_id),
        text(found.minor),
        text(found.architecture),
        text(found.part_number),
        text(found.vbios),
        text(found.inforom),
        text(found.numa_node),
        text(found.module_id),
    )


def _joined(first: Family, *others: Family) -> Family:
    """One family of the rows of several, which are of one metric."""
    return Family(first.definition, [row for part in (first, *others) for row in part.rows])


def _named(things: rows.Labelled[rows.T], word: str) -> rows.Labelled[rows.T]:
    return [((*labels, word), thing) for labels, thing in things]


def _action(code: int) -> str:
    return gpu.RECOVERY_ACTIONS[code] if 0 <= code < len(gpu.RECOVERY_ACTIONS) else f"code_{code}"
