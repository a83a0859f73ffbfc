# SPDX-License-Identifier: Apache-2.0
"""GPFS through a program in mmpmon's place: what it says, and everything a program can do instead of saying it."""

import os
import signal
from pathlib import Path

import pytest

from gpufeed.clock import SystemClock
from gpufeed.errors import Broken, Denied
from gpufeed.model.desired import CollectorOptions
from gpufeed.model.frame import Frame
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.probe.inline import InlineProbe
from gpufeed.sources.contract import Outcome
from gpufeed.sources.gpfs import GpfsSource
from gpufeed.sources.mmpmon import Mmpmon
from gpufeed.sources.weka import WekaSource
from gpufeed.units import NS_PER_MS, NS_PER_S
from host_bench import HostBench, open_files, read, samples_of, statuses
from running import poll

COMMAND = "usr/lpp/mmfs/bin/mmpmon"
ANSWER = (
    "_fs_io_s_ _n_ 10.0.0.7 _nn_ node7 _rc_ 0 _t_ 1700000000 _tu_ 53212 _cl_ {} _fs_ {} _d_ 48 "
    "_br_ 2000 _bw_ 300 _oc_ 40 _cc_ 39 _rdc_ 50 _wc_ 6 _dir_ 7 _iu_ 8"
)
SOON_NS = 300 * NS_PER_MS


@pytest.fixture
def asked(bench: HostBench) -> HostBench:
    bench.options["gpfs"] = CollectorOptions(enabled=True)
    return bench


def install(bench: HostBench, script: str) -> None:
    bench.write(COMMAND, f"#!/bin/sh\n{script}\n")
    (bench.root / COMMAND).chmod(0o755)


def saying(*lines: str) -> str:
    return 'read request\n[ "$request" = fs_io_s ] || exit 9\n' + "\n".join(f"echo '{line}'" for line in lines)


def look(bench: HostBench) -> Outcome:
    reader = bench.only_reader(GpfsSource())
    outcome = read(reader, "gpfs.slow")
    reader.close()
    return outcome


def mmpmon(bench: HostBench, within_ns: int = SOON_NS) -> Mmpmon:
    return Mmpmon(str(bench.root / COMMAND), bench.desk(), within_ns)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_is_off_unless_asked_for(bench: HostBench) -> None:
    assert GpfsSource().plan(bench.config) == ()


def test_every_file_system_is_a_target(asked: HostBench) -> None:
    install(asked, saying(ANSWER.format("hpc.example", "scratch"), ANSWER.format("hpc.example", "home")))
    outcome = look(asked)
    scratch, home = samples_of(outcome, StorageCounters)
    assert [(one.storage.kind, one.storage.target) for one in (scratch, home)] == [
        ("gpfs", "scratch"),
        ("gpfs", "home"),
    ]
    assert (scratch.read_bytes, scratch.application_read_bytes, scratch.write_bytes) == (2000, 2000, 300)
    assert (scratch.reads, scratch.writes, scratch.read_s) == (50, 6, None)
    assert scratch.operations == {"read": 50, "write": 6, "open": 40, "close": 39, "readdir": 7, "inode_update": 8}
    assert [(info.source, info.fstype) for info in samples_of(outcome, StorageInfo)] == [("hpc.example", "gpfs")] * 2
    assert (statuses(outcome)["gpfs", ""].state, outcome.failures) == ("available", ())


def test_file_systems_of_one_name_in_two_clusters_are_one_target(asked: HostBench) -> None:
    install(asked, saying(ANSWER.format("a", "scratch"), ANSWER.format("b", "scratch")))
    outcome = look(asked)
    (sample,) = samples_of(outcome, StorageCounters)
    assert (sample.read_bytes, sample.reads) == (4000, 100)
    assert [info.source for info in samples_of(outcome, StorageInfo)] == ["a, b"]


def test_with_nothing_mounted_there_is_nothing_and_nothing_is_wrong(asked: HostBench) -> None:
    install(asked, saying("_fs_io_s_ _n_ 10.0.0.7 _nn_ node7 _rc_ 1 _t_ 1700000000 _tu_ 407431 _cl_ - _fs_ -"))
    outcome = look(asked)
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["gpfs", ""].state == "absent"


def test_where_gpfs_is_not_installed_nothing_is_wrong(asked: HostBench) -> None:
    outcome = look(asked)
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["gpfs", ""].state == "absent"


def test_an_answer_that_makes_no_sense_leaves_the_others(asked: HostBench) -> None:
    install(asked, saying(ANSWER.format("a", "scratch"), ANSWER.format("a", "home").replace("_br_ 2000", "_br_ much")))
    outcome = look(asked)
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["scratch"]
    assert [failure.reason for failure in outcome.failures] == ["parse"]


