# SPDX-License-Identifier: Apache-2.0
"""`run` and `demo` as processes: they start, say where, reload, are told things, keep their state, and end."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from running import Process, Starter, fetch, poll

pytestmark = pytest.mark.slow


def config(folder: Path, text: str) -> Path:
    file = folder / "gpufeed.yml"
    file.write_text(text, encoding="utf-8")
    return file


def ask(path: Path, **order: object) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(10)
        asking.connect(str(path))
        asking.sendall(json.dumps(order).encode() + b"\n")
        answer: dict[str, Any] = json.loads(asking.makefile().readline())
    return answer


def gpufeed(*arguments: str, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpufeed", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s)


def test_a_wrong_configuration_is_exit_code_2_and_every_problem(tmp_path: Path) -> None:
    file = config(tmp_path, "web: {uii: 1}\nlog: {level: loud}\n")
    done = gpufeed("run", f"--config.file={file}", "--web.max-requests=x")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 3


def test_an_address_in_use_is_exit_code_3_and_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = gpufeed("run", f"--web.listen-address=127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 3
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert "--web.listen-address" in done.stderr


def test_a_reload_takes_what_is_right_and_refuses_what_is_wrong(starter: Starter, tmp_path: Path) -> None:
    file = config(tmp_path, "collectors: {nfs: {enabled: true}}\n")
    daemon = starter.gpufeed("run", f"--config.file={file}", "--web.enable-lifecycle")
    before = next(iter(daemon.values("gpufeed_config_info")))
    config(tmp_path, "web: {uii: 1}\n")
    daemon.popen.send_signal(signal.SIGHUP)
    poll(lambda: daemon.value("gpufeed_config_last_reload_successful") == 0, 10, "a failed reload")
    assert "web.uii: unknown key" in daemon.text()
    assert next(iter(daemon.values("gpufeed_config_info"))) == before
    config(tmp_path, "paths: {procfs: /elsewhere}\n")
    with pytest.raises(urllib.error.HTTPError, match="500"):
        urllib.request.urlopen(urllib.request.Request(daemon.url + "/-/reload", method="POST"), timeout=10)
    assert "paths.procfs: changes only with a restart" in daemon.text()
    config(tmp_path, "collectors: {pressure: {enabled: false}}\n")
    with urllib.request.urlopen(urllib.request.Request(daemon.url + "/-/reload", method="POST"), timeout=10) as done:
        assert done.status == 200
    poll(lambda: daemon.value("gpufeed_config_last_reload_successful") == 1, 10, "a successful reload")
    poll(lambda: not daemon.values("gpufeed_pressure_waiting_seconds_total"), 15, "pressure switched off")
    assert next(iter(daemon.values("gpufeed_config_info"))) != before
    assert daemon.stop() == 0


def test_the_control_socket_answers_its_owner(starter: Starter, tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    file = config(tmp_path, f"paths: {{runtime: {runtime}}}\n")
    daemon = starter.gpufeed("demo", "--gpus=2", f"--config.file={file}")
    control = runtime / "control.sock"
    assert control.stat().st_mode & 0o777 == 0o600
    assert ask(control, command="ping") == {"ok": True, "result": {"pid": daemon.popen.pid, "version": "0.1.0"}}
    poll(lambda: len(ask(control, command="status")["result"]["gpus"]) == 2, 20, "both GPUs")
    assert ask(control, command="status")["result"]["simulated"] is True
    assert ask(control, command="ack", gpu=1)["ok"] is True
    assert "no such GPU; there are 0 (GPU-" in ask(control, command="ack", gpu=7)["error"]
    assert ask(control, command="reload") == {"ok": True, "result": "reloaded"}
    assert "expected seconds" in ask(control, command="release", for_s=-1)["error"]
    assert ask(control, command="release", for_s=30)["ok"] is True
    poll(lambda: not daemon.values("gpufeed_gpu_power_watts"), 20, "NVML released")
    assert ask(control, command="resume")["ok"] is True
    poll(lambda: len(daemon.values("gpufeed_gpu_power_watts")) == 2, 20, "NVML open again")
    assert daemon.stop() == 0
    assert not control.exists()


def test_gpus_are_let_go_by_command_and_by_signal_and_taken_back(starter: Starter, tmp_path: Path) -> None:
    file = config(tmp_path, f"paths: {{runtime: {tmp_path / 'run'}}}\n")
    daemon = starter.gpufeed("demo", "--gpus=2", f"--config.file={file}")
    here = f"--config.file={file}"

    def shown() -> int:
        return len(daemon.values("gpufeed_gpu_power_watts"))

    poll(lambda: shown() == 2, 20, "both GPUs")
    done = gpufeed("release", "--for=30s", here)
    assert (done.returncode, done.stdout.split(";")[0]) == (0, "NVML is closed for 30s")
    poll(lambda: shown() == 0, 20, "let go by command")
    assert gpufeed("release", "--resume", here).returncode == 0
    poll(lambda: shown() == 2, 20, "taken back")
    daemon.popen.send_signal(signal.SIGUSR1)
    poll(lambda: shown() == 0, 20, "let go by signal")
    assert gpufeed("release", "--resume", here).returncode == 0
    poll(lambda: shown() == 2, 20, "taken back again")
    assert gpufeed("release", "--for=2s", here).returncode == 0
    poll(lambda: shown() == 0, 20, "let go for a while")
    poll(lambda: shown() == 2, 30, "taken back by itself")
    assert gpufeed("release", "--for=2d", here).returncode == 1
    assert daemon.stop() == 0


def test_without_a_daemon_a_release_says_where_it_looked(tmp_path: Path) -> None:
    done = gpufeed("release", f"--socket={tmp_path / 'none.sock'}")
    assert done.returncode == 3
    assert f"{tmp_path / 'none.sock'}: No such file or directory" in done.stderr
    assert gpufeed("release", "--for=soon").returncode == 2


def test_a_second_daemon_in_the_same_runtime_directory_says_so_and_serves(starter: Starter, tmp_path: Path) -> None:
    file = config(tmp_path, f"paths: {{runtime: {tmp_path / 'run'}}}\n")
    first = starter.gpufeed("run", f"--config.file={file}")
    second = starter.gpufeed("run", f"--config.file={file}")
    assert "another gpufeed serves here" in second.text()
    assert second.stop() == 0
    assert ask(tmp_path / "run" / "control.sock", command="ping")["ok"] is True
    assert first.stop() == 0


def test_demo_is_marked_and_serves_page_status_and_metrics(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--gpus=2", "--scenario=storage_starved")
    poll(lambda: len(daemon.values("gpufeed_gpu_state_seconds_total", gpu="1")) > 0, 20, "state seconds")
    assert daemon.value("gpufeed_build_info", simulated="true") == 1
    assert "Simulated node (scenario storage_starved)" in fetch(daemon.url + "/")
    assert json.loads(fetch(daemon.url + "/api/v1/status"))["scenario"] == "storage_starved"
    assert fetch(daemon.url + "/-/ready") == "gpufeed is ready\n"
    assert "Nothing it shows exists" in daemon.text()
    assert daemon.stop() == 0


def test_demo_is_built_and_run_as_its_layout_says(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--gpus=1", "--layout=kubernetes")
    owner = poll(lambda: daemon.values("gpufeed_gpu_job_info"), 20, "whose the GPU is")
    assert ("scheduler", "kubernetes") in next(iter(owner))
    assert daemon.stop() == 0


def test_the_doctor_asks_the_running_daemon_or_looks_for_itself(starter: Starter, tmp_path: Path) -> None:
    control = tmp_path / "told.sock"
    file = config(tmp_path, f"control: {{socket: {control}}}\n")
    daemon = starter.gpufeed("demo", "--gpus=2", f"--config.file={file}")
    poll(lambda: daemon.values("gpufeed_attribution_input_available"), 20, "inputs")
    asked = poll(lambda: told_by_the_doctor(file, "gpm"), 20, "GPM of both GPUs")
    assert asked[0].startswith(f"As the running daemon sees it (pid {daemon.popen.pid}, ")
    assert asked[1] == "  ✓ gpm                can be read (2 of 2) (GPM, since Hopper)"
    assert daemon.stop() == 0
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    root = config(nowhere, f"paths: {{procfs: {tmp_path}, sysfs: {tmp_path}}}\ncontrol: {{socket: {control}}}\n")
    own = gpufeed("doctor", f"--config.file={root}", "--json", timeout_s=30)
    assert own.returncode in {0, 1}
    told = json.loads(own.stdout)
    assert told["by"].startswith("No daemon answers; seen as ")
    assert {one["state"] for one in told["inputs"] if one["name"] == "block"} <= {"absent", "broken"}


def told_by_the_doctor(file: Path, name: str) -> tuple[str, str] | None:
    lines = gpufeed("doctor", f"--config.file={file}").stdout.splitlines()
    found = [line for line in lines if f" {name} " in line and "(2 of 2)" in line]
    return (lines[0], found[0]) if found else None


def test_demo_leaves_no_process_and_no_folder(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--gpus=1")
    children = Path(f"/proc/{daemon.popen.pid}/task/{daemon.popen.pid}/children").read_text(encoding="ascii").split()
    assert len(children) == 2
    command = Path(f"/proc/{children[0]}/cmdline").read_bytes().decode()
    folder = re.search(r'"--root", "([^"]+)"', command)
    assert folder is not None
    assert daemon.stop() == 0
    assert not Path(folder[1]).exists()
    left = [Path(f"/proc/{child}") for child in children]
    poll(lambda: not any(process.exists() for process in left), 10, "the end of both children")


def test_what_a_node_had_is_remembered_over_a_restart(starter: Starter, tmp_path: Path) -> None:
    state = tmp_path / "state"
    file = config(tmp_path, f"paths: {{state: {state}}}\n")
    first = starter.gpufeed("demo", "--gpus=2", f"--config.file={file}")
    poll(lambda: first.value("gpufeed_gpus_present") == 2, 20, "both GPUs")
    assert first.stop() == 0
    assert {path.name for path in state.iterdir()} >= {"node.blob", "alerts.blob", "events.blob"}
    second = starter.gpufeed("demo", "--gpus=1", f"--config.file={file}")
    poll(lambda: second.value("gpufeed_gpus_present") == 1, 20, "the one GPU that is left")
    poll(lambda: second.value("gpufeed_gpus_expected", origin="inventory") == 2, 20, "that two are expected")
    assert second.stop() == 0


def test_systemd_is_told_of_start_reload_life_and_end(starter: Starter, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify.sock"))
        told.settimeout(20)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify.sock"), "WATCHDOG_USEC": "900000"}
        daemon = starter.gpufeed("run", environment=environment)
        assert told.recv(1024).startswith(b"READY=1\nSTATUS=Serving on 127.0.0.1:")
        assert told.recv(1024) == b"WATCHDOG=1"
        assert told.recv(1024) == b"WATCHDOG=1"
        daemon.popen.send_signal(signal.SIGHUP)
        said = list(until(told, b"READY=1"))
        assert any(one.startswith(b"RELOADING=1\nMONOTONIC_USEC=") for one in said)
        daemon.popen.send_signal(signal.SIGTERM)
        assert b"STOPPING=1" in list(until(told, b"STOPPING=1"))
        assert daemon.stop() == 0


def until(told: socket.socket, start: bytes) -> Iterator[bytes]:
    while True:
        said = told.recv(1024)
        yield said
        if said.startswith(start):
            return


HAND_OVER = """
import os, socket, sys
listening = socket.create_server(("127.0.0.1", 0))
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-m", "gpufeed", "run", "--web.systemd-socket"])
"""


def test_sockets_of_systemd_are_served(starter: Starter) -> None:
    process = starter.start(sys.executable, "-c", HAND_OVER)
    found = poll(lambda: re.search(r"address=(127\.0\.0\.1:\d+)", process.text()), 20, "the address")
    poll(lambda: answers(f"http://{found[1]}/-/healthy"), 10, "an answer")
    assert process.stop() == 0


def test_no_socket_of_systemd_is_an_error() -> None:
    done = gpufeed("run", "--web.systemd-socket")
    assert (done.returncode, "systemd handed over no socket" in done.stderr) == (2, True)


def answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return "healthy" in fetch(url)
    return False


def test_a_stop_frees_the_port_at_once(starter: Starter) -> None:
    first = starter.gpufeed("run")
    port = int(first.url.rpartition(":")[2])
    os.kill(first.popen.pid, signal.SIGTERM)
    poll(lambda: "stopping" in first.text(), 10, "the stop")
    second: Process = starter.gpufeed("run", port=port)
    assert first.stop() == 0
    assert second.stop() == 0
