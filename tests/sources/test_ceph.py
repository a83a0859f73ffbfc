# SPDX-License-Identifier: Apache-2.0
"""CephFS: which client serves which mount, and what hides them."""

import errno

import pytest

from gpufeed.errors import Broken
from gpufeed.model.desired import CollectorOptions
from gpufeed.model.storage import StorageInfo
from gpufeed.sources.ceph import CephSource
from host_bench import HostBench, read, samples_of, statuses
from storage_bench import counters, lanes, mount, refusing, scan

SOURCE = CephSource()
A, B = "0c93a60d-5645-4c46-8568-4c8f63db4c7f", "9a972bfc-68cb-4d52-a610-7cd9a9adbbdd"
LATENCY = """\
item          total       avg_lat(us)     min_lat(us)     max_lat(us)     stdev(us)
-----------------------------------------------------------------------------------
read          800         2500            400             9000            70
write         5           914013          824797          1092343         103476
metadata      79          12856           1572            114572          13262
"""
SIZE = """\
item          total       avg_sz(bytes)   min_sz(bytes)   max_sz(bytes)  total_sz(bytes)
----------------------------------------------------------------------------------------
read          800         4194304         4096            4194304         3355443200
write         5           4194304         4194304         4194304         20971520
"""
SUMS = """\
item          total       sum_lat(us)     avg_lat(us)
-----------------------------------------------------
read          13          417000          32076
"""


def path(cluster: str, number: int, file: str = "metrics") -> str:
    return f"sys/kernel/debug/ceph/{cluster}.client{number}/{file}"


def test_requests_to_the_servers_are_counted_by_mount_point(bench: HostBench) -> None:
    bench.write(path(A, 4333), LATENCY + "\n" + SIZE)
    bench.write("proc/1/mountinfo", mount("0:51", "/data", "ceph", "10.0.0.1:6789,10.0.0.2:6789:/set"))
    (sample,) = counters(bench, SOURCE).values()
    assert (sample.storage.kind, sample.storage.target) == ("ceph", "/data")
    assert (sample.read_bytes, sample.write_bytes) == (3_355_443_200, 20_971_520)
    assert (sample.reads, sample.writes, sample.read_s, sample.application_read_bytes) == (800, 5, None, None)
    assert sample.operations == {"read": 800, "write": 5, "metadata": 79}
    (info,) = samples_of(scan(bench, SOURCE), StorageInfo)
    assert (info.source, info.fstype) == ("10.0.0.1:6789,10.0.0.2:6789:/set", "ceph")


def test_newer_kernels_have_a_directory_of_files(bench: HostBench) -> None:
    bench.write(path(A, 4333, "metrics/latency"), LATENCY)
    bench.write(path(A, 4333, "metrics/size"), SIZE)
    bench.refuse(path(A, 4333, "metrics/caps"))  # walks all sessions under their locks: not read
    sample = counters(bench, SOURCE)[f"{A}.client4333"]
    assert (sample.reads, sample.read_bytes) == (800, 3_355_443_200)


def test_kernels_that_say_how_long_reads_took_have_a_latency_and_may_lack_bytes(bench: HostBench) -> None:
    bench.write(path(A, 1), SUMS)
    sample = counters(bench, SOURCE)[f"{A}.client1"]
    assert (sample.reads, sample.read_s, sample.read_bytes, sample.writes) == (13, 0.417, None, None)
    assert sample.operation_s == {"read": 0.417}


def test_mounts_of_two_clusters_are_told_apart_by_their_source(bench: HostBench) -> None:
    bench.write(path(A, 1), SUMS)
    bench.write(path(B, 2), LATENCY)
    bench.write(
        "proc/1/mountinfo",
        mount("0:51", "/b", "ceph", f"user@{B}.fs=/") + mount("0:52", "/a", "ceph", f"user@{A}.fs=/"),
    )
    assert {name: sample.reads for name, sample in counters(bench, SOURCE).items()} == {"/a": 13, "/b": 800}


