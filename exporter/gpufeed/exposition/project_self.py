# SPDX-License-Identifier: Apache-2.0
"""gpufeed itself: what it is, how its collectors, lanes and probe fare."""

from collections.abc import Iterator

from gpufeed.catalogue import self as own
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import family, text
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.state import NodeState
from gpufeed.signals.lanes import stuck_seconds
from gpufeed.units import seconds


def families(state: NodeState, server: ServerFacts) -> Iterator[Family]:
    """Build, collectors, lanes, probe, server. `series` and `series_shed` are the encoder's own."""
    yield from _identity(server)
    yield from _collectors(state)
    yield from _lanes(state, server)
    yield from _probe(state, server)
    yield Family(own.SCRAPE_DURATION_SECONDS, histograms=[((), server.scrape_durations)])
    yield Family(own.CONFIG_LAST_RELOAD_SUCCESSFUL, [((), int(server.is_reload_successful))])
    if server.reload_success_wall_s is not None:
        yield Family(own.CONFIG_LAST_RELOAD_SUCCESS_TIMESTAMP_SECONDS, [((), server.reload_success_wall_s)])
    yield Family(own.ALERTS, [(key, count) for key, count in server.alerts.items() if count])
    yield from _receivers(server)


def _receivers(server: ServerFacts) -> Iterator[Family]:
    receivers = [((one.receiver,), one) for one in server.receivers]
    yield Family(
        own.ALERT_SENDS_TOTAL,
        [((*labels, outcome), count) for labels, one in receivers for outcome, count in one.sends.items()],
    )
    yield family(own.ALERT_QUEUE_LENGTH, receivers, lambda one: one.waiting)
    yield family(own.ALERT_NOTIFICATIONS_DROPPED_TOTAL, receivers, lambda one: one.dropped)
    yield family(own.CLOCK_OFFSET_SECONDS, receivers, lambda one: one.clock_offset_s)


def _identity(server: ServerFacts) -> Iterator[Family]:
    simulated = "true" if server.is_simulated else "false"
    yield Family(own.BUILD_INFO, [((server.version, server.revision, server.python, simulated), 1)])
    yield Family(own.CONFIG_INFO, [((server.config_hash,), 1)] if server.config_hash else [])
    yield Family(own.RULES_INFO, [((server.rules_hash,), 1)] if server.rules_hash else [])


def _collectors(state: NodeState) -> Iterator[Family]:
    collectors = [((name,), record) for name, record in sorted(state.collectors.items())]
    yield family(own.COLLECTOR_SUCCESS, collectors, lambda record: int(record.is_successful))
    yield family(own.COLLECTOR_DURATION_SECONDS, collectors, lambda record: record.duration_s)
    yield family(own.COLLECTOR_LAST_SUCCESS_TIMESTAMP_SECONDS, collectors, lambda record: record.last_success_wall_s)
    yield Family(
        own.COLLECTOR_ERRORS_TOTAL,
        [((*labels, reason), count) for labels, record in collectors for reason, count in record.errors.items()],
    )
    now_ns = state.time.monotonic_ns
    ages = [
        (labels, seconds(now_ns - record.last_success_ns))
        for labels, record in collectors
        if record.last_success_ns is not None
    ]
    yield family(own.SAMPLE_AGE_SECONDS, ages, float)


def _lanes(state: NodeState, server: ServerFacts) -> Iterator[Family]:
    lanes = list(state.lanes.values())
    now_ns = state.time.monotonic_ns
    yield Family(
        own.LANE_STUCK_SECONDS,
        [((lane.lane, text(lane.gpu), text(lane.uuid)), stuck_seconds(lane, now_ns)) for lane in lanes],
    )
    yield Family(own.LANE_BUSY_SECONDS_TOTAL, [((lane.lane,), seconds(lane.busy_ns)) for lane in lanes])
    fast = {
        held.lane for of_kind in state.samples.values() for held in of_kind.values() if held.group.endswith(".fast")
    }
    yield Family(
        own.FAST_PERIOD_SECONDS,
        [((lane.lane,), seconds(lane.fast_period_ns)) for lane in lanes if lane.fast_period_ns is not None],
        full_rows=[
            ((lane.lane,), server.fast_period_s) for lane in lanes if lane.fast_period_ns is None and lane.lane in fast
        ],
    )


def _probe(state: NodeState, server: ServerFacts) -> Iterator[Family]:
    yield Family(own.PROBE_UP, [((), int(state.probe.is_up))])
    yield Family(own.PROBE_RESTARTS_TOTAL, [((), server.probe_restarts)])
    cost = state.probe.cost
    if cost is not None:
        yield Family(own.PROBE_CPU_SECONDS_TOTAL, [((), seconds(cost.cpu_ns))])
        yield Family(own.PROBE_RESIDENT_MEMORY_BYTES, [((), cost.resident_bytes)])
        yield Family(own.PROBE_NVML_CALLS_TOTAL, [((), cost.nvml_calls)])
        yield Family(own.PROBE_FIELD_VALUES_TOTAL, [((), cost.field_values)])
        yield Family(own.PROBE_FILE_READS_TOTAL, [((), cost.file_reads)])
