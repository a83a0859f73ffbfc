# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are, from the simulated node's processes to the page, under every scheduler it knows."""

from collections import Counter
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest

from exposition.reading import rows_of
from exposition.stories import tell
from gpufeed.model.state import NodeState
from gpufeed.simulate.hardware import boards
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.models import MODELS

GPUS = 2
BOARDS = boards(MODELS["h100"], GPUS)
PODS = [str(uuid5(NAMESPACE_OID, f"pod of {board.uuid}")) for board in BOARDS]
NOBODY = dict.fromkeys(("k8s_namespace", "k8s_pod", "k8s_container", "user"), "")


def told(layout: str, root: Path, scenario: str = "healthy", for_s: int = 14) -> NodeState:
    return tell(scenario, for_s, root, gpus=GPUS, layout=LAYOUTS[layout])


def jobs(state: NodeState) -> list[dict[str, str]]:
    return [
        {name: value for name, value in labels.items() if name not in {"gpu", "uuid"}}
        for labels, _ in rows_of(state, "gpufeed_gpu_job_info")
    ]


def allocated(state: NodeState) -> list[float]:
    return [value for _, value in rows_of(state, "gpufeed_gpu_allocated")]


def storages(state: NodeState) -> list[tuple[str, str, str]]:
    rows = rows_of(state, "gpufeed_gpu_storage_info")
    return [(labels["gpu"], labels["kind"], labels["target"]) for labels, _ in rows]


@pytest.mark.parametrize("layout", ["slurm", "slurm-v1", "slurm-sluid"])
def test_a_slurm_job_is_named_by_its_number_under_every_version(layout: str, tmp_path: Path) -> None:
    state = told(layout, tmp_path)
    assert jobs(state) == [{"scheduler": "slurm", "job_id": "4242", "step": "0", "shared": "false"} | NOBODY] * GPUS
    assert allocated(state) == [1] * GPUS


def test_a_pod_is_named_with_its_namespace_and_container(tmp_path: Path) -> None:
    state = told("kubernetes", tmp_path)
    assert jobs(state) == [
        {
            "scheduler": "kubernetes",
            "job_id": PODS[index],
            "step": "",
            "k8s_namespace": "research",
            "k8s_pod": f"training-{index}",
            "k8s_container": "trainer",
            "shared": "false",
            "user": "",
        }
        for index in range(GPUS)
    ]
    assert allocated(state) == [1] * GPUS


@pytest.mark.parametrize("layout", ["slurm", "kubernetes", "slurm-v1"])
def test_a_job_reads_what_its_processes_have_open_wherever_they_see_it(layout: str, tmp_path: Path) -> None:
    expected = [(str(gpu), *target) for gpu in range(GPUS) for target in (("block", "nvme0n1"), ("nfs", "/data"))]
    assert storages(told(layout, tmp_path)) == expected


def test_without_privileges_jobs_are_known_and_what_they_read_is_not(tmp_path: Path) -> None:
    state = told("unprivileged", tmp_path)
    assert [row["job_id"] for row in jobs(state)] == ["4242"] * GPUS
    assert storages(state) == []
    assert allocated(state) == [1] * GPUS  # their processes show it


def test_a_process_of_somebody_who_logged_in_is_no_job(tmp_path: Path) -> None:
    state = told("bare", tmp_path)
    assert (jobs(state), allocated(state), storages(state)) == ([], [], [])


def test_gpus_without_a_process_are_allocated_where_a_scheduler_says_so(tmp_path: Path) -> None:
    state = told("kubernetes", tmp_path, "idle_free")
    assert (jobs(state), allocated(state)) == ([], [1] * GPUS)


def test_the_job_of_a_lost_gpu_is_gone_and_the_others_is_there(tmp_path: Path) -> None:
    state = told("slurm", tmp_path, "gpu_lost", 24)
    assert len(jobs(state)) == 1
    assert {gpu for gpu, _, _ in storages(state)} == {"0"}


def test_each_gpu_has_the_card_below_its_switch(tmp_path: Path) -> None:
    rows = [labels for labels, _ in rows_of(told("slurm", tmp_path), "gpufeed_gpu_nic_info")]
    assert [(row["gpu"], row["device"], row["port"], row["netdev"], row["path"]) for row in rows] == [
        ("0", "mlx5_0", "1", "ibp24s0", "same_switch"),
        ("1", "mlx5_1", "1", "ibp64s0", "same_switch"),
    ]


def value(node: NodeState, name: str, **labels: str) -> float:
    [found] = [number for row, number in rows_of(node, name) if row.items() >= labels.items()]
    return found


def test_a_job_that_waits_for_storage_shows_it_in_its_pressure_and_threads(tmp_path: Path) -> None:
    state = told("slurm", tmp_path, "storage_starved", 31)
    waited_s = value(state, "gpufeed_job_pressure_waiting_seconds_total", resource="io")
    assert waited_s == pytest.approx(0.95 * 30.25, abs=0.01)  # read last at the slow read before the end
    assert value(state, "gpufeed_job_threads", state="blocked") >= 6
    assert value(state, "gpufeed_job_read_call_bytes_total") > 1e9
    assert value(state, "gpufeed_job_cpu_throttled_seconds_total") == 0


def test_pressure_that_the_kernel_does_not_account_is_absent_for_jobs_too(tmp_path: Path) -> None:
    state = told("no-pressure", tmp_path)
    assert rows_of(state, "gpufeed_job_pressure_waiting_seconds_total") == []
    assert state.inputs["job_pressure", ""].state == "absent"
    assert value(state, "gpufeed_job_cpu_seconds_total") > 0


def test_what_processes_read_is_absent_without_privileges(tmp_path: Path) -> None:
    state = told("unprivileged", tmp_path)
    assert rows_of(state, "gpufeed_job_read_call_bytes_total") == []
    assert value(state, "gpufeed_job_context_switches_total", kind="voluntary") > 0


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_no_layout_gives_a_gpu_two_jobs(layout: str, tmp_path: Path) -> None:
    rows = rows_of(told(layout, tmp_path), "gpufeed_gpu_job_info")
    assert max(Counter(labels["uuid"] for labels, _ in rows).values(), default=0) <= 1
