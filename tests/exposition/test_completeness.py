# SPDX-License-Identifier: Apache-2.0
"""Whole stories, from the simulated hardware to the page: everything promised appears, and nothing else."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from exposition.stories import tell
from gpufeed.catalogue import METRICS
from gpufeed.catalogue.define import Profile
from gpufeed.catalogue.self import SERIES, SERIES_SHED
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ProcessFacts, ReceiverFacts, ServerFacts
from gpufeed.model.state import NodeState

# scenario: how long to watch it; each incident is at ten seconds, and a hang is one eight seconds later
STORIES: Mapping[str, int] = MappingProxyType(
    {"healthy": 16, "gpu_lost": 16, "driver_hang": 24, "gpu_xid": 21, "driver_absent_then_present": 10}
)

SERVER = ServerFacts(
    version="0.0.0",
    revision="golden",
    python="3",
    is_simulated=True,
    config_hash="c0ffee",
    rules_hash="decade",
    reload_success_wall_s=1.7e9,
    alerts={("GpuLost", "page", "firing"): 1},
    receivers=(ReceiverFacts(receiver="am:9093", sends={"delivered": 2}, waiting=1, dropped=0, clock_offset_s=0.5),),
    process=ProcessFacts(cpu_s=1.0, resident_bytes=1, virtual_bytes=2, start_wall_s=1.7e9, open_fds=4, max_fds=1024),
)

# what depends on how much the probe does, not on what it found out
VOLATILE = re.compile(
    r"(# (HELP|TYPE) )?(gpufeed_(probe_(cpu|resident|nvml|field|file)|series|collector_duration|lane_busy)|process_)"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, NodeState]:
    return {name: tell(name, for_s, tmp_path_factory.mktemp(name)) for name, for_s in STORIES.items()}


@pytest.fixture(scope="module")
def on_other_boards(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, NodeState]:
    """An old board, and one with a processor beside it, under a driver that counts all there is."""
    return {
        model: tell("thermal_throttle", 2, tmp_path_factory.mktemp(model), gpus=1, model=model)
        for model in ("v100", "gb200")
    }


def page_of(state: NodeState, profile: Profile) -> str:
    return Encoder(profile=profile).encode(families(state, SERVER)).page(Format.TEXT).decode()


def rows_of(page: str, name: str) -> dict[str, float]:
    pairs = (line.rpartition(" ") for line in page.splitlines() if re.match(rf"{name}[{{ ]", line))
    return {labels.removeprefix(name): float(value) for labels, _, value in pairs}


def test_every_definition_is_produced_by_some_story(
    told: Mapping[str, NodeState], on_other_boards: Mapping[str, NodeState]
) -> None:
    states = (*told.values(), *on_other_boards.values())
    produced = {family.definition.name for state in states for family in families(state, SERVER)}
    by_encoder = {SERIES.name, SERIES_SHED.name}
    capped = Encoder(profile="full", max_series=1).encode(families(told["healthy"], SERVER)).page(Format.TEXT)
    assert by_encoder == {name for name in by_encoder if f"# TYPE {name} ".encode() in capped}
    assert sorted(set(METRICS) - produced - by_encoder) == []


def test_nothing_is_produced_that_was_not_declared(
    told: Mapping[str, NodeState], on_other_boards: Mapping[str, NodeState]
) -> None:
    for state in (*told.values(), *on_other_boards.values()):
        for family in families(state, SERVER):
            assert METRICS[family.definition.name] is family.definition
            for values, _ in family.rows + family.full_rows:
                assert len(values) == len(family.definition.labels)


@pytest.mark.parametrize("story", STORIES)
def test_state_seconds_add_up_on_the_page(told: Mapping[str, NodeState], story: str) -> None:
    page = page_of(told[story], "minimal")
    tracked = rows_of(page, "gpufeed_gpu_tracked_seconds_total")
    states = rows_of(page, "gpufeed_gpu_state_seconds_total")
    assert len(tracked) == len(told[story].gpus)
    for labels, total in tracked.items():
        mine = [value for other, value in states.items() if other.startswith(labels.removesuffix("}"))]
        assert sum(mine) == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("story", STORIES)
def test_the_page_of_a_story_is_the_one_that_was_read_and_agreed_to(
    told: Mapping[str, NodeState], golden: Callable[[str, str], None], story: str
) -> None:
    page = page_of(told[story], "full" if story == "healthy" else "default")
    kept = [line for line in page.splitlines() if not VOLATILE.match(line)]
    golden(f"{story}.prom", "\n".join([*kept, ""]))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)")
@pytest.mark.parametrize("story", STORIES)
def test_promtool_has_nothing_to_say_about_a_story(told: Mapping[str, NodeState], story: str) -> None:
    page = page_of(told[story], "full").encode()
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_lost_gpu_is_down_and_gives_no_readings_while_the_other_does(told: Mapping[str, NodeState]) -> None:
    page = page_of(told["gpu_lost"], "default")
    up = rows_of(page, "gpufeed_gpu_up")
    assert sorted(up.values()) == [0, 1]
    [lost] = [labels for labels, value in up.items() if value == 0]
    powered = rows_of(page, "gpufeed_gpu_power_watts")
    assert len(powered) == 1
    assert lost not in powered
    assert lost in rows_of(page, "gpufeed_gpu_tracked_seconds_total")


def test_a_hung_lane_counts_its_seconds_and_its_gpu_is_withdrawn(told: Mapping[str, NodeState]) -> None:
    page = page_of(told["driver_hang"], "default")
    [stuck] = [value for value in rows_of(page, "gpufeed_lane_stuck_seconds").values() if value > 0]
    assert 12 <= stuck <= 14.5
    assert sorted(rows_of(page, "gpufeed_gpu_up").values()) == [0, 1]
    for name in (
        "gpu_power_watts",
        "gpu_pcie_receive_bytes_total",
        "nvlink_receive_bytes_total",
        "gpu_sm_occupancy_ratio",
    ):
        assert len(rows_of(page, f"gpufeed_{name}")) == 1
    assert len(rows_of(page, "gpufeed_gpu_engine_active_seconds_total")) == 4


def test_without_a_driver_everything_else_is_there(told: Mapping[str, NodeState]) -> None:
    page = page_of(told["driver_absent_then_present"], "default")
    assert rows_of(page, "gpufeed_gpu_up") == {}
    assert rows_of(page, "gpufeed_gpus_expected") == {'{origin="pci"}': 2}
    assert rows_of(page, "gpufeed_gpus_present") == {"": 0}
    assert rows_of(page, "gpufeed_storage_read_bytes_total")
    assert rows_of(page, "gpufeed_ib_port_receive_bytes_total")
    assert rows_of(page, "gpufeed_pressure_waiting_seconds_total")
