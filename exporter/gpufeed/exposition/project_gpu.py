# SPDX-License-Identifier: Apache-2.0
"""GPUs: what they are and hold, whether they answer, what the driver reads off them."""

from collections.abc import Iterator
from typing import Final

from gpufeed.catalogue import gpu
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import family, slice_family, text
from gpufeed.health.in_use import is_gpu_in_use
from gpufeed.model.gpu import DriverInfo, GpmInterval, GpuFast, GpuIdentity, GpuProcesses, GpuSlow, PcieBytes
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
    sliced = rows.board_or_instances(state, GpuFast)
    yield slice_family(gpu.GPU_MEMORY_TOTAL_BYTES, sliced, lambda sample: sample.memory_total_bytes)
    yield slice_family(gpu.GPU_MEMORY_USED_BYTES, sliced, lambda sample: sample.memory_used_bytes)
    yield slice_family(gpu.GPU_MEMORY_RESERVED_BYTES, sliced, lambda sample: sample.memory_reserved_bytes)
    yield slice_family(gpu.GPU_MEMORY_FREE_BYTES, sliced, lambda sample: sample.memory_free_bytes)
    processes = rows.board_or_instances(state, GpuProcesses)
    yield slice_family(gpu.GPU_PROCESSES, processes, lambda sample: len(sample.processes))


def _power_and_clocks(state: NodeState) -> Iterator[Family]:
    fast = rows.boards(state, GpuFast)
    yield family(gpu.GPU_POWER_WATTS, fast, lambda sample: sample.power_w)
    yield family(gpu.GPU_POWER_INSTANT_WATTS, fast, lambda sample: sample.power_instant_w)
    enforced = family(gpu.GPU_POWER_LIMIT_WATTS, _named(fast, "enforced"), lambda sample: sample.power_limit_enforced_w)
    identities = _identities(state)
    default = family(
        gpu.GPU_POWER_LIMIT_WATTS, _named(identities, "default"), lambda found: found.power_limit_default_w
    )
    yield Family(gpu.GPU_POWER_LIMIT_WATTS, enforced.rows + default.rows)
    yield family(gpu.GPU_ENERGY_JOULES_TOTAL, fast, lambda sample: sample.energy_j)
    die = family(gpu.GPU_TEMPERATURE_CELSIUS, _named(fast, "gpu"), lambda sample: sample.temperature_c)
    memory = family(gpu.GPU_TEMPERATURE_CELSIUS, _named(fast, "memory"), lambda sample: sample.memory_temperature_c)
    yield Family(gpu.GPU_TEMPERATURE_CELSIUS, die.rows + memory.rows)
    clocks = (
        family(gpu.GPU_CLOCK_HERTZ, _named(fast, "graphics"), lambda sample: sample.graphics_clock_hz),
        family(gpu.GPU_CLOCK_HERTZ, _named(fast, "sm"), lambda sample: sample.sm_clock_hz),
        family(gpu.GPU_CLOCK_HERTZ, _named(fast, "memory"), lambda sample: sample.memory_clock_hz),
    )
    yield Family(gpu.GPU_CLOCK_HERTZ, [row for part in clocks for row in part.rows])
    sm_max = family(gpu.GPU_CLOCK_MAX_HERTZ, _named(identities, "sm"), lambda found: found.sm_clock_max_hz)
    memory_max = family(gpu.GPU_CLOCK_MAX_HERTZ, _named(identities, "memory"), lambda found: found.memory_clock_max_hz)
    yield Family(gpu.GPU_CLOCK_MAX_HERTZ, sm_max.rows + memory_max.rows)
    yield from _clock_events(fast)


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
    yield family(gpu.GPU_PERSISTENCE_ENABLED, slow, lambda sample: _flag(sample.persistence_enabled))
    yield family(gpu.GPU_ECC_ENABLED, slow, lambda sample: _flag(sample.ecc_enabled))
    yield family(gpu.GPU_MIG_ENABLED, slow, lambda sample: _flag(sample.mig_enabled))
    actions = Family(gpu.GPU_RECOVERY_ACTION)
    for labels, sample in slow:
        if sample.recovery_action is not None:
            actions.rows.append(((*labels, "none"), int(sample.recovery_action == 0)))
            if sample.recovery_action != 0:
                actions.rows.append(((*labels, _action(sample.recovery_action)), 1))
    yield actions


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


def _named(things: rows.Labelled[rows.T], word: str) -> rows.Labelled[rows.T]:
    return [((*labels, word), thing) for labels, thing in things]


def _action(code: int) -> str:
    return gpu.RECOVERY_ACTIONS[code] if 0 <= code < len(gpu.RECOVERY_ACTIONS) else f"code_{code}"


def _flag(value: bool | None) -> int | None:  # noqa: FBT001  (it is the value itself)
    return None if value is None else int(value)
