# SPDX-License-Identifier: Apache-2.0
"""From two readings to means over the time between."""

from collections.abc import Mapping

import pytest

from gpufeed.model.frame import AnySample, Reading
from gpufeed.model.gpu import GpmInterval, GpuFast
from gpufeed.model.host import HostCpu, JobTasks, NodeInfo
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId, StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.signals.meters import FORGOTTEN_NS, Timelines, observe
from gpufeed.signals.samples import Samples, hold
from gpufeed.signals.timeline import Segment

S = 1_000_000_000
KEY = GpuKey(GpuUuid("GPU-0"))
NFS = StorageKey("nfs", "/data")
UNMETERED = NodeInfo(nodename="n")


def reading(at_ns: int, *samples: AnySample, period_ns: int = S // 2) -> Reading:
    return Reading(
        lane=LaneId("x"),
        group=GroupName("x.fast"),
        collector="nvml",
        began_ns=at_ns,
        ended_ns=at_ns,
        period_ns=period_ns,
        samples=samples,
    )


def last(timelines: Timelines, sample: AnySample) -> Segment:
    return timelines[type(sample), sample.subject][-1]


def between(old: AnySample, new: AnySample, apart_ns: int = S) -> Segment:
    """The segment that two readings give, a second apart, in two frames."""
    first = reading(10 * S, old)
    before: Samples = {type(old): {old.subject: hold(first, old)}}
    now_ns = 10 * S + apart_ns
    return last(observe({}, before, [reading(now_ns, new)], now_ns), new)


def storage(**values: float | None) -> StorageCounters:
    return StorageCounters(storage=NFS, **values)  # type: ignore[arg-type] # fields by name


def fast(
    counters: Mapping[str, int] | None = None, events: int | None = None, utilization: float | None = 0.5
) -> GpuFast:
    known = None if counters is None else dict(counters)
    return GpuFast(gpu=KEY, utilization_ratio=utilization, power_w=300.0, clock_event_ns=known, clock_events=events)  # type: ignore[arg-type]


def test_counters_become_rates_over_exactly_the_time_between() -> None:
    segment = between(storage(read_bytes=100, reads=0, read_s=0.0), storage(read_bytes=500, reads=8, read_s=2.0), 2 * S)
    assert (segment.began_ns, segment.ended_ns) == (10 * S, 12 * S)
    assert segment.values == {"read": 200.0, "reads": 4.0, "read_outstanding": 1.0, "read_latency": 0.25}


def test_without_operations_there_is_no_latency() -> None:
    segment = between(storage(reads=5, read_s=1.0), storage(reads=5, read_s=1.0))
    assert "read_latency" not in segment.values


def test_a_reset_is_not_known_rather_than_zero() -> None:
    segment = between(storage(read_bytes=500, write_bytes=0), storage(read_bytes=100, write_bytes=10))
    assert segment.values == {"write": 10.0}


def test_two_readings_in_one_frame_are_told_apart() -> None:
    readings = [reading(10 * S, storage(read_bytes=0)), reading(11 * S, storage(read_bytes=70))]
    assert last(observe({}, {}, readings, 11 * S), storage()).values == {"read": 70.0}


def test_a_first_reading_has_no_rate_and_no_segment() -> None:
    assert observe({}, {}, [reading(10 * S, storage(read_bytes=5))], 10 * S)[StorageCounters, NFS] == ()


def test_a_value_of_the_moment_stands_for_a_second_at_most() -> None:
    assert between(fast(), fast(), S // 2).began_ns == 10 * S
    assert between(fast(), fast(), 6 * S).began_ns == 15 * S + S // 2  # one period, after a long silence
    first = observe({}, {}, [reading(10 * S, fast(), period_ns=5 * S)], 10 * S)
    assert last(first, fast()).began_ns == 9 * S


@pytest.mark.parametrize(
    ("old", "new", "thermal"),
    [
        (fast({"hw_thermal": 0, "sw_thermal": 0}), fast({"hw_thermal": S // 4, "sw_thermal": S // 2}), 0.5),
        (fast({"hw_thermal": 0}), fast({"hw_thermal": 5 * S}), 1.0),
        (fast({"hw_thermal": S}), fast({"hw_thermal": 0}), None),  # the driver was loaded anew
        (fast(None), fast({"hw_thermal": 0}), None),
        (fast({"sw_power_cap": 0}), fast({"sw_power_cap": 0}, events=0x40), 1.0),  # not counted: the bit of the moment
        (fast({"sw_power_cap": 0}), fast({"sw_power_cap": 0}, events=0x4), 0.0),
        (fast(), fast(), None),
    ],
)
def test_share_of_time_held_down(old: GpuFast, new: GpuFast, thermal: float | None) -> None:
    assert between(old, new).values.get("thermal") == thermal


def test_the_first_count_of_held_down_time_says_nothing() -> None:
    segment = last(observe({}, {}, [reading(10 * S, fast({"hw_thermal": 7}))], 10 * S), fast())
    assert "thermal" not in segment.values


@pytest.mark.parametrize(("value", "known"), [(1.02, 1.0), (-0.001, 0.0), (1.5, None), (float("nan"), None)])
def test_a_ratio_out_of_range_beyond_rounding_is_garbage(value: float, known: float | None) -> None:
    segment = last(observe({}, {}, [reading(10 * S, fast(utilization=value), UNMETERED)], 10 * S), fast())
    assert segment.values.get("utilization") == known


def test_gpm_stands_for_its_own_interval() -> None:
    interval = GpmInterval(gpu=KEY, began_ns=9 * S, ended_ns=10 * S, sm_ratio=0.5)
    assert last(observe({}, {}, [reading(11 * S, interval)], 11 * S), interval) == Segment(9 * S, 10 * S, {"sm": 0.5})


def test_processor_time_that_falls_is_not_known() -> None:
    old = tasks(cpu_s=50.0)
    assert between(old, tasks(cpu_s=53.0)).values["cores"] == 3.0
    assert "cores" not in between(old, tasks(cpu_s=10.0)).values  # a process ended
    busy = tasks(cpu_s=53.0, busiest=0.25)
    assert between(old, busy).values["busiest"] == 0.5


def tasks(cpu_s: float, busiest: float | None = None) -> JobTasks:
    return JobTasks(
        cgroup="/c",
        gpus=(KEY.uuid,),
        processes=1,
        threads=4,
        running=1,
        blocked=2,
        cpu_s=cpu_s,
        busiest_thread_cpu_s=busiest,
        busiest_thread_wall_s=0.5,
    )


def test_processors_of_the_node_count_as_cores_in_use() -> None:
    old = HostCpu(seconds={"user": 10.0, "system": 5.0, "idle": 100.0}, cpus=8)
    new = HostCpu(seconds={"user": 12.0, "system": 6.0, "idle": 105.0}, cpus=8)
    assert between(old, new).values == {"cores": 3.0, "cpus": 8.0}
    assert observe({}, {}, [reading(10 * S, new)], 10 * S)[HostCpu, "host"] == ()


def test_what_is_not_read_any_more_is_forgotten() -> None:
    timelines = observe({}, {}, [reading(10 * S, fast())], 10 * S)
    assert observe(timelines, {}, [], 10 * S + FORGOTTEN_NS) == {}
