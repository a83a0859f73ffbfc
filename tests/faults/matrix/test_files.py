# SPDX-License-Identifier: Apache-2.0
"""A file of one device goes bad: what it tells is absent, its neighbour's is fresh, and it is back once it is good."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.conftest import Recovery
from rdma_port import write_port
from running import Process, Starter, poll

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(120)]

BAD = "class/infiniband/mlx5_0/ports/1"
DISKSTATS = "   8       0 sda 10 0 80 4 20 0 160 9 0 5 13\n"


@dataclass
class Node:
    """A daemon over files that a test changes, and its first device's counter."""

    daemon: Process
    sysfs: Path
    procfs: Path

    def bytes_of(self, device: str) -> float | None:
        return self.daemon.value("gpufeed_ib_port_receive_bytes_total", device=device)

    def is_neighbour_fresh(self) -> bool:
        value = int((self.daemon.value("gpufeed_ib_port_receive_bytes_total", device="mlx5_1") or 0) / 4)
        counter = self.sysfs / "class/infiniband/mlx5_1/ports/1/counters/port_rcv_data"
        counter.write_text(f"{value + 7}\n", encoding="ascii")
        return bool(poll(lambda: self.bytes_of("mlx5_1") == (value + 7) * 4, 20, "a new value of the other device"))


@pytest.fixture(scope="module")
def node(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    root = tmp_path_factory.mktemp("node")
    sysfs, procfs = root / "sys", root / "proc"
    for device in ("mlx5_0", "mlx5_1"):
        write_port(sysfs / "class/infiniband" / device)
    procfs.mkdir()
    (procfs / "diskstats").write_text(DISKSTATS, encoding="ascii")
    config = root / "gpufeed.yml"
    config.write_text("sampling: {slow_period: 1s, rare_period: 10s}\n", encoding="ascii")
    daemon = starter.gpufeed("run", f"--path.sysfs={sysfs}", f"--path.procfs={procfs}", f"--config.file={config}")
    node = Node(daemon, sysfs, procfs)
    poll(lambda: node.bytes_of("mlx5_0") == 4000 and node.bytes_of("mlx5_1") == 4000, 20, "both devices")
    yield node
    assert daemon.value("gpufeed_probe_restarts_total") == 0
    assert len(daemon.text().splitlines()) < 100  # of all rows together


def gone(file: Path) -> None:
    file.unlink()


def refuses(file: Path) -> None:
    file.unlink()
    (file / ".read-fails").mkdir(parents=True)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garbage(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 8)


def huge(file: Path) -> None:
    file.write_bytes(b"9" * 8_000_000)


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def negative(file: Path) -> None:
    file.write_bytes(b"-5\n")


def words(file: Path) -> None:
    file.write_bytes(b"N/A (no PMA)\n")


def clear(file: Path) -> None:
    """Whatever stands there is no more."""
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


Damage = Callable[[Path], None]
DAMAGES: tuple[Damage, ...] = (gone, refuses, empty, garbage, huge, a_pipe, a_loop, negative, words)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.replace("_", " "))
def test_a_counter_of_one_card_is(node: Node, damage: Damage, recovery: Recovery) -> None:
    counter = node.sysfs / BAD / "counters/port_rcv_data"
    damage(counter)
    poll(lambda: node.bytes_of("mlx5_0") is None, 20, "the damaged counter to be absent")
    assert node.is_neighbour_fresh()
    assert (
        node.daemon.value("gpufeed_ib_port_transmit_bytes_total", device="mlx5_0") == 8000
    )  # the same card's other file
    recovery.lifted()
    clear(counter)
    counter.write_text("1000\n", encoding="ascii")
    poll(lambda: node.bytes_of("mlx5_0") == 4000, 20, "the counter back")
    recovery.well()


def test_a_card_vanishes_and_comes_back(node: Node, recovery: Recovery) -> None:
    card = node.sysfs / "class/infiniband/mlx5_0"
    card.rename(node.sysfs / "away")
    poll(lambda: node.daemon.values("gpufeed_ib_port_state_id", device="mlx5_0") == {}, 30, "all of the card absent")
    assert node.is_neighbour_fresh()
    recovery.lifted()
    (node.sysfs / "away").rename(card)
    poll(lambda: node.bytes_of("mlx5_0") == 4000, 30, "the card back")
    recovery.well()


def test_a_card_has_a_name_that_is_no_text(node: Node, recovery: Recovery) -> None:
    odd = os.fsencode(node.sysfs / "class/infiniband") + b"/mlx\xff\n0"
    shutil.copytree(node.sysfs / "class/infiniband/mlx5_1", os.fsdecode(odd))
    assert node.is_neighbour_fresh()
    recovery.lifted()
    shutil.rmtree(os.fsdecode(odd))
    assert node.is_neighbour_fresh()
    recovery.well()


def test_a_counter_starts_anew(node: Node, recovery: Recovery) -> None:
    counter = node.sysfs / BAD / "counters/port_rcv_data"
    counter.write_text("3\n", encoding="ascii")
    poll(lambda: node.bytes_of("mlx5_0") == 12, 20, "the counter as the kernel has it")
    recovery.lifted()
    counter.write_text("1000\n", encoding="ascii")
    poll(lambda: node.bytes_of("mlx5_0") == 4000, 20, "it going on")
    recovery.well()


@pytest.mark.parametrize("damage", [gone, refuses, empty, garbage], ids=lambda damage: damage.__name__)
def test_the_table_of_disks_is(node: Node, damage: Damage, recovery: Recovery) -> None:
    table = node.procfs / "diskstats"
    damage(table)
    poll(lambda: node.daemon.values("gpufeed_storage_read_bytes_total", kind="block") == {}, 40, "disks to be absent")
    assert node.is_neighbour_fresh()
    recovery.lifted()
    clear(table)
    table.write_text(DISKSTATS, encoding="ascii")
    poll(lambda: node.daemon.value("gpufeed_storage_read_bytes_total", target="sda") == 80 * 512, 40, "the disk back")
    recovery.well()
