# SPDX-License-Identifier: Apache-2.0
"""Sentences from numbers that stand in the test."""

from dataclasses import replace

import pytest

from gpufeed.explain.causes import STORIES
from gpufeed.explain.explain import explain, group_name
from gpufeed.explain.member import Member, dominant, job_name
from gpufeed.explain.numbers import phrase, quantity, span
from gpufeed.explain.shape import Explanation, Number
from gpufeed.history.states import StateHistory
from gpufeed.model.evidence import Evidence
from gpufeed.model.frame import FrameTime, InputStatus
from gpufeed.model.ids import GpuKey, GpuUuid, JobKey, LaneId
from gpufeed.model.state import (
    CAUSES,
    Attribution,
    Because,
    GpuRecord,
    JobProgress,
    JobView,
    NodeState,
    ProbeRecord,
    StateCause,
    Verdict,
)

S = 1_000_000_000
BUSY, STORAGE, LOST = StateCause("busy", "tensor"), StateCause("starved", "storage"), StateCause("fault", "lost")
UNKNOWN = StateCause("starved", "unknown")
HEAT = StateCause("throttled", "thermal")


def node(spent: dict[StateCause, int], *evidence: Evidence, gpus: int = 2, current: StateCause = BUSY) -> NodeState:
    uuids = [GpuUuid(f"GPU-{index}") for index in range(gpus)]
    whole_ns = sum(spent.values()) * S
    because = {cause: Because(weight_s=1, at_ns=100 * S, confidence=0.9, evidence=evidence) for cause in spent}
    return NodeState(
        time=FrameTime(100 * S, 100 * S, 1_700_000_000 * S),
        gpus={
            uuid: GpuRecord(uuid=uuid, index=index, lane=LaneId(uuid), identity=None, condition="ok")
            for index, uuid in enumerate(uuids)
        },
        attributions={
            GpuKey(uuid): Attribution(
                state_ns={cause: seconds * S for cause, seconds in spent.items()},
                tracked_ns=whole_ns,
                decided_until_ns=100 * S,
                current=current,
                reasons=because,
            )
            for uuid in uuids
        },
        probe=ProbeRecord(is_up=True, frames=1),
    )


def told(state: NodeState, *, named: bool = True) -> Explanation:
    history = StateHistory()
    history.append(state)
    return explain(state, history.slots, 300, hostname="n", is_simulated=False, has_job_names=named)


def test_every_state_has_a_story_and_no_other() -> None:
    assert set(STORIES) == {(state, cause) for state, causes in CAUSES.items() for cause in causes}
    assert all(one.next for (state, _), one in STORIES.items() if state in {"starved", "throttled", "fault", "unknown"})


def test_a_read_that_takes_long_is_told_beside_its_usual_time() -> None:
    slow = Evidence(input="nfs:/data read latency", value=0.0953, unit="seconds", score=1.0, usual=0.003)
    state = node({BUSY: 38, STORAGE: 62}, slow, Evidence(input="io pressure", value=0.72, unit="ratio", score=1.0))
    found = told(state)
    assert found.lines[1] == "All 2 GPUs: waiting for storage 62 % of the time; busy 38 %."
    assert found.lines[2] == ("  why:  nfs:/data read latency 95.3 ms, 32× its usual 3 ms; PSI io 72 % [sure, 0.90]")
    assert found.parts[0].gain_at_most == pytest.approx(1 / 0.38)
    assert found.lines[3].startswith("  gain: at most 2.6 times the work")


def test_a_gain_is_not_promised_for_what_could_not_be_told() -> None:
    (one,) = told(node({BUSY: 38, UNKNOWN: 62})).parts
    assert (one.state, one.cause, one.gain_at_most) == ("starved", "unknown", None)


def test_heat_gives_back_what_the_clock_has_lost() -> None:
    clock = Evidence(input="SM clock of highest", value=0.5, unit="ratio")
    (one,) = told(node({BUSY: 50, HEAT: 50}, clock)).parts
    assert one.gain_at_most == pytest.approx(1 / 0.75)
    (blind,) = told(node({BUSY: 50, HEAT: 50})).parts
    assert blind.gain_at_most is None


def test_time_nobody_used_the_gpu_does_not_lessen_the_gain() -> None:
    (one,) = told(node({BUSY: 25, STORAGE: 25, StateCause("idle_free", ""): 50})).parts
    assert one.state == "starved"
    assert one.gain_at_most == pytest.approx(2.0)


def test_a_fault_is_told_at_once_and_first() -> None:
    state = node({BUSY: 99, LOST: 1})
    key = GpuKey(GpuUuid("GPU-1"))
    sick = replace(state.attributions[key], current=LOST)
    why = Verdict(subject=key, check="lost", level=2, since_ns=0, reason="GPU 1 fell off the bus")
    host = Verdict(subject="host", check="memory", level=1, since_ns=0, reason="2.0% of the memory is available")
    state = replace(
        state,
        attributions={**state.attributions, key: sick},
        verdicts={(key, "lost"): why, ("host", "memory"): host},
    )
    found = told(state)
    assert [one.name for one in found.parts] == ["GPU 1", "GPU 0"]
    assert found.parts[0].why == "GPU 1 fell off the bus"
    assert found.lines[-1] == "Not well: host: 2.0% of the memory is available."


