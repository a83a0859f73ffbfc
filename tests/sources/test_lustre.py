# SPDX-License-Identifier: Apache-2.0
"""Lustre: where each version keeps its statistics, what may be said of them, and what hides them."""

import errno

import pytest

from gpufeed.errors import Broken, ParseError
from gpufeed.model.desired import CollectorOptions
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.probe.inline import InlineProbe
from gpufeed.sources.lustre import LustreSource
from gpufeed.sources.lustre_tree import OSC_LIMIT
from gpufeed.units import NS_PER_S
from host_bench import HostBench, open_files, read, samples_of, statuses
from storage_bench import counters, lanes, refusing, scan

DEBUGFS = "sys/kernel/debug/lustre"
PROCFS = "proc/fs/lustre"
SINGLES = "sys/fs/lustre/llite"
ONE = "scratch-ffff88105db50000"
TWO = "scratch-ffff88105db51111"
HOME = "home-fs-ff47bce9ca35d800"

HEADER = "snapshot_time             1700000000.123456789 secs.nsecs\n"
LLITE = (
    HEADER + "read_bytes                500 samples [bytes] 4096 1048576 9000000 81\n"
    "write_bytes               20 samples [bytes] 1 4096 40000 9\n"
    "read                      500 samples [usecs] 10 90000 2500000 88\n"
    "write                     20 samples [usecs] 10 90000 30000 88\n"
    "open                      7 samples [usecs] 1 2 900 9\n"
    "opencount                 12 samples [reqs] 1 2 13 15\n"
)
OSC = HEADER + "req_active 9 samples [reqs] 1 2 9 9\nread_bytes 4 samples [bytes] 4096 1048576 {} 8\n"
V210 = HEADER.replace("nsecs", "usecs") + "read_bytes 1 samples [bytes] 4 4 4\nreaddir 12 samples [regs]\n"


SOURCE = LustreSource()


@pytest.mark.parametrize("root", [DEBUGFS, PROCFS])
def test_metrics_do_not_vanish_after_an_upgrade_that_moved_the_files(bench: HostBench, root: str) -> None:
    """GSI-HPC/lustre_exporter#4, #7, dool#23, ldms#566, #1648, lmt#39."""
    bench.write(f"{root}/llite/{ONE}/stats", LLITE)
    (sample,) = counters(bench, SOURCE).values()
    assert (sample.storage.kind, sample.storage.target) == ("lustre", "scratch")
    assert (sample.read_bytes, sample.write_bytes, sample.application_read_bytes) == (9_000_000, 40_000, 9_000_000)
    assert (sample.reads, sample.writes, sample.read_s, sample.write_s) == (500, 20, 2.5, 0.03)
    assert sample.operations == {"read": 500, "write": 20, "open": 7}
    assert sample.operation_s == {"read": 2.5, "write": 0.03, "open": 0.0009}
    assert (sample.queue_s, sample.errors, sample.inflight) == (None, None, None)


def test_debugfs_is_preferred_where_both_have_a_mount(bench: HostBench) -> None:
    bench.write(f"{PROCFS}/llite/{ONE}/stats", V210)
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    assert counters(bench, SOURCE)["scratch"].reads == 500


def test_both_directions_are_read_whatever_the_version(bench: HostBench) -> None:
    """GSI-HPC/lustre_exporter#38: 2.15 showed writes and lost reads."""
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE.replace(HEADER, HEADER + "start_time 1.2 secs.nsecs\n"))
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.reads, sample.writes) == (500, 20)


def test_directory_reads_are_no_reads(bench: HostBench) -> None:
    """collectl-lustre#1."""
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", HEADER + "readdir 60 samples [usecs] 0 2242 34741 52343869\n")
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.read_bytes, sample.reads, sample.read_s) == (0, 0, 0.0)
    assert sample.operations == {"readdir": 60}


def test_a_version_that_does_not_time_calls_has_no_latency(bench: HostBench) -> None:
    bench.write(f"{PROCFS}/llite/{ONE}/stats", V210)
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.reads, sample.read_s, sample.write_s, sample.operation_s) == (1, None, None, {})
    assert sample.operations == {"readdir": 12, "read": 1}


def test_a_version_that_times_other_calls_only_is_not_taken_for_no_time(bench: HostBench) -> None:
    text = HEADER + "read_bytes 5 samples [bytes] 1 1 5\nopen 7 samples [usec] 1 2 900 9\n"
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", text)
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.reads, sample.read_s, sample.write_s) == (5, None, 0.0)


