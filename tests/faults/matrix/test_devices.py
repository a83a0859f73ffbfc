# SPDX-License-Identifier: Apache-2.0
"""GPUs and their driver vanish, come late, change: those that are well are fresh, and nothing needs a restart."""

import pytest

from faults.conftest import Recovery
from running import Process, Starter, poll

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(120)]


def powered(daemon: Process) -> set[str]:
    return {dict(key)["gpu"] for key in daemon.values("gpufeed_gpu_power_watts")}


def test_there_is_no_driver_at_the_start_and_one_later(starter: Starter, recovery: Recovery) -> None:
    daemon = starter.gpufeed("demo", "--scenario=driver_absent_then_present", "--gpus=2")
    poll(lambda: daemon.values("gpufeed_storage_read_bytes_total", kind="nfs"), 20, "storage, without any driver")
    assert powered(daemon) == set()
    recovery.lifted()
    poll(lambda: powered(daemon) == {"0", "1"}, 60, "both GPUs once the driver is there")
    recovery.well()
    assert daemon.value("gpufeed_probe_up") == 1
    assert daemon.stop() == 0


def test_a_gpu_falls_off_its_bus(starter: Starter, recovery: Recovery) -> None:
    daemon = starter.gpufeed("demo", "--scenario=gpu_lost", "--gpus=8")
    poll(lambda: len(powered(daemon)) == 8, 20, "all eight")
    recovery.lifted()
    poll(lambda: daemon.value("gpufeed_gpu_up", gpu="3") == 0, 30, "the lost one named")
    poll(lambda: powered(daemon) == set("0124567"), 30, "the other seven alone")
    recovery.well()
    poll(
        lambda: daemon.value("gpufeed_gpu_state_seconds_total", gpu="3", state="fault", cause="lost"),
        30,
        "its time in fault{lost}",
    )
    assert daemon.value("gpufeed_probe_restarts_total") == 0
    assert daemon.stop() == 0


def test_a_board_is_split_anew(starter: Starter, recovery: Recovery) -> None:
    daemon = starter.gpufeed("demo", "--scenario=mig_recreated", "--gpus=4")
    before = poll(lambda: instances(daemon) if len(instances(daemon)) > 3 else None, 30, "seven instances")
    recovery.lifted()
    poll(lambda: len(instances(daemon)) == 3, 60, "three others in their place")
    recovery.well()
    assert not instances(daemon) >= before
    assert daemon.stop() == 0


def instances(daemon: Process) -> set[str]:
    rows = daemon.values("gpufeed_gpu_memory_total_bytes", gpu="3")
    return {dict(key).get("gpu_instance", "") for key in rows} - {""}


def test_a_port_goes_down(starter: Starter, recovery: Recovery) -> None:
    daemon = starter.gpufeed("demo", "--scenario=ib_port_down", "--gpus=4")
    poll(lambda: daemon.values("gpufeed_ib_port_state_id"), 20, "ports")
    recovery.lifted()
    poll(lambda: 1 in daemon.values("gpufeed_ib_port_state_id").values(), 40, "a port that is down")
    recovery.well()
    assert len(powered(daemon)) == 4
    assert daemon.stop() == 0