def test_where_it_is_not_certain_a_client_has_its_own_name(bench: HostBench) -> None:
    bench.write(path(A, 1), SUMS)
    bench.write(path(A, 2), LATENCY)
    bench.write(
        "proc/1/mountinfo", mount("0:51", "/a", "ceph", f"u@{A}.x=/") + mount("0:52", "/b", "ceph", f"u@{A}.y=/")
    )
    assert {name: sample.reads for name, sample in counters(bench, SOURCE).items()} == {
        f"{A}.client1": 13,
        f"{A}.client2": 800,
    }
    status = statuses(scan(bench, SOURCE))["ceph", ""]
    assert (status.state, "/a: counted by client" in status.reason) == ("available", True)


def test_without_cephfs_there_is_nothing_and_nothing_is_wrong(bench: HostBench) -> None:
    outcome = scan(bench, SOURCE)
    assert (outcome.samples, outcome.failures, outcome.lanes) == ((), (), ())
    assert statuses(outcome)["ceph", ""].state == "absent"


def test_block_devices_of_ceph_are_no_file_systems(bench: HostBench) -> None:
    bench.write(path(A, 7, "osdc"), "REQUESTS 0\n")
    bench.write("sys/kernel/debug/ceph/other/metrics", SUMS)
    outcome = scan(bench, SOURCE)
    assert (outcome.samples, outcome.failures, outcome.lanes) == ((), (), ())
    assert statuses(outcome)["ceph", ""].state == "absent"


def test_a_kernel_without_counters_leaves_the_mount_there_and_not_measurable(bench: HostBench) -> None:
    bench.write(path(A, 7, "osdc"), "REQUESTS 0\n")
    bench.write("proc/self/mountinfo", mount("0:51", "/data", "ceph", "mon:/"))
    outcome = scan(bench, SOURCE)
    assert [info.storage.target for info in samples_of(outcome, StorageInfo)] == ["/data"]
    assert (statuses(outcome)["ceph", ""].state, outcome.lanes) == ("unsupported", ())


def test_debugfs_that_is_not_for_us_is_said_with_the_fix_where_something_is_mounted(
    bench: HostBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(path(A, 4333), LATENCY)
    refusing(monkeypatch, "listdir", errno.EACCES, "/kernel/debug")
    assert statuses(scan(bench, SOURCE))["ceph", ""].state == "absent"
    bench.write("proc/1/mountinfo", mount("0:51", "/data", "ceph", "mon:/"))
    status = statuses(scan(bench, SOURCE))["ceph", ""]
    assert (status.state, "CAP_DAC_READ_SEARCH" in status.fix) == ("denied", True)


def test_a_locked_down_kernel_refuses_each_file(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write(path(A, 4333), LATENCY)
    bench.write("proc/1/mountinfo", mount("0:51", "/data", "ceph", "mon:/"))
    refusing(monkeypatch, "open", errno.EPERM, "/kernel/debug")
    outcome = scan(bench, SOURCE)
    status = statuses(outcome)["ceph", ""]
    assert (status.state, "locked down" in status.fix) == ("denied", True)
    assert [failure.reason for failure in outcome.failures] == ["denied"]


def test_a_client_that_cannot_be_read_leaves_the_others(bench: HostBench) -> None:
    bench.write(path(A, 1), SUMS)
    bench.refuse(path(B, 2))
    outcome = scan(bench, SOURCE)
    assert [plan.lane for plan in lanes(outcome)] == [f"ceph:{A}.client1"]
    assert [failure.device for failure in outcome.failures] == [f"{B}.client2"]


def test_a_client_that_breaks_between_two_scans_is_an_error_of_its_lane(bench: HostBench) -> None:
    bench.write(path(A, 1), SUMS)
    (plan,) = lanes(scan(bench, SOURCE))
    reader = bench.open(plan)
    bench.refuse(path(A, 1))
    with pytest.raises(Broken):
        read(reader, "ceph.fast")
    reader.close()


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["ceph"] = CollectorOptions(enabled=False)
    assert SOURCE.plan(bench.config) == ()
