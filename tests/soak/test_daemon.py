# SPDX-License-Identifier: Apache-2.0
"""The real daemon under a day's count of churn and ten scrapes a second: memory, descriptors, threads, series flat.

GPUFEED_SOAK_S says for how long; `make soak` sets it.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rdma_port import write_port
from running import Process, Starter, fetch, poll

SOAK_S = float(os.environ.get("GPUFEED_SOAK_S", "75"))
WARM_UP_S = min(60.0, SOAK_S / 2.5)
SCRAPES_PER_S = 10
GROWTH_BYTES = 3_000_000
CHURN_EVERY_S = 0.2  # 1,800 in six minutes: jobs, mounts and links of a busy node's day

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SOAK_S * 3 + 120)]


@dataclass(frozen=True)
class Size:
    """Of one process."""

    resident_bytes: int
    descriptors: int
    threads: int


def size_of(pid: int) -> Size:
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text(encoding="ascii").split()[1])
    return Size(
        resident_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=len(list((folder / "fd").iterdir())),
        threads=len(list((folder / "task").iterdir())),
    )


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    starting = Starter(tmp_path)
    yield starting
    for process in starting.running:
        if process.popen.poll() is None:
            process.stop()


@dataclass
class Churn:
    """A node whose mounts have other names at every look and whose cards come and go."""

    root: Path
    turn: int = 0

    def __post_init__(self) -> None:
        for device in ("mlx5_0", "mlx5_1"):
            write_port(self.root / "sys/class/infiniband" / device)
        (self.root / "proc/1").mkdir(parents=True)
        self.next()

    def next(self) -> None:
        self.turn += 1
        mounts = "".join(
            f"device nas:/export/{name} mounted on /pods/{name} with fstype nfs4 statvers=1.1\n"
            f"\topts:\trw,vers=4.2,proto=tcp\n\tbytes:\t1 2 3 4 {self.turn} 6 7 8\n\tper-op statistics\n"
            f"\tREAD: {self.turn} 1 0 100 5000 20 30 60 0\n"
            for name in range(self.turn, self.turn + 10)
        )
        whole = self.root / "proc/1/mountstats.new"
        whole.write_text(mounts, encoding="ascii")
        whole.rename(self.root / "proc/1/mountstats")
        card = self.root / "sys/class/infiniband/mlx5_1"
        if self.turn % 20 == 0:
            shutil.rmtree(card)
        elif self.turn % 20 == 10 and not card.exists():
            write_port(card)


def children(daemon: Process) -> list[int]:
    text = Path(f"/proc/{daemon.popen.pid}/task/{daemon.popen.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in text.split()]


def test_nothing_grows(starter: Starter, tmp_path: Path) -> None:
    churn = Churn(tmp_path / "node")
    flags = (f"--path.procfs={tmp_path}/node/proc", f"--path.sysfs={tmp_path}/node/sys")
    daemon = starter.gpufeed("run", *flags, f"--path.rootfs={tmp_path}/node")
    poll(lambda: daemon.values("gpufeed_storage_read_bytes_total"), 20, "a mount")
    began_s = time.monotonic()
    before: tuple[Size, Size, int] | None = None
    scrapes = 0
    while (passed_s := time.monotonic() - began_s) < SOAK_S:
        due_s = scrapes / SCRAPES_PER_S
        if passed_s < due_s:
            time.sleep(min(0.05, due_s - passed_s))
            continue
        lines = len(fetch(daemon.url + ("/metrics", "/")[scrapes % 10 == 9]).splitlines())
        scrapes += 1
        if passed_s / CHURN_EVERY_S > churn.turn:
            churn.next()
            if churn.turn % 100 == 0:
                daemon.popen.send_signal(signal.SIGHUP)
        if before is None and passed_s > WARM_UP_S:
            before = (size_of(daemon.popen.pid), size_of(children(daemon)[0]), lines)
    assert before is not None
    after = (size_of(daemon.popen.pid), size_of(children(daemon)[0]))
    for who, old, new in zip(("server", "probe"), before, after, strict=False):
        assert isinstance(old, Size)
        assert new.resident_bytes - old.resident_bytes <= GROWTH_BYTES, f"{who}: {old} before, {new} after"
        assert new.descriptors <= old.descriptors + 3, f"{who}: {old} before, {new} after"
        assert new.threads <= old.threads + 2, f"{who}: {old} before, {new} after"
    assert max(daemon.values("gpufeed_series").values()) < 800
    assert daemon.value("gpufeed_probe_restarts_total") == 0
    assert daemon.stop() == 0
    assert scrapes > 0.8 * SOAK_S * SCRAPES_PER_S
    assert len(daemon.text().splitlines()) < 60 + churn.turn / 10
