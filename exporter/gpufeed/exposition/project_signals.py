# SPDX-License-Identifier: Apache-2.0
"""Where the GPUs' time went, and the verdicts of the health checks."""

from collections.abc import Iterator
from typing import Final, assert_never

from gpufeed.catalogue import signals
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family, Labels
from gpufeed.exposition.project_fabric import port_labels
from gpufeed.exposition.project_storage import target_labels
from gpufeed.exposition.rows import slice_family, without_split_boards
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.ids import GpuKey, IbPortKey, StorageKey
from gpufeed.model.state import Attribution, NodeState
from gpufeed.units import seconds

_DECIDES_NOTHING: Final = frozenset(
    {
        "c2c",
        "ecc",
        "fabric",
        "job_reports",
        "kernel_log",
        "memory_repair",
        "nvlink_errors",
        "pcie_errors",
        "sram_status",
        "temperature_margin",
    }
)
"""Inputs that say how a GPU is, not what it waits for: a board that lacks them is no blinder."""


def families(state: NodeState, server: ServerFacts) -> Iterator[Family]:
    """Attribution, health, maintenance."""
    yield from _attribution(state)
    yield from _health(state)
    yield Family(signals.MAINTENANCE, [((), int(server.is_in_maintenance))])


def _attribution(state: NodeState) -> Iterator[Family]:
    attributions = rows.slices(state, state.attributions)
    states = [row for labels, found in attributions for row in _state_rows(labels, found)]
    yield Family(signals.GPU_STATE_SECONDS_TOTAL, without_split_boards(states))
    yield slice_family(signals.GPU_TRACKED_SECONDS_TOTAL, attributions, lambda found: seconds(found.tracked_ns))
    yield slice_family(signals.GPU_ATTRIBUTION_CONFIDENCE_RATIO, attributions, lambda found: found.confidence_ratio)
    available: dict[str, bool] = {}
    for status in state.inputs.values():
        if status.input in _DECIDES_NOTHING:
            continue
        available[status.input] = available.get(status.input, False) or status.state == "available"
    yield Family(signals.ATTRIBUTION_INPUT_AVAILABLE, [((name,), int(one)) for name, one in sorted(available.items())])
    if attributions:
        lag_ns = state.time.monotonic_ns - min(found.decided_until_ns for _, found in attributions)
        decided_s = seconds(state.time.wall_ns - lag_ns)
        yield Family(signals.ATTRIBUTION_DECIDED_TIMESTAMP_SECONDS, [((), decided_s)])


def _state_rows(labels: Labels, found: Attribution) -> Iterator[tuple[Labels, float]]:
    spent = dict.fromkeys(signals.STATES_FROM_THE_START, 0) | dict(found.state_ns)
    for pair, spent_ns in spent.items():
        if spent_ns > 0 or pair in signals.STATES_FROM_THE_START:
            yield (*labels, pair.state, pair.cause), seconds(spent_ns)


def _health(state: NodeState) -> Iterator[Family]:
    gpus = Family(signals.GPU_HEALTH)
    ports = Family(signals.IB_HEALTH)
    storage = Family(signals.STORAGE_HEALTH)
    host = Family(signals.HOST_HEALTH)
    own = Family(signals.SELF_HEALTH)
    for verdict in state.verdicts.values():
        check, level = verdict.check, verdict.level
        match verdict.subject:
            case GpuKey(uuid):
                if uuid in state.gpus:
                    gpus.rows.append(((str(state.gpus[uuid].index), uuid, check), level))
            case IbPortKey() as port:
                ports.rows.append(((*port_labels(port), check), level))
            case StorageKey() as target:
                storage.rows.append(((*target_labels(target), check), level))
            case "host":
                host.rows.append(((check,), level))
            case "self":
                own.rows.append(((check,), level))
            case unreachable:
                assert_never(unreachable)
    for found in (gpus, ports, storage, host, own):
        yield Family(found.definition, sorted(found.rows))
