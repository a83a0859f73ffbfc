# SPDX-License-Identifier: Apache-2.0
"""A Debian with a real systemd in a container of this machine: made with mmdebstrap, booted with systemd-nspawn."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

INCLUDED: Final = "systemd,systemd-sysv,dbus,procps,python3,curl,init-system-helpers,openssl"
_TOOLS: Final = ("mmdebstrap", "systemd-nspawn", "nsenter")
_BOOT_WITHIN_S: Final = 60.0


def why_not() -> str:
    """Why no container can be had here; empty: one can."""
    if not os.environ.get("GPUFEED_CONTAINERS"):
        return "set GPUFEED_CONTAINERS=1 to build packages and try them under a real systemd (minutes, root)"
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


class NoContainerError(Exception):
    """This machine cannot make or boot one; the text says what its tools said."""


def make_root(suite: str, folder: Path) -> Path:
    """A minimal Debian of that suite below `folder`, unless it is there; NoContainerError: none can be made."""
    root = folder / suite
    if not (root / "sbin" / "init").exists():
        excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
        command = ["mmdebstrap", "--variant=minbase", f"--include={INCLUDED}", *excluded, suite, str(root)]
        made = subprocess.run(command, check=False, capture_output=True)
        if made.returncode != 0:
            said = made.stderr.decode(errors="replace").splitlines()
            raise NoContainerError(f"mmdebstrap {suite} failed ({made.returncode}): {' | '.join(said[-6:])}")
    return root


class Container:
    """Booted; commands run inside it as root."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root = root
        self._leader = leader

    def run(self, *command: str, check: bool = True, timeout_s: float = 60.0) -> str:
        """What a command inside says; an assertion fails with all of it where it fails."""
        done = self.popen(*command).communicate(timeout=timeout_s)
        text = done[0].decode(errors="replace")
        assert not check or self._last.returncode == 0, f"{' '.join(command)}: {self._last.returncode}: {text}"
        return text

    @property
    def returncode(self) -> int:
        """Of the command that ended last."""
        return int(self._last.returncode)

    def shell(self, script: str, *, check: bool = True, timeout_s: float = 60.0) -> str:
        """The same for a line of shell."""
        return self.run("/bin/sh", "-c", script, check=check, timeout_s=timeout_s)

    def popen(self, *command: str) -> "subprocess.Popen[bytes]":
        """A command inside, with its output and errors in one pipe."""
        entered = ["nsenter", "-t", str(self._leader), "-m", "-u", "-i", "-n", "-p", "-C"]
        clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        self._last = subprocess.Popen(
            [*entered, *clean, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return self._last

    def in_its_network(self, *command: str) -> "subprocess.Popen[bytes]":
        """A command of this machine that sees the container's network, such as a Prometheus that scrapes it."""
        entered = ["nsenter", "-t", str(self._leader), "-n", *command]
        return subprocess.Popen(entered, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.run("systemctl", "show", "-P", name, unit).strip()

    def pid(self, unit: str = "gpufeed") -> int:
        """Of a unit's main process, as seen inside."""
        return int(self.show(unit, "MainPID"))

    def until(self, script: str, within_s: float, what: str) -> str:
        """Poll a line of shell until it succeeds; what it says."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            text = self.shell(script, check=False)
            if self._last.returncode == 0:
                return text
            time.sleep(0.2)
        journal = self.shell("journalctl -n 40 --no-pager", check=False)
        raise AssertionError(f"within {within_s} s not seen: {what}; {script}: {text}\n{journal}")


@contextlib.contextmanager
def booted(root: Path) -> Iterator[Container]:
    """Boot, and power off at the end. Its network is its own, without a way out."""
    environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
    command = [
        "systemd-nspawn",
        "--register=no",
        "--keep-unit",
        "-q",
        "-D",
        str(root),
        f"--machine=gpufeed-{os.getpid()}",
    ]
    command += ["--boot", "--private-network", "--console=read-only", "--link-journal=no"]
    command += ["--capability=all", "--system-call-filter=bpf @mount"]
    with (root.parent / f"{root.name}.console").open("wb") as console:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=environment)
    try:
        container = _wait(process, root)
        yield container
        container.run("systemctl", "poweroff", check=False)
        process.wait(30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait(process: "subprocess.Popen[bytes]", root: Path) -> Container:
    deadline_s = time.monotonic() + _BOOT_WITHIN_S
    while time.monotonic() < deadline_s and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children:
            container = Container(root, int(children[0]))
            state = container.run("systemctl", "is-system-running", "--wait", check=False).strip()
            if state in {"running", "degraded"}:
                return container
        time.sleep(0.1)
    said = (root.parent / f"{root.name}.console").read_text(errors="replace").splitlines()
    raise NoContainerError(f"a Debian without gpufeed does not boot in systemd-nspawn here: {' | '.join(said[-4:])}")
