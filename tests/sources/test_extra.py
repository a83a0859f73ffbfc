# SPDX-License-Identifier: Apache-2.0
"""Sources of other packages: loaded where the configuration names them, and read through a gate."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufeed.model.frame import InputStatus
from gpufeed.model.host import HostMemory
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.extra import plan_extra
from gpufeed.sources.extra_gate import MAX_SAMPLES, gated
from host_bench import HostBench, read

SOURCE = """
from gpufeed.model.sample import Extension
from gpufeed.sources.contract import Group, LanePlan, Outcome

class Reader:
    def __init__(self, spec, desk):
        pass
    def read(self, group):
        return Outcome(samples=(Extension(source="tally", metric="depth", labels=(), value=3),))
    def close(self):
        pass

class Tally:
    name = "tally"
    def plan(self, config):
        group = Group(name="tally.fast", collector="nvml", period_ns=1)
        return (LanePlan(lane="queue", groups=(group,), open=Reader),)

class Broken:
    name = "tally"
    def plan(self, config):
        raise KeyError("no such thing")

class NoPlans:
    name = "tally"
    def plan(self, config):
        return ("a lane",)

TALLY = Tally()
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which packages can be laid down as if they were installed."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    (folder / "tally_module.py").write_text(SOURCE, encoding="utf-8")
    yield folder
    sys.modules.pop("tally_module", None)


def install(folder: Path, target: str, distribution: str = "gpufeed-tally", name: str = "tally") -> None:
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[gpufeed.sources]\n{name} = {target}\n", encoding="utf-8")


def outcome_of(bench: HostBench, name: str = "tally") -> Outcome:
    bench.extra_sources = (name,)
    (plan,) = plan_extra(bench.config)
    return read(bench.open(plan), "extra.rare")


def status_of(bench: HostBench, name: str = "tally") -> InputStatus:
    outcome = outcome_of(bench, name)
    assert outcome.lanes == ()
    (status,) = outcome.inputs
    return status


@pytest.mark.parametrize("target", ["tally_module:TALLY", "tally_module:Tally"])
def test_a_named_source_is_loaded_and_its_lane_stands_under_its_name(
    bench: HostBench, packages: Path, target: str
) -> None:
    install(packages, target)
    outcome = outcome_of(bench)
    assert outcome.inputs == (InputStatus("extra:tally", "", "available"),)
    assert outcome.lanes is not None
    (plan,) = outcome.lanes
    assert plan.lane == "extra:tally:queue"
    assert [(group.collector, group.period_ns) for group in plan.groups] == [("extra", 100_000_000)]
    reader = bench.open(plan)
    assert read(reader, "tally.fast").samples == (Extension(source="tally", metric="depth", labels=(), value=3.0),)
    reader.close()


def test_a_source_that_plans_the_same_again_keeps_its_lanes(bench: HostBench, packages: Path) -> None:
    install(packages, "tally_module:TALLY")
    bench.extra_sources = ("tally",)
    reader = bench.open(plan_extra(bench.config)[0])
    first = read(reader, "extra.rare")
    second = read(reader, "extra.rare")
    assert first.lanes == second.lanes
    assert second.inputs == ()
    reader.close()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:X", "ModuleNotFoundError"),
        ("tally_module:Nothing", "AttributeError"),
        ("tally_module:Broken", "no such thing"),
        ("tally_module:NoPlans", "no lane plan"),
    ],
)
def test_a_source_that_is_no_good_is_said_to_be_broken(
    bench: HostBench, packages: Path, target: str, words: str
) -> None:
    install(packages, target)
    status = status_of(bench)
    assert status.state == "broken"
    assert words in status.reason


def test_a_source_that_no_package_offers_is_absent(bench: HostBench) -> None:
    assert status_of(bench, "unheard_of").state == "absent"


@pytest.mark.parametrize("name", ["Tally", "9tally", "ta-lly", "", "nvml", "self"])
def test_a_name_that_cannot_name_a_source_is_broken(bench: HostBench, name: str) -> None:
    status = status_of(bench, name)
    assert (status.state, "cannot name a source" in status.reason) == ("broken", True)


def test_two_packages_that_offer_one_name_are_refused(bench: HostBench, packages: Path) -> None:
    install(packages, "tally_module:TALLY")
    install(packages, "tally_module:Tally", "another-tally")
    status = status_of(bench)
    assert status.state == "broken"
    assert "another-tally, gpufeed-tally" in status.reason