@pytest.mark.parametrize(("user", "state"), [(1000, "denied"), (0, "broken")])
def test_a_refusal_names_root_to_whoever_is_not(
    asked: HostBench, monkeypatch: pytest.MonkeyPatch, user: int, state: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    install(asked, "echo 'mmpmon: not today' >&2\nexit 3")
    outcome = look(asked)
    status = statuses(outcome)["gpfs", ""]
    assert (status.state, "not today" in status.reason, bool(status.fix)) == (state, True, user != 0)
    assert [failure.reason for failure in outcome.failures] == [state]


def test_a_program_that_may_not_be_started_or_is_none_is_said(asked: HostBench) -> None:
    asked.write(COMMAND, "no program")
    (asked.root / COMMAND).chmod(0o755)
    outcome = look(asked)
    assert statuses(outcome)["gpfs", ""].state == "broken"
    (asked.root / COMMAND).chmod(0o644)
    with pytest.raises(Denied):
        mmpmon(asked).ask(b"fs_io_s")


def test_a_program_that_never_answers_is_ended_in_time_with_all_it_started(asked: HostBench) -> None:
    install(asked, f"sleep 1000 &\necho $! $$ > {asked.root}/pids\nwait")
    with pytest.raises(Broken, match=r"no answer within 0\.3 s"):
        mmpmon(asked).ask(b"fs_io_s")
    pids = [int(word) for word in (asked.root / "pids").read_text(encoding="ascii").split()]
    poll(lambda: not any(map(is_running, pids)), 5, "the end of both processes")


def test_a_program_that_dribbles_is_ended_in_time_too(asked: HostBench) -> None:
    install(asked, "while :; do echo drop; sleep 0.02; done")
    asked.clock = SystemClock()  # type: ignore[assignment] # what is measured is real time
    with pytest.raises(Broken, match="no answer"):
        mmpmon(asked).ask(b"fs_io_s")


def test_a_program_that_pours_is_not_listened_to(asked: HostBench) -> None:
    install(asked, "exec cat /dev/zero")
    with pytest.raises(Broken, match="says more than"):
        mmpmon(asked, 30 * NS_PER_S).ask(b"fs_io_s")


def test_a_program_that_answers_and_stays_is_ended(asked: HostBench) -> None:
    install(asked, "exec >&- 2>&-\nsleep 1000")
    with pytest.raises(Broken, match="does not end"):
        mmpmon(asked).ask(b"fs_io_s")


def test_a_program_that_does_not_listen_is_still_heard(asked: HostBench) -> None:
    install(asked, f"exec <&-\necho '{ANSWER.format('a', 'scratch')}'")
    assert b"scratch" in mmpmon(asked).ask(b"fs_io_s")


def test_beside_one_that_does_not_end_no_other_is_started(asked: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    install(asked, f"echo $$ >> {asked.root}/pids\nexec sleep 1000")
    asks = mmpmon(asked)
    with monkeypatch.context() as unkillable:
        unkillable.setattr(os, "killpg", lambda _pid, _signal: None)
        with pytest.raises(Broken, match="no answer"):
            asks.ask(b"fs_io_s")
        with pytest.raises(Broken, match=r"process \d+ does not end"):
            asks.ask(b"fs_io_s")
        asks.close()
    (pid,) = map(int, (asked.root / "pids").read_text(encoding="ascii").split())
    assert is_running(pid)
    asks.close()
    assert not is_running(pid)
    install(asked, saying(ANSWER.format("a", "scratch")))
    assert b"scratch" in asks.ask(b"fs_io_s")


def test_a_process_that_ended_by_itself_makes_room_for_the_next(
    asked: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(asked, f"echo $$ > {asked.root}/pids\nexec sleep 1000")
    asks = mmpmon(asked)
    with monkeypatch.context() as unkillable:
        unkillable.setattr(os, "killpg", lambda _pid, _signal: None)
        with pytest.raises(Broken):
            asks.ask(b"fs_io_s")
    pid = int((asked.root / "pids").read_text(encoding="ascii"))
    os.kill(pid, signal.SIGKILL)
    install(asked, saying(ANSWER.format("a", "scratch")))
    poll(lambda: not is_running(pid), 5, "its end")
    assert b"scratch" in asks.ask(b"fs_io_s")


def test_nothing_is_left_open_and_nothing_of_ours_is_inherited(asked: HostBench) -> None:
    install(asked, f"ls -l /proc/$$/fd > {asked.root}/fds\nenv > {asked.root}/env\n{saying()}")
    asked.write("secret", "")
    with (asked.root / "secret").open(encoding="ascii") as secret:
        os.set_inheritable(secret.fileno(), True)
        before = open_files()
        look(asked)
        assert open_files() == before
    told = (asked.root / "fds").read_text(encoding="utf-8")
    assert "pipe:" in told
    assert "secret" not in told
    names = {line.partition("=")[0] for line in (asked.root / "env").read_text(encoding="ascii").splitlines()}
    assert names <= {"PATH", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"}


def test_other_collectors_are_read_while_mmpmon_fails(asked: HostBench) -> None:
    install(asked, "exit 1")
    asked.write("proc/1/mountinfo", "40 30 0:5 / /w rw - wekafs backend rw\n")
    probe = InlineProbe(asked.config, (GpfsSource(), WekaSource()), asked.clock)
    frame: Frame = probe.tick()
    probe.close()
    assert {reading.collector for reading in frame.readings} == {"gpfs", "weka"}
    assert {failure.collector for failure in frame.failures} == {"gpfs"}
