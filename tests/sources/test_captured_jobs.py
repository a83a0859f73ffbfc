# SPDX-License-Identifier: Apache-2.0
"""Processes of real nodes, where captures of them are at hand, each taken for one that holds a GPU.

GPUFEED_CAPTURES names their directory. Expected values are written down here, or taken from the files by other means.
"""

import os
import re
from pathlib import Path

import pytest

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame
from gpufeed.model.host import Pressure
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.model.jobs import Allocations, JobOwner
from gpufeed.parse.cgroup_cpu import parse_cgroup_cpu
from gpufeed.parse.process_io import parse_process_io
from gpufeed.parse.slurm import parse_gpu_numbers, parse_slurm_environ
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.builtin import BUILTIN

JOBS = tuple(source for source in BUILTIN if source.name in {"owners", "schedulers", "jobs", "job_usage", "job_files"})
FOLDER = os.environ.get("GPUFEED_CAPTURES")

pytestmark = pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")


def captured(pattern: str) -> list[Path]:
    found = sorted(Path(FOLDER).glob(pattern)) if FOLDER else []
    return [path for path in found if path.is_dir() or not pattern.endswith("/")]


def tick(root: Path, runtime: Path, *pids: int) -> Frame:
    config = ProbeConfig(procfs=str(root / "proc"), sysfs=str(root / "sys"), rootfs=str(root), runtime_dir=str(runtime))
    probe = InlineProbe(config, JOBS, SteppedClock())
    probe.board.gpu_pids[LaneId("gpu0")] = (GpuUuid("GPU-a"), pids)
    frame = probe.tick()
    probe.close()
    assert not [log.text for log in probe.logs() if "Traceback" in log.text]
    assert not frame.failures
    return frame


def expected_of(path: Path) -> tuple[str, str] | None:
    """Scheduler and job as a person reads them out of the file."""
    text = path.read_text(encoding="ascii")
    if (slurm := re.search(r"slurm[^/]*(?:/uid_\d+)?/job_(\d+)", text)) is not None:
        return ("slurm", slurm[1])
    if (pod := re.search(r"pod([0-9a-f]{8}[0-9a-f_-]{28})", text)) is not None:
        return ("kubernetes", pod[1].replace("_", "-"))
    if (container := re.search(r"([0-9a-f]{64})(?:\.scope)?$", text, re.MULTILINE)) is not None:
        return ("container", container[1][:12])
    if (garden := re.search(r"garden/(.*)", text)) is not None:
        return ("container", garden[1])
    mounts = path.with_name("mountinfo")  # of a process in a cgroup namespace of its own
    pods = re.findall(r"/pods/([0-9a-f-]{36})/etc-hosts", mounts.read_text(encoding="ascii") if mounts.exists() else "")
    return ("kubernetes", pods[0]) if pods else None


@pytest.mark.parametrize(
    "path", captured("cgroup/*/proc/*/cgroup"), ids=lambda path: f"{path.parents[2].name}-{path.parent.name}"
)
def test_a_captured_process_works_for_the_job_of_its_cgroup(path: Path, tmp_path: Path) -> None:
    frame = tick(path.parents[2], tmp_path, int(path.parent.name))
    found = [sample for one in frame.readings for sample in one.samples if isinstance(sample, JobOwner)]
    assert [(sample.scheduler, sample.job_id) for sample in found] == [
        expected for expected in (expected_of(path),) if expected is not None
    ]
    for sample in found:
        assert sample.is_scheduler_own == ("stepd-not-user" in str(path))


@pytest.mark.parametrize("path", captured("cgroup/*/proc/*/environ"), ids=lambda path: path.parent.name)
def test_captured_variables_of_a_process_name_its_job(path: Path) -> None:
    variables = dict(entry.split("=", 1) for entry in path.read_text(encoding="ascii").split("\0") if "=" in entry)
    found = parse_slurm_environ(path.read_bytes())
    assert found == {name: value for name, value in variables.items() if name.startswith("SLURM_")}
    if "SLURM_JOB_GPUS" in found:
        assert parse_gpu_numbers(found["SLURM_JOB_GPUS"]) == tuple(map(int, found["SLURM_JOB_GPUS"].split(",")))


@pytest.mark.parametrize("root", captured("cgroup/slurm-v2-tree*"), ids=lambda path: path.name)
def test_jobs_of_a_captured_tree_are_found_though_nobody_may_say_what_they_have(root: Path, tmp_path: Path) -> None:
    frame = tick(root, tmp_path)
    (found,) = [sample for one in frame.readings for sample in one.samples if isinstance(sample, Allocations)]
    assert (found.scheduler, found.jobs, found.is_complete) == ("slurm", (), False)


@pytest.mark.parametrize("path", captured("proc-io/*/proc/*/io"), ids=lambda path: path.parents[2].name)
def test_captured_reads_of_a_process_are_those_of_its_file(path: Path) -> None:
    numbers = dict(re.findall(r"^(\w+): (-?\d+)", path.read_text(encoding="ascii"), re.MULTILINE))
    found = parse_process_io(path.read_bytes())
    assert (found.read_call_bytes, found.block_read_bytes) == (int(numbers["rchar"]), int(numbers["read_bytes"]))


@pytest.mark.parametrize("path", captured("**/fs/cgroup/**/cpu.stat"), ids=str)
def test_captured_processor_time_of_a_cgroup_is_that_of_its_file(path: Path) -> None:
    numbers = dict(line.split() for line in path.read_text(encoding="ascii").splitlines())
    found = parse_cgroup_cpu(path.read_bytes())
    assert found.used_s == int(numbers["usage_usec"]) / 1e6
    assert found.throttled_periods == (int(numbers["nr_throttled"]) if "nr_throttled" in numbers else None)
    assert found.throttled_s == (int(numbers["throttled_usec"]) / 1e6 if "throttled_usec" in numbers else None)


@pytest.mark.parametrize("folder", captured("pressure/*/sys/fs/cgroup/*/"), ids=lambda path: path.name)
def test_captured_pressure_of_a_cgroup_is_that_of_its_files(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "node"
    (root / "proc/10").mkdir(parents=True)
    (root / "proc/10/cgroup").write_text(f"0::/{folder.name}\n", encoding="ascii")
    (root / "sys").symlink_to(folder.parents[2])
    frame = tick(root, tmp_path, 10)
    found = {
        sample.resource: (sample.waiting_s, sample.stalled_s)
        for one in frame.readings
        for sample in one.samples
        if isinstance(sample, Pressure)
    }
    for resource in ("cpu", "io", "memory"):
        totals = re.findall(r"total=(\d+)", (folder / f"{resource}.pressure").read_text(encoding="ascii"))
        assert found[resource] == tuple(int(total) / 1e6 for total in totals)