def test_jobs_are_named_only_where_they_may_be() -> None:
    state = node({BUSY: 1})
    job = JobView(scheduler="slurm", job_id="42")
    ownership = replace(state.ownership, jobs={GpuKey(uuid): job for uuid in state.gpus})
    state = replace(state, ownership=ownership)
    assert [one.name for one in told(state).jobs] == ["slurm job 42"]
    assert told(state, named=False).jobs == ()
    assert "42" not in " ".join(told(state, named=False).lines)


def test_what_was_not_measured_is_said_where_it_may_matter() -> None:
    denied = InputStatus(input="task_states", scope="", state="denied", reason="no rights", fix="")
    lacking = InputStatus(input="gpm", scope="", state="unsupported", reason="", fix="")
    inputs = {("task_states", ""): denied, ("gpm", ""): lacking}
    found = told(replace(node({BUSY: 38, UNKNOWN: 62}), inputs=inputs))
    assert len(found.not_measured) == 2
    assert found.lines[-2].startswith("Not measured: gpm: ")
    assert found.lines[-1].endswith("doctor`.")
    assert told(replace(node({BUSY: 1}), inputs=inputs)).not_measured == ()


def test_without_a_gpu_or_a_probe_it_is_said() -> None:
    empty = replace(node({BUSY: 1}, gpus=0), probe=ProbeRecord())
    assert [line.split(":")[0].split(".")[0] for line in told(empty).lines] == [
        "Nothing is being read now", "No GPU is known",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("indexes", "name"), [((3,), "GPU 3"), ((0, 1, 2, 5), "GPUs 0-2, 5"), ((0, 1, 2, 3, 4, 5), "All 6 GPUs")]
)
def test_gpus_are_called_by_their_numbers(indexes: tuple[int, ...], name: str) -> None:
    everyone = [
        Member(key=GpuKey(GpuUuid(str(index))), index=index, job="", spent_ns={}, reasons={}, current=BUSY)
        for index in range(6)
    ]
    assert group_name([everyone[index] for index in indexes], everyone) == name


def test_instances_are_named_or_counted() -> None:
    many = [
        Member(key=GpuKey(GpuUuid("a"), gi), index=0, job="", spent_ns={}, reasons={}, current=BUSY) for gi in range(7)
    ]
    assert group_name(many[:2], many) == "GPU 0 instance 0, GPU 0 instance 1"
    assert group_name(many[:5], many) == "5 instances on 1 GPU"
    assert group_name(many, many) == "All 7 instances"


def test_words_of_numbers() -> None:
    assert phrase(Number("a/b read latency", 0.004, "seconds", 0.002)) == "a/b read latency 4 ms, 2.0× its usual 2 ms"
    assert phrase(Number("a/b read latency", 0.002, "seconds", 0.002)) == "a/b read latency 2 ms"
    assert quantity(0.001, "ratio") == "<1 %"
    assert [quantity(v, "bytes_per_second") for v in (2.44e9, 3e6, 4500, 12)] == [
        "2.44 GB/s", "3 MB/s", "4.5 kB/s", "12 B/s",
    ]  # fmt: skip
    assert (quantity(7.92e8, "hertz"), quantity(1.25, "seconds"), quantity(3, "")) == ("792 MHz", "1.2 s", "3")
    assert (span(45), span(300), span(7200)) == ("45 s", "5 min", "2 h")


def test_jobs_are_called_as_their_scheduler_does() -> None:
    assert job_name(JobView(scheduler="slurm", job_id="42")) == "slurm job 42"
    assert job_name(JobView(scheduler="kubernetes", job_id="uid", k8s_namespace="a", k8s_pod="b")) == "pod a/b"
    assert job_name(JobView(scheduler="kubernetes", job_id="uid")) == "pod uid"
    assert job_name(JobView()) == ""


def test_a_gpu_of_which_nothing_is_decided_is_not_read() -> None:
    assert dominant({}) == ("unknown", "no_data")


@pytest.mark.parametrize(
    ("reported", "says"), [(0.62, ""), (0.9, "queued on the GPU hides its waits"), (0.1, "its loop waits elsewhere")]
)
def test_a_job_that_says_something_else_than_was_seen_is_quoted(reported: float, says: str) -> None:
    state = node({BUSY: 38, STORAGE: 62})
    job = JobView(scheduler="slurm", job_id="42")
    ownership = replace(state.ownership, jobs={GpuKey(uuid): job for uuid in state.gpus})
    progress = {
        JobKey("slurm", "42", "0"): JobProgress(data_wait_ratio=reported),
        JobKey("slurm", "43"): JobProgress(data_wait_ratio=0.5),
        JobKey("slurm", "44"): JobProgress(),
    }
    found = told(replace(state, ownership=ownership, progress=progress))
    assert len(found.disagreements) == bool(says)
    assert says in " ".join(found.disagreements)
    assert all("slurm job 42 reports that it waits for data" in one for one in found.disagreements)
    assert "42" not in " ".join(told(replace(state, ownership=ownership, progress=progress), named=False).lines)
