# SPDX-License-Identifier: Apache-2.0
"""One thing hangs or dies: the rest goes on, the sick one is named, nothing false is said."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rdma_port import write_port
from running import Process, Starter, answers, free_port, poll

pytestmark = pytest.mark.fault

FUSE_SERVER = Path(__file__).with_name("fuse_server.py")


def probe_of(daemon: Process) -> int:
    """The pid of the probe: the child of the daemon that runs gpufeed.probe."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = re.search(r"^PPid:\t(\d+)", (entry / "status").read_text(encoding="utf-8"), re.MULTILINE)
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent and int(parent[1]) == daemon.popen.pid and b"gpufeed.probe" in command:
            return int(entry.name)
    pytest.fail("the daemon has no probe")


def states_of(pid: int) -> set[str]:
    """The states of a process's threads: the first is a zombie while another still sits in the kernel."""
    states: set[str] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            found = re.search(r"^State:\t(\w)", task.read_text(encoding="utf-8"), re.MULTILINE)
        except OSError:
            continue
        states.update(found[1] if found else "")
    return states


def test_a_driver_call_that_never_returns_takes_one_gpu_away_and_nothing_else(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "driver_hang", "--gpus", "8")
    stuck = poll(
        lambda: [dict(key)["gpu"] for key, value in daemon.values("gpufeed_lane_stuck_seconds").items() if value > 0],
        60,
        "a stuck lane",
    )
    assert len(stuck) == 1
    sick = stuck[0]
    first = daemon.value("gpufeed_lane_stuck_seconds", gpu=sick)
    assert first is not None
    poll(lambda: daemon.values("gpufeed_gpu_power_watts", gpu=sick) == {}, 10, "the sick GPU's series withdrawn")
    hung = poll(
        lambda: daemon.value("gpufeed_gpu_state_seconds_total", gpu=sick, state="fault", cause="hung"),
        10,
        "seconds of fault{hung}",
    )
    assert daemon.value("gpufeed_gpu_up", gpu=sick) == 0
    assert len(daemon.values("gpufeed_gpu_power_watts")) == 7
    poll(lambda: (daemon.value("gpufeed_lane_stuck_seconds", gpu=sick) or 0) > first, 10, "a growing hang")
    poll(
        lambda: (daemon.value("gpufeed_gpu_state_seconds_total", gpu=sick, state="fault", cause="hung") or 0) > hung,
        15,
        "growing seconds of fault{hung}",
    )
    assert daemon.stop() == 0


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGSEGV], ids=lambda kill: kill.name)
def test_the_server_answers_while_the_probe_dies_and_is_fresh_again(starter: Starter, kill: signal.Signals) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "healthy", "--gpus", "2")
    poll(lambda: len(daemon.values("gpufeed_gpu_power_watts")) == 2, 20, "two GPUs")
    old = probe_of(daemon)
    os.kill(old, kill)
    poll(lambda: daemon.value("gpufeed_probe_restarts_total") == 1, 15, "a second probe")

    def is_fresh() -> bool:
        ages = daemon.values("gpufeed_sample_age_seconds", collector="nvml")
        return bool(ages) and max(ages.values()) < 2 and len(daemon.values("gpufeed_gpu_power_watts")) == 2

    poll(is_fresh, 25, "fresh readings of both GPUs")
    assert probe_of(daemon) != old
    assert daemon.stop() == 0


def test_stop_is_prompt_when_healthy(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "healthy", "--gpus", "8")
    assert daemon.stop(within_s=10) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no /dev/fuse here")
def test_a_sysfs_read_that_never_returns_costs_one_device_and_not_even_a_restart(
    starter: Starter, tmp_path: Path
) -> None:
    # A read that sits in the kernel cannot be killed: whoever waits for it stays in state D until the mount lets go.
    sysfs = tmp_path / "sys"
    for device in ("mlx5_0", "mlx5_1"):
        write_port(sysfs / "class/infiniband" / device)
    hang_on = sysfs / "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"
    fuse = subprocess.Popen(
        [sys.executable, str(FUSE_SERVER), str(hang_on)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert fuse.stdin is not None
    assert fuse.stdout is not None
    try:
        if (said := fuse.stdout.readline()) != "mounted\n":
            pytest.skip(f"FUSE cannot be mounted here: {said.strip()}")
        flags = [f"--path.sysfs={sysfs}", f"--config.file={config_with_runtime(tmp_path)}"]
        port = free_port()
        first = starter.gpufeed("run", *flags, port=port)
        check_one_device_is_stuck(first)
        probe = probe_of(first)
        os.kill(probe, signal.SIGKILL)
        poll(lambda: "D" in states_of(probe), 10, "the killed probe in state D")
        poll(lambda: (first.value("gpufeed_probe_restarts_total") or 0) >= 1, 15, "a second probe")
        check_one_device_is_stuck(first)
        assert first.stop(within_s=10) == 0
        second = starter.gpufeed("run", *flags, port=port)
        check_one_device_is_stuck(second)
        assert "D" in states_of(probe)
        assert second.stop(within_s=10) == 0
    finally:
        fuse.stdin.close()
        fuse.wait(10)
        fuse.stdout.close()
    poll(lambda: states_of(probe) <= {"Z"}, 10, "the old probe released")


def check_one_device_is_stuck(daemon: Process) -> None:
    def is_so() -> bool:
        stuck = {dict(key)["lane"] for key, value in daemon.values("gpufeed_lane_stuck_seconds").items() if value > 0}
        alive = daemon.values("gpufeed_ib_port_receive_bytes_total", device="mlx5_1")
        dead = daemon.values("gpufeed_ib_port_receive_bytes_total", device="mlx5_0")
        return stuck == {"ib:mlx5_0"} and bool(alive) and not dead

    poll(is_so, 40, "mlx5_0 stuck, mlx5_1 alive")
    assert answers(daemon.url + "/-/healthy")


def config_with_runtime(folder: Path) -> Path:
    """Lane locks only meet across two daemons in a runtime directory that both know."""
    runtime = folder / "run"
    runtime.mkdir(exist_ok=True)
    config = folder / "gpufeed.yml"
    config.write_text(f"paths: {{runtime: {runtime}}}\n", encoding="utf-8")
    return config


def test_mounting_leaves_nothing_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("findmnt") is None:
        pytest.skip("findmnt is not installed")
    mounted = subprocess.run(["findmnt", "-t", "fuse.hang"], capture_output=True, text=True, check=False)
    ours = str(tmp_path_factory.getbasetemp())  # another worker may mount its own just now
    assert [line for line in mounted.stdout.splitlines() if ours in line] == []