def test_bytes_are_those_of_the_servers_where_they_are_counted(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.write(f"{DEBUGFS}/osc/scratch-OST0000-osc-{ONE[-16:]}/stats", OSC.format(1000))
    bench.write(f"{DEBUGFS}/osc/scratch-OST0001-osc-{ONE[-16:]}/stats", OSC.format(500))
    bench.write(f"{DEBUGFS}/osc/scratch-OST0001-osc-MDT0000/stats", OSC.format(7))  # of a server
    bench.write(f"{DEBUGFS}/osc/other-OST0001-osc-{TWO[-16:]}/stats", OSC.format(7))
    (bench.root / f"{DEBUGFS}/osc/scratch-OST0002-osc-{ONE[-16:]}").mkdir()  # deactivated
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.read_bytes, sample.write_bytes, sample.application_read_bytes) == (1500, 0, 9_000_000)
    assert statuses(scan(bench, SOURCE))["lustre", ""].reason == ""


def test_old_clients_count_the_bytes_of_the_servers_in_lines_of_their_own(bench: HostBench) -> None:
    bench.write(f"{PROCFS}/llite/{ONE}/stats", V210 + "osc_read 1 samples [bytes] 59 59 59\n")
    sample = counters(bench, SOURCE)["scratch"]
    assert (sample.read_bytes, sample.write_bytes, sample.application_read_bytes) == (59, 0, 4)


