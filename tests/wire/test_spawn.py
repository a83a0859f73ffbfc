# SPDX-License-Identifier: Apache-2.0
"""Processes we start: what they inherit, what they may import, however the package lies there."""

import json
import os
import shutil
import socket
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

import gpufeed
from gpufeed.errors import SpawnError
from gpufeed.wire.spawn import Child, reap_abandoned, spawn_python
from probing import copy_package
from running import poll

UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
"""Copies of the package are not what coverage is about."""

TELL = """
import json, os, sys

def main():
    fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    facts = {"arguments": sys.argv[1:], "fds": fds, "session": os.getsid(0) == os.getpid(), "utf8": sys.flags.utf8_mode,
             "environment": sorted(os.environ), "input": os.readlink("/proc/self/fd/0")}
    with open(sys.argv[1], "w") as file:
        json.dump(facts, file)
    return 7
"""


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `tell` on the import path; where it is to write."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "tell.py").write_text(TELL, encoding="utf-8")
    monkeypatch.syspath_prepend(str(packages))
    return tmp_path / "told.json"


def end_of(child: Child) -> int:
    poll(lambda: child.poll() is not None, 10, "the end of the child")
    code = child.poll()
    assert code is not None
    return code


def test_a_child_runs_main_of_a_module_and_gives_its_exit_code(tell: Path) -> None:
    assert end_of(spawn_python("tell", [str(tell), "two words"])) == 7
    facts = json.loads(tell.read_text(encoding="utf-8"))
    assert facts["arguments"] == [str(tell), "two words"]
    assert facts["session"]
    assert facts["utf8"]
    assert facts["input"] == "/dev/null"


def test_a_child_inherits_the_named_descriptor_and_no_listening_socket(tell: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        os.set_inheritable(listener.fileno(), True)
        assert end_of(spawn_python("tell", [str(tell)], [theirs.fileno()])) == 7
        fds = json.loads(tell.read_text(encoding="utf-8"))["fds"]
        assert theirs.fileno() in fds
        assert listener.fileno() not in fds
        assert ours.fileno() not in fds


def test_a_child_does_not_talk_to_the_service_manager(tell: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/nvidia")
    assert end_of(spawn_python("tell", [str(tell)])) == 7
    environment = json.loads(tell.read_text(encoding="utf-8"))["environment"]
    assert "LD_LIBRARY_PATH" in environment
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"} & set(environment)


def test_an_interpreter_that_is_gone_is_a_spawn_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SpawnError, match="/no/such/python"):
        spawn_python("tell")


def test_signals_end_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wait_for_ever.py").write_text("import signal\n\ndef main():\n    signal.pause()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    first, second = spawn_python("wait_for_ever"), spawn_python("wait_for_ever")
    assert first.poll() is None
    first.kill()
    assert end_of(first) == -9
    first.kill()  # a process that is gone is no error
    second.kill()
    second.abandon()
    poll(lambda: not is_ours(second.pid), 10, "the second one reaped")


def is_ours(pid: int) -> bool:
    reap_abandoned()
    return Path(f"/proc/{pid}").exists()


ASK = """
import socket, sys
from gpufeed.wire.build_id import build_id
from gpufeed.wire.framing import Decoder
from gpufeed.wire.spawn import spawn_python

def main():
    ours, theirs = socket.socketpair()
    with theirs:
        child = spawn_python("gpufeed.probe.main", [str(theirs.fileno())], [theirs.fileno()])
    with ours:
        hello = next(Decoder().feed(ours.recv(4096)))
    print(hello.build_id == build_id(), hello.pid == child.pid, build_id())
    while child.poll() is None:
        pass

if __name__ == "__main__":
    main()
"""


def hello_of(command: list[str]) -> str:
    """What a probe says that was started by this program."""
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50, env=UNMEASURED)
    assert found.stdout.startswith("True True "), found.stdout + found.stderr
    return found.stdout.split()[2]


@pytest.mark.slow
def test_a_probe_starts_from_a_zip_archive(tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    copy_package(stage)
    (stage / "ask.py").write_text(ASK, encoding="utf-8")
    zipapp.create_archive(stage, tmp_path / "gpufeed.pyz", main="ask:main")
    shutil.rmtree(stage)
    dependencies = [entry for entry in sys.path if not Path(entry, "gpufeed").exists()]
    path = os.pathsep.join(filter(None, dependencies))
    command = ["env", f"PYTHONPATH={path}", sys.executable, "-S", str(tmp_path / "gpufeed.pyz")]
    assert hello_of(command) == hello_of(command)


@pytest.mark.slow
def test_a_probe_starts_from_a_folder_that_only_the_parent_knows(tmp_path: Path) -> None:
    copy_package(tmp_path)
    (tmp_path / "ask.py").write_text(ASK, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "ask.py")]
    assert hello_of(command) == hello_of(command)


def test_the_build_id_names_the_version_and_changes_with_any_module(tmp_path: Path) -> None:
    def id_of(folder: Path) -> str:
        code = f"import sys; sys.path.insert(0, {str(folder)!r}); from gpufeed.wire.build_id import build_id; "
        command = [sys.executable, "-c", code + "print(build_id())"]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=UNMEASURED).stdout.strip()

    copy_package(tmp_path)
    before = id_of(tmp_path)
    assert before.startswith(f"{gpufeed.__version__}+")
    assert id_of(tmp_path) == before, "byte code written meanwhile does not count"
    os.utime(tmp_path / "gpufeed" / "units.py", ns=(1, 1))
    assert id_of(tmp_path) != before
