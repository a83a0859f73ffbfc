# SPDX-License-Identifier: Apache-2.0
"""Reading of pseudo-files."""

import errno
import os

import pytest

from gpufeed.errors import Absent, Broken, Denied, SourceError, Unsupported
from gpufeed.sources.files import ATTRIBUTE_BYTES, TABLE_BYTES, HeldFile, Tree, is_plain
from host_bench import HostBench, failing, open_files


def test_a_file_is_read_and_counted_and_named_while_it_may_hang(bench: HostBench) -> None:
    bench.write("sys/class/x/rate", "400 Gb/sec\n")
    desk = bench.desk()
    assert Tree(bench.config.sysfs, desk).attribute("class/x/rate") == b"400 Gb/sec\n"
    assert desk.counts.file_reads == 1
    assert desk.call == f"{bench.root}/sys/class/x/rate"


@pytest.mark.parametrize("path", ["gone", "gone/rate", "rate/below"])
def test_what_is_not_there_is_absent(bench: HostBench, path: str) -> None:
    bench.write("sys/rate", "1")
    tree = Tree(bench.config.sysfs, bench.desk())
    for call in (tree.attribute, tree.table, tree.names, tree.link):
        with pytest.raises(Absent, match=path):
            call(path)


def test_a_directory_in_place_of_a_file_is_broken(bench: HostBench) -> None:
    bench.refuse("sys/rate")
    tree = Tree(bench.config.sysfs, bench.desk())
    for call in (tree.attribute, tree.table):
        with pytest.raises(Broken, match="Is a directory"):
            call("rate")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENODEV, Absent),
        (errno.ESRCH, Absent),
        (errno.EINVAL, Unsupported),
        (errno.EOPNOTSUPP, Unsupported),
        (errno.EACCES, Denied),
        (errno.EPERM, Denied),
        (errno.EIO, Broken),
    ],
)
def test_each_error_of_a_read_has_its_word(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[SourceError]
) -> None:
    bench.write("sys/counter", "1\n")
    refused = OSError(number, os.strerror(number))
    monkeypatch.setattr(os, "read", failing(os.read, refused))
    monkeypatch.setattr(os, "pread", failing(os.pread, refused))
    tree = Tree(bench.config.sysfs, bench.desk())
    for call in (tree.attribute, tree.table, lambda path: HeldFile(bench.config.sysfs, path, bench.desk()).read()):
        with pytest.raises(kind) as caught:
            call("counter")
        assert type(caught.value) is kind


def test_a_pipe_in_place_of_a_file_does_not_hang(bench: HostBench) -> None:
    os.mkfifo(bench.root / "sys/pipe")
    tree = Tree(bench.config.sysfs, bench.desk())
    assert tree.attribute("pipe") == b""
    with pytest.raises(Broken):
        tree.table("pipe")


def test_a_file_without_end_is_broken(bench: HostBench) -> None:
    bench.write("sys/attribute", b"x" * (ATTRIBUTE_BYTES + 1))
    with (bench.root / "proc/table").open("wb") as table:
        table.truncate(TABLE_BYTES + 1)
    with pytest.raises(Broken, match="longer than 4096 bytes"):
        Tree(bench.config.sysfs, bench.desk()).attribute("attribute")
    with pytest.raises(Broken, match="longer than"):
        Tree(bench.config.procfs, bench.desk()).table("table")
    with pytest.raises(Broken, match="longer than"):
        HeldFile(bench.config.procfs, "table", bench.desk()).read()


def test_a_table_larger_than_a_page_is_read_whole(bench: HostBench) -> None:
    data = os.urandom(300_000)
    bench.write("proc/table", data)
    assert Tree(bench.config.procfs, bench.desk()).table("table") == data
    assert HeldFile(bench.config.procfs, "table", bench.desk()).read() == data


def test_an_empty_file_is_empty(bench: HostBench) -> None:
    bench.write("proc/table", "")
    assert Tree(bench.config.procfs, bench.desk()).table("table") == b""


def test_names_that_could_lead_elsewhere_are_left_out(bench: HostBench) -> None:
    for name in ("mlx5_0", "..hidden", "bad\nname", "ctrl\x07", "back\\slash"):
        (bench.root / "sys" / name).mkdir()
    (bench.root / "sys" / os.fsdecode(b"not\xffutf8")).mkdir()
    assert Tree(bench.config.sysfs, bench.desk()).names("") == ("..hidden", "back\\slash", "mlx5_0")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "a\x00b", "a\tb", "\udcff"])
def test_a_name_is_one_printable_component(name: str) -> None:
    assert not is_plain(name)


def test_a_link_gives_the_name_of_what_it_points_to(bench: HostBench) -> None:
    (bench.root / "sys/device").symlink_to("../../../0000:18:00.0")
    tree = Tree(bench.config.sysfs, bench.desk())
    assert tree.link("device") == "0000:18:00.0"
    assert tree.has("device")
    assert not tree.has("physfn")


def test_a_held_file_is_opened_once_and_sees_what_changes(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("proc/stat", "first")
    held = HeldFile(bench.config.procfs, "stat", bench.desk())
    assert held.read() == b"first"
    monkeypatch.setattr(os, "open", failing(os.open, OSError(errno.EIO, "no second open")))
    bench.write("proc/stat", "second one")
    assert held.read() == b"second one"
    held.close()
    held.close()


def test_a_held_file_that_was_replaced_is_opened_anew(bench: HostBench) -> None:
    bench.write("proc/stat", "old")
    held = HeldFile(bench.config.procfs, "stat", bench.desk())
    held.read()
    bench.write("proc/new", "new")
    (bench.root / "proc/new").rename(bench.root / "proc/stat")
    assert held.read() == b"new"


def test_a_held_file_is_opened_anew_after_an_error(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("proc/stat", "here")
    held = HeldFile(bench.config.procfs, "stat", bench.desk())
    held.read()
    genuine, failures = os.pread, [OSError(errno.EIO, "once")]

    def once_broken(descriptor: int, length: int, offset: int) -> bytes:
        if failures:
            raise failures.pop()
        return genuine(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", once_broken)
    assert held.read() == b"here"


def test_a_held_file_comes_back_after_it_was_gone(bench: HostBench) -> None:
    held = HeldFile(bench.config.procfs, "stat", bench.desk())
    with pytest.raises(Absent):
        held.read()
    bench.write("proc/stat", "here")
    assert held.read() == b"here"


def test_no_descriptor_is_left_behind(bench: HostBench) -> None:
    bench.write("proc/stat", "here")
    bench.refuse("proc/broken")
    before = open_files()
    tree = Tree(bench.config.procfs, bench.desk())
    held = HeldFile(bench.config.procfs, "broken", bench.desk())
    for _ in range(20):
        tree.attribute("stat")
        with pytest.raises(Broken):
            held.read()
    held.close()
    assert open_files() == before