def test_more_targets_than_are_worth_reading_are_not_read_and_it_is_said(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    for number in range(OSC_LIMIT + 1):
        bench.write(f"{DEBUGFS}/osc/scratch-OST{number:04x}-osc-{ONE[-16:]}/stats", OSC.format(1))
    assert counters(bench, SOURCE)["scratch"].read_bytes == 9_000_000
    status = statuses(scan(bench, SOURCE))["lustre", ""]
    assert (status.state, "page cache" in status.reason) == ("available", True)


def test_two_mounts_of_one_file_system_are_one_target(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.write(f"{DEBUGFS}/llite/{TWO}/stats", LLITE)
    bench.write(f"{DEBUGFS}/llite/{HOME}/stats", HEADER)
    found = counters(bench, SOURCE)
    assert {name: (sample.reads, sample.read_s, sample.read_bytes) for name, sample in found.items()} == {
        "home-fs": (0, None, 0),
        "scratch": (1000, 5.0, 18_000_000),
    }


def test_a_file_system_is_described_by_what_it_was_mounted_from(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.write(f"{DEBUGFS}/llite/{HOME}/stats", LLITE)
    bench.write(
        "proc/1/mountinfo",
        "40 30 0:51 / /other rw - nfs4 nas:/scratch rw\n"
        "41 30 0:52 / /scratch rw,relatime - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch/below rw,flock\n",
    )
    infos = samples_of(scan(bench, SOURCE), StorageInfo)
    assert [(info.storage.target, info.source, info.fstype) for info in infos] == [
        ("home-fs", None, "lustre"),
        ("scratch", "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch/below", "lustre"),
    ]


def test_without_lustre_there_is_nothing_and_nothing_is_wrong(bench: HostBench) -> None:
    outcome = scan(bench, SOURCE)
    assert (outcome.samples, outcome.failures, outcome.lanes) == ((), (), ())
    assert statuses(outcome)["lustre", ""].state == "absent"


def test_debugfs_that_is_not_for_us_is_said_with_the_fix_where_something_is_mounted(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.write(f"{SINGLES}/{ONE}/uuid", "x\n")
    refusing(monkeypatch, "listdir", errno.EACCES, "/kernel/debug")
    outcome = scan(bench, SOURCE)
    status = statuses(outcome)["lustre", ""]
    assert (status.state, "scratch: " in status.reason, "CAP_DAC_READ_SEARCH" in status.fix) == ("denied", True, True)
    assert [failure.reason for failure in outcome.failures] == ["denied"]
    assert [info.storage.target for info in samples_of(outcome, StorageInfo)] == ["scratch"]
    assert outcome.lanes == ()


def test_debugfs_that_is_not_for_us_is_nobodys_loss_without_lustre(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "listdir", errno.EACCES, "/kernel/debug")
    outcome = scan(bench, SOURCE)
    assert (statuses(outcome)["lustre", ""].state, outcome.failures) == ("absent", ())


def test_a_locked_down_kernel_is_told_from_a_missing_capability(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    refusing(monkeypatch, "open", errno.EPERM, "/kernel/debug")
    status = statuses(scan(bench, SOURCE))["lustre", ""]
    assert (status.state, "locked down" in status.fix) == ("denied", True)


def test_a_mount_that_shows_no_statistics_is_there_and_not_measurable(bench: HostBench) -> None:
    bench.write(f"{SINGLES}/{ONE}/uuid", "x\n")
    outcome = scan(bench, SOURCE)
    assert (statuses(outcome)["lustre", ""].state, outcome.failures) == ("unsupported", ())


@pytest.mark.parametrize("path", [f"{SINGLES}/{ONE}/stats_track_pid", f"{PROCFS}/llite/{ONE}/stats_track_gid"])
def test_statistics_of_one_process_are_not_taken_for_all(bench: HostBench, path: str) -> None:
    root = DEBUGFS if path.startswith("sys") else PROCFS
    bench.write(f"{root}/llite/{ONE}/stats", LLITE)
    bench.write(path, "4711\n")
    outcome = scan(bench, SOURCE)
    status = statuses(outcome)["lustre", ""]
    assert (status.state, "lctl set_param" in status.fix, outcome.lanes) == ("unsupported", True, ())
    bench.write(path, "0 (all)\n")
    assert len(lanes(scan(bench, SOURCE))) == 1


def test_a_file_system_that_cannot_be_read_leaves_the_others(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.refuse(f"{DEBUGFS}/llite/{HOME}/stats")
    outcome = scan(bench, SOURCE)
    assert [plan.lane for plan in lanes(outcome)] == ["lustre:scratch"]
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("home-fs", "broken")]
    status = statuses(outcome)["lustre", ""]
    assert (status.state, "home-fs" in status.reason) == ("available", True)


def test_a_line_that_makes_no_sense_is_counted_and_its_value_unknown(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE.replace("500 samples [bytes]", "500 samples of bytes"))
    (plan,) = lanes(scan(bench, SOURCE))
    outcome = read(bench.open(plan), "lustre.fast")
    (sample,) = samples_of(outcome, StorageCounters)
    assert (sample.read_bytes, sample.write_bytes, sample.reads) == (None, 40_000, 500)
    assert [failure.reason for failure in outcome.failures] == ["parse"]


def test_a_mount_that_fails_between_two_scans_gives_nothing_rather_than_a_part(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.write(f"{DEBUGFS}/llite/{TWO}/stats", LLITE)
    (plan,) = lanes(scan(bench, SOURCE))
    reader = bench.open(plan)
    bench.refuse(f"{DEBUGFS}/llite/{TWO}/stats")
    with pytest.raises(Broken):
        read(reader, "lustre.fast")
    (bench.root / f"{DEBUGFS}/llite/{TWO}/stats").rmdir()
    bench.write(f"{DEBUGFS}/llite/{TWO}/stats", "disabled\n")
    with pytest.raises(ParseError):
        read(reader, "lustre.fast")


def test_nothing_is_held_open_that_would_keep_the_module_loaded(bench: HostBench) -> None:
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    before = open_files()
    scanner = bench.only_reader(LustreSource())
    (plan,) = lanes(read(scanner, "lustre.slow"))
    reader = bench.open(plan)
    read(reader, "lustre.fast")
    assert open_files() == before
    reader.close()
    scanner.close()


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["lustre"] = CollectorOptions(enabled=False)
    assert LustreSource().plan(bench.config) == ()


def test_a_file_system_that_is_mounted_later_is_read_and_one_that_goes_is_withdrawn(bench: HostBench) -> None:
    probe = InlineProbe(bench.config, (LustreSource(),), bench.clock)
    assert [status.lane for status in probe.tick().lanes] == ["lustre"]
    bench.write(f"{DEBUGFS}/llite/{ONE}/stats", LLITE)
    bench.clock.advance(10 * NS_PER_S)
    frame = probe.tick()
    read_bytes = [
        sample.read_bytes
        for reading in frame.readings
        for sample in reading.samples
        if isinstance(sample, StorageCounters)
    ]
    assert read_bytes == [9_000_000]
    (bench.root / f"{DEBUGFS}/llite/{ONE}/stats").unlink()
    bench.clock.advance(10 * NS_PER_S)
    frame = probe.tick()
    assert frame.withdrawn == ("lustre:scratch",)
    assert probe.logs() == () or all("Traceback" not in log.text for log in probe.logs())
    probe.close()