def test_a_name_given_twice_is_one_lane(bench: HostBench) -> None:
    bench.extra_sources = ("tally", "tally")
    assert [plan.lane for plan in plan_extra(bench.config)] == ["extra:tally"]


class Speaker:
    """Says what it is told to."""

    outcome = Outcome()

    def __init__(self, spec: NoSpec, desk: Desk) -> None:
        pass

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - it says the same of any
        return self.outcome

    def close(self) -> None:
        pass


def plan(open_speaker: type[Speaker] = Speaker) -> LanePlan:
    group = Group(name=GroupName("tally.fast"), collector="extra", period_ns=10**9)
    return LanePlan(lane=LaneId("queue"), groups=(group,), open=open_speaker)


def through_the_gate(bench: HostBench, *samples: Extension | HostMemory, said: Outcome | None = None) -> Outcome:
    class Told(Speaker):
        outcome = said or Outcome(samples=samples)

    return read(bench.open(gated("tally", plan(Told))), "tally.fast")


def value(
    metric: str = "depth", labels: tuple[tuple[str, str], ...] = (), number: float = 1.0, source: str = "tally"
) -> Extension:
    return Extension(source=source, metric=metric, labels=labels, value=number, is_counter=metric.endswith("_total"))


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (HostMemory(total_bytes=1), "no Extension"),
        (value(source="other"), "another source's name"),
        (value("Depth"), "metric name"),
        (value("depth__x"), "metric name"),
        (value("9depth"), "metric name"),
        (Extension(source="tally", metric="a_total", labels=(), value=1), "_total"),
        (Extension(source="tally", metric="a", labels=(), value=1, is_counter=True), "_total"),
        (value(labels=(("Bad", "x"),)), "not a lower-case word"),
        (value(labels=(("job", "x"),)), "Prometheus owns"),
        (value(labels=(("a", "x"), ("a", "y"))), "a label twice"),
        (value(labels=tuple((f"l{at}", "x") for at in range(17))), "more than 16 labels"),
        (value(number=float("nan")), "no finite number"),
        (value(number="7"), "no finite number"),  # type: ignore[arg-type] # what somebody's code may well do
    ],
)
def test_what_may_not_pass_is_named_and_the_rest_goes_on(
    bench: HostBench, sample: Extension | HostMemory, reason: str
) -> None:
    outcome = through_the_gate(bench, value("before"), sample, value("after_total"))
    assert [each.metric for each in outcome.samples if isinstance(each, Extension)] == ["before", "after_total"]
    (failure,) = outcome.failures
    assert (failure.device, failure.reason) == ("tally", "broken")
    assert reason in failure.detail


def test_label_values_and_help_are_cleaned_and_labels_put_in_order(bench: HostBench) -> None:
    sample = Extension(source="tally", metric="depth", labels=(("b", "x\ny"), ("a", "\ud800")), value=2, help="a\x00b")
    (passed,) = through_the_gate(bench, sample).samples
    assert passed == Extension(
        source="tally", metric="depth", labels=(("a", "?"), ("b", "x\\x0ay")), value=2.0, help="a\\x00b"
    )


def test_one_metric_with_one_set_of_labels_passes_once(bench: HostBench) -> None:
    outcome = through_the_gate(bench, value(labels=(("a", "1"), ("b", "2"))), value(labels=(("b", "2"), ("a", "1"))))
    assert len(outcome.samples) == 1
    assert "twice" in outcome.failures[0].detail


def test_a_source_gone_wild_is_cut(bench: HostBench) -> None:
    outcome = through_the_gate(bench, *(value(labels=(("n", str(at)),)) for at in range(MAX_SAMPLES + 5)))
    assert len(outcome.samples) == MAX_SAMPLES
    assert len(outcome.failures) == 1


def test_statuses_failures_and_lanes_of_a_source_stay_its_own(bench: HostBench) -> None:
    said = Outcome(
        inputs=(InputStatus("gpm", "", "broken", "not yours to say"),),
        failures=(DeviceFailure(device="disk", reason="denied"),),
        lanes=(plan(),),
    )
    outcome = through_the_gate(bench, said=said)
    assert outcome.inputs == (InputStatus("extra:tally", "gpm", "broken", "not yours to say"),)
    assert outcome.failures == said.failures
    assert outcome.lanes == (gated("tally", plan()),)


def test_a_plan_without_groups_is_refused() -> None:
    with pytest.raises(TypeError, match="no lane plan"):
        gated("tally", LanePlan(lane=LaneId("x"), groups=(), open=Speaker))
