# SPDX-License-Identifier: Apache-2.0
"""Disk, configuration and receivers fail: the daemon goes on with what it had and says so."""

import signal
import socket
import time
from pathlib import Path

import pytest

from faults.conftest import Recovery
from running import Starter, fetch, free_port, poll

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(120)]

AT_ONCE = "thresholds: {GpuLost: {for: 0s}}"


def config(folder: Path, text: str) -> Path:
    file = folder / "gpufeed.yml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_state_directory_cannot_be_written(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    (tmp_path / "file").write_text("a file, not a directory", encoding="ascii")
    daemon = starter.gpufeed(
        "demo", "--gpus=1", f"--config.file={config(tmp_path, f'paths: {{state: {tmp_path}/file/x}}')}"
    )
    poll(lambda: daemon.values("gpufeed_gpu_power_watts"), 20, "a GPU all the same")
    recovery.well()
    assert daemon.stop() == 0
    assert len(daemon.text().splitlines()) < 40


def test_the_saved_state_is_damaged(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    state = tmp_path / "state"
    state.mkdir()
    for name in ("node.blob", "alerts.blob"):
        (state / name).write_bytes(b"\xc1garbage" * 1000)
    file = config(tmp_path, f"paths: {{state: {state}}}")
    daemon = starter.gpufeed("demo", "--gpus=1", f"--config.file={file}")
    poll(lambda: daemon.values("gpufeed_gpu_power_watts"), 20, "a GPU all the same")
    recovery.well()
    assert daemon.stop() == 0
    assert not (state / "node.blob").read_bytes().startswith(b"\xc1garbage")
    assert "node.blob is damaged" in daemon.text()


def test_a_configuration_is_reloaded_with_a_mistake(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    file = config(tmp_path, "sampling: {fast_period: 500ms}")
    daemon = starter.gpufeed("demo", "--gpus=1", f"--config.file={file}")
    poll(lambda: daemon.values("gpufeed_gpu_power_watts"), 20, "a GPU")
    tracked = daemon.value("gpufeed_gpu_tracked_seconds_total") or 0
    config(tmp_path, "sampling: {fast_period: never}")
    daemon.popen.send_signal(signal.SIGHUP)
    poll(lambda: daemon.value("gpufeed_config_last_reload_successful") == 0, 15, "the mistake seen")
    assert daemon.values("gpufeed_gpu_power_watts")
    config(tmp_path, "sampling: {fast_period: 250ms}")
    recovery.lifted()
    daemon.popen.send_signal(signal.SIGHUP)
    poll(lambda: daemon.value("gpufeed_config_last_reload_successful") == 1, 15, "what is right in force")
    recovery.well()
    poll(lambda: (daemon.value("gpufeed_gpu_tracked_seconds_total") or 0) > tracked, 15, "counters that went on")
    assert daemon.value("gpufeed_probe_restarts_total") == 0
    assert daemon.stop() == 0


def test_a_receiver_takes_connections_and_never_answers(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as mute:
        address = mute.getsockname()[1]
        text = f"alerting: {{alertmanagers: [{{url: 'http://127.0.0.1:{address}', timeout: 1s}}], {AT_ONCE}}}"
        daemon = starter.gpufeed("demo", "--scenario=gpu_lost", "--gpus=4", f"--config.file={config(tmp_path, text)}")
        poll(lambda: daemon.values("gpufeed_alerts", state="firing"), 40, "an alert that fires")
        began_s = time.monotonic()
        fetch(daemon.url + "/metrics")
        assert time.monotonic() - began_s < 2
        recovery.lifted()
        assert daemon.stop(within_s=15) == 0
        recovery.well()


def test_a_receiver_is_not_there(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    text = f"alerting: {{webhooks: [{{url: 'http://127.0.0.1:{free_port()}/hook'}}], {AT_ONCE}}}"
    daemon = starter.gpufeed("demo", "--scenario=gpu_lost", "--gpus=4", f"--config.file={config(tmp_path, text)}")
    poll(lambda: daemon.values("gpufeed_alerts", state="firing"), 40, "an alert that fires")
    time.sleep(3)  # of failing
    recovery.well()
    assert len(daemon.text().splitlines()) < 40
    assert daemon.stop() == 0


def test_something_fails_for_good(starter: Starter, tmp_path: Path, recovery: Recovery) -> None:
    procfs = tmp_path / "proc"
    procfs.mkdir()
    for name in ("diskstats", "stat", "meminfo"):
        (procfs / name).write_bytes(b"\xff" * 5_000)
    daemon = starter.gpufeed("run", f"--path.procfs={procfs}", f"--path.sysfs={tmp_path}")
    poll(lambda: (daemon.value("gpufeed_collector_errors_total", collector="block") or 0) > 20, 60, "twenty failures")
    recovery.well()
    assert len(daemon.text().splitlines()) < 40
    assert daemon.stop() == 0
