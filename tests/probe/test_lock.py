# SPDX-License-Identifier: Apache-2.0
"""Lane locks: who holds one, who only seems to, and what a successor does."""

import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.ids import LaneId
from gpufeed.probe.lock import Holder, LaneLock, format_holder, is_alive, parse_holder

LANE = LaneId("nfs:/data set")


@pytest.fixture
def locks(tmp_path: Path) -> Iterator[tuple[LaneLock, LaneLock]]:
    """Two owners of one lane: two open files conflict as two processes do."""
    pair = LaneLock(str(tmp_path), LANE), LaneLock(str(tmp_path), LANE)
    yield pair
    for lock in pair:
        lock.close()


def holder_in(path: Path) -> Holder:
    found = parse_holder(path.read_bytes())
    assert found is not None
    return found


def a_thread_that_is_gone(path: Path) -> bytes:
    """The lock file's text as a thread that has ended would have left it."""
    tids: list[int] = []
    thread = threading.Thread(target=lambda: tids.append(threading.get_native_id()))
    thread.start()
    thread.join()
    return format_holder(replace(holder_in(path), tid=tids[0]))


def test_a_free_lane_is_taken_and_names_its_thread(locks: tuple[LaneLock, LaneLock]) -> None:
    assert locks[0].acquire(5) is None
    found = holder_in(locks[0].path)
    assert (found.pid, found.tid, found.began_ns) == (os.getpid(), threading.get_native_id(), 5)
    assert is_alive(found)
    assert locks[0].path.parent.name == "lanes"
    assert "/" not in locks[0].path.name


def test_a_lane_in_use_names_its_holder_and_since_when(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    holder = locks[1].acquire(9)
    assert holder is not None
    assert (holder.pid, holder.began_ns) == (os.getpid(), 5)


def test_a_lane_given_back_can_be_taken_by_the_other(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    locks[0].release()
    assert locks[1].acquire(9) is None
    assert locks[0].acquire(10) is not None


def test_a_lock_whose_thread_is_gone_is_stale_and_replaced(locks: tuple[LaneLock, LaneLock]) -> None:
    # a killed process keeps all its locks while one of its threads is stuck in the kernel; this thread was another
    locks[0].acquire(5)
    locks[0].path.write_bytes(a_thread_that_is_gone(locks[0].path))
    assert locks[1].acquire(9) is None
    assert holder_in(locks[1].path).began_ns == 9


def test_the_old_owner_of_a_replaced_lock_notices(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    locks[0].path.write_bytes(a_thread_that_is_gone(locks[0].path))
    locks[1].acquire(9)
    locks[0].release()
    holder = locks[0].acquire(11)
    assert holder is not None
    assert holder.began_ns == 9


def test_a_thread_of_the_same_number_that_began_later_is_another(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    later = replace(holder_in(locks[0].path), thread_started="1")
    assert not is_alive(later)


def test_a_thread_of_another_pid_namespace_is_taken_to_be_alive(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    elsewhere = replace(holder_in(locks[0].path), namespace="pid:[1]", pid=2**22 - 1)
    assert is_alive(elsewhere)


def test_a_zombie_holds_nothing(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    started = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    assert not is_alive(replace(holder_in(locks[0].path), pid=pid, tid=pid, thread_started=started))
    os.waitpid(pid, 0)
    assert not is_alive(replace(holder_in(locks[0].path), pid=pid, tid=pid, thread_started=started))


def test_a_held_lock_that_names_nobody_is_held(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    locks[0].path.write_bytes(b"")
    holder = locks[1].acquire(9)
    assert holder is not None
    assert (holder.pid, holder.began_ns) == (0, 9)


def test_only_one_of_two_successors_replaces_a_stale_lock(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    locks[0].path.write_bytes(a_thread_that_is_gone(locks[0].path))
    directory = os.open(locks[0].path.parent, os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    assert locks[1].acquire(9) is not None
    os.close(directory)
    assert locks[1].acquire(10) is None


def test_a_lock_file_that_was_deleted_is_made_anew(locks: tuple[LaneLock, LaneLock]) -> None:
    locks[0].acquire(5)
    locks[0].release()
    locks[0].path.unlink()
    assert locks[0].acquire(6) is None
    assert locks[1].acquire(7) is not None


def test_a_directory_that_cannot_be_used_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        LaneLock(str(tmp_path / "file"), LANE).acquire(1)


@given(st.binary(max_size=140))
def test_any_bytes_name_a_holder_or_nobody(text: bytes) -> None:
    assert parse_holder(text) is None or isinstance(parse_holder(text), Holder)


@given(st.integers(0, 2**22), st.integers(0, 2**22), st.integers(0, 2**63))
def test_what_is_written_can_be_read(pid: int, tid: int, began_ns: int) -> None:
    holder = Holder(pid=pid, tid=tid, thread_started="123456", namespace="pid:[4026531836]", began_ns=began_ns)
    assert parse_holder(format_holder(holder)) == holder
