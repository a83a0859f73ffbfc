# SPDX-License-Identifier: Apache-2.0
"""NFS mounts: whose table, which targets, what they are called."""

import msgspec
import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.sources.nfs import NfsSource
from host_bench import HostBench, open_files, read, samples_of, statuses


def mount(source: str, point: str, server_read: int = 1000, reads: int = 10, fstype: str = "nfs4") -> str:
    return (
        f"device {source} mounted on {point} with fstype {fstype} statvers=1.1\n"
        "\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp,nconnect=4,clientaddr=10.0.0.2\n"
        "\tage:\t100\n"
        f"\tbytes:\t5000 60 700 8 {server_read} 40 3 2\n"
        "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        "\txprt:\ttcp 800 1 1 0 0 20 20 0 30 1 64 5 6\n"
        "\tper-op statistics\n"
        f"\t        READ: {reads} {reads + 1} 2 100 {server_read} 500 3000 3600 4\n"
        "\t   READ_PLUS: 1 1 0 10 20 5 30 40 0\n"
        "\t       WRITE: 3 3 0 10 20 5 30 400 0\n"
        "\t      LOOKUP: 50 50 0 10 20 5 30 40 49\n"
    )


def info(device: str, point: str, fstype: str = "nfs4") -> str:
    return f"40 30 {device} / {point} rw,relatime shared:2 - {fstype} whatever rw\n"


def fill(bench: HostBench, stats: str, mounts: str = "", pid: str = "1") -> None:
    bench.write(f"proc/{pid}/mountstats", "device proc mounted on /proc with fstype proc\n" + stats)
    bench.write(f"proc/{pid}/mountinfo", mounts)


def targets(bench: HostBench) -> list[str]:
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    return [sample.storage.target for sample in samples_of(outcome, StorageCounters)]


def test_a_mount_counts_what_the_server_gave_and_how_long_it_took(bench: HostBench) -> None:
    fill(bench, mount("nas:/set", "/data"), info("0:51", "/data"))
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert (sample.storage.kind, sample.storage.target) == ("nfs", "/data")
    assert (sample.read_bytes, sample.write_bytes, sample.application_read_bytes) == (1000, 40, 5700)
    assert (sample.reads, sample.writes) == (11, 3)
    assert (sample.read_s, sample.write_s, sample.queue_s) == pytest.approx((3.64, 0.4, 0.51))
    assert (sample.retransmits, sample.timeouts) == (1, 2)
    assert sample.errors == 4  # look-ups of what is not there are none
    assert (sample.busy_s, sample.inflight) == (None, None)
    assert sample.operations == {"READ": 10, "READ_PLUS": 1, "WRITE": 3, "LOOKUP": 50}
    assert sample.operation_s == {"READ": 3.6, "READ_PLUS": 0.04, "WRITE": 0.4, "LOOKUP": 0.04}


def test_a_mount_is_described_without_users_and_addresses(bench: HostBench) -> None:
    fill(bench, mount("nas:/set", "/data"))
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.slow"), StorageInfo)
    assert (sample.source, sample.fstype) == ("nas:/set", "nfs4")
    assert sample.options == {"vers": "4.2", "rsize": "1048576", "wsize": "1048576", "proto": "tcp", "nconnect": "4"}


def test_mount_points_of_one_superblock_are_one_target_called_by_the_shortest(bench: HostBench) -> None:
    points = ("/srv/long/path", "/data/b", "/data/a")
    stats = "".join(mount("nas:/set", point) for point in points) + mount("nas:/other", "/other")
    fill(bench, stats, "".join(info("0:51", point) for point in points) + info("0:52", "/other"))
    reader = bench.only_reader(NfsSource())
    found = samples_of(read(reader, "nfs.fast"), StorageCounters)
    assert [(sample.storage.target, sample.read_bytes) for sample in found] == [("/data/a", 1000), ("/other", 1000)]


def test_two_versions_of_one_export_are_two_targets(bench: HostBench) -> None:
    stats = mount("nas:/set", "/v3", fstype="nfs") + mount("nas:/set", "/v4")
    fill(bench, stats, info("0:51", "/v3", "nfs") + info("0:52", "/v4"))
    assert targets(bench) == ["/v3", "/v4"]


def test_without_mountinfo_equal_counters_of_one_source_are_one_target(bench: HostBench) -> None:
    stats = mount("nas:/set", "/b") + mount("nas:/set", "/a") + mount("nas:/set", "/c", reads=99)
    bench.write("proc/1/mountstats", stats)
    assert targets(bench) == ["/a", "/c"]


@pytest.mark.parametrize(
    "point",
    [
        "/var/lib/kubelet/pods/0f-1e/volumes/kubernetes.io~nfs/set",
        "/var/lib/docker/volumes/set/_data",
        "/var/lib/containers/storage/overlay/0f/merged/data",
        "/run/containerd/io.containerd.runtime.v2.task/k8s.io/0f/rootfs/data",
        "/var/singularity/mnt/session/data",
        "/run/user/1000/data",
    ],
)
def test_a_place_of_pods_containers_and_images_is_called_by_its_source(bench: HostBench, point: str) -> None:
    fill(bench, mount("nas:/set", point), info("0:51", point))
    assert targets(bench) == ["nas:/set"]


def test_a_users_automount_is_called_by_its_source_and_a_plain_home_is_not(bench: HostBench) -> None:
    stats = mount("nas:/homes/anna", "/home/anna") + mount("nas:/homes/bert", "/home/bert")
    fill(bench, stats, info("0:60", "/home", "autofs") + info("0:51", "/home/anna") + info("0:52", "/home/bert"))
    assert targets(bench) == ["nas:/homes/anna", "nas:/homes/bert"]
    fill(bench, stats, info("0:51", "/home/anna") + info("0:52", "/home/bert"))
    assert targets(bench) == ["/home/anna", "/home/bert"]


def test_superblocks_of_one_source_add_up_where_the_source_names_them(bench: HostBench) -> None:
    bench.options["nfs"] = CollectorOptions(target_from="source")
    stats = mount("nas:/set", "/a", server_read=1000) + mount("nas:/set", "/b", server_read=500)
    fill(bench, stats, info("0:51", "/a") + info("0:52", "/b"))
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert (sample.storage.target, sample.read_bytes, sample.reads, sample.operations) == (
        "nas:/set",
        1500,
        22,
        {"READ": 20, "READ_PLUS": 2, "WRITE": 6, "LOOKUP": 100},
    )


def test_garbage_that_adds_up_to_more_than_a_counter_holds_still_crosses_the_wire(bench: HostBench) -> None:
    bench.options["nfs"] = CollectorOptions(target_from="source")
    most = 2**64 - 1
    stats = mount("nas:/set", "/a", most, most - 1) + mount("nas:/set", "/b", most, most - 1).replace(
        "5000 60", f"{most} 1"
    )
    fill(bench, stats, info("0:51", "/a") + info("0:52", "/b"))
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert (sample.read_bytes, sample.reads, sample.operations and sample.operations["READ"]) == (most, most, most)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sample), type=StorageCounters) == sample


def test_of_two_mounts_on_one_place_the_later_is_on_top(bench: HostBench) -> None:
    fill(bench, mount("nas:/old", "/data", server_read=1) + mount("nas:/new", "/data", server_read=2))
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert sample.read_bytes == 2


def test_mounts_are_left_out_by_their_place(bench: HostBench) -> None:
    bench.options["nfs"] = CollectorOptions(exclude_mounts="^/scratch")
    fill(bench, mount("nas:/set", "/data") + mount("nas:/scratch", "/scratch/x"))
    assert targets(bench) == ["/data"]


def test_a_lazily_unmounted_file_system_has_no_counters_but_is_there(bench: HostBench) -> None:
    fill(bench, "device nas:/set mounted on /data with fstype nfs4 statvers=1.1\n")
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert (sample.read_bytes, sample.reads, sample.errors) == (None, None, None)


def test_a_mount_that_only_counts_calls_has_no_bytes(bench: HostBench) -> None:
    stats = "".join(line for line in mount("nas:/set", "/data").splitlines(keepends=True) if "bytes:" not in line)
    fill(bench, stats)
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert (sample.read_bytes, sample.reads) == (None, 11)


def test_errors_are_absent_where_the_kernel_counts_none(bench: HostBench) -> None:
    fill(bench, "".join(f"{line.rsplit(' ', 1)[0]}\n" if "READ" in line or "WRITE" in line else f"{line}\n"
                        for line in mount("nas:/set", "/data").splitlines()))  # fmt: skip
    (sample,) = samples_of(read(bench.only_reader(NfsSource()), "nfs.fast"), StorageCounters)
    assert sample.errors is None


def test_the_hosts_table_is_preferred_and_said(bench: HostBench) -> None:
    fill(bench, mount("nas:/set", "/host"), pid="1")
    fill(bench, mount("nas:/set", "/own"), pid="self")
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["/host"]
    assert statuses(outcome)["nfs", ""].reason == "process 1"


def test_our_own_table_has_to_do_where_the_hosts_is_not_for_us(bench: HostBench) -> None:
    bench.refuse("proc/1/mountstats")
    fill(bench, mount("nas:/set", "/own"), info("0:51", "/own"), pid="self")
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["/own"]
    status = statuses(outcome)["nfs", ""]
    assert (status.state, "own namespace" in status.reason) == ("available", True)


def test_without_any_table_the_input_is_missing(bench: HostBench) -> None:
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["nfs", ""].state == "absent"
    bench.refuse("proc/self/mountstats")
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert [failure.reason for failure in outcome.failures] == ["broken"]


def test_a_node_without_nfs_has_no_targets_and_no_failure(bench: HostBench) -> None:
    fill(bench, "")
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["nfs", ""].state == "absent"


def test_a_mount_that_comes_later_is_grouped_anew(bench: HostBench) -> None:
    fill(bench, mount("nas:/set", "/data/long"), info("0:51", "/data/long"))
    reader = bench.only_reader(NfsSource())
    read(reader, "nfs.fast")
    fill(
        bench,
        mount("nas:/set", "/data/long") + mount("nas:/set", "/data"),
        info("0:51", "/data/long") + info("0:51", "/data"),
    )
    found = samples_of(read(reader, "nfs.fast"), StorageCounters)
    assert [sample.storage.target for sample in found] == ["/data"]


def test_a_broken_mount_is_named_and_the_others_stand(bench: HostBench) -> None:
    fill(bench, mount("nas:/bad", "/bad").replace("bytes:\t5000", "bytes:\tmany") + mount("nas:/set", "/data"))
    outcome = read(bench.only_reader(NfsSource()), "nfs.fast")
    assert [sample.storage.target for sample in samples_of(outcome, StorageCounters)] == ["/data"]
    assert [failure.reason for failure in outcome.failures] == ["parse"]
    assert "/bad" in outcome.failures[0].detail


def test_a_mount_point_that_is_not_utf8_has_a_name(bench: HostBench) -> None:
    bench.write("proc/1/mountstats", mount("nas:/set", "/daten").encode().replace(b"/daten", b"/d\xe4ten"))
    bench.write("proc/1/mountinfo", info("0:51", "/daten").encode().replace(b"/daten", b"/d\xe4ten"))
    assert targets(bench) == ["/d\\xe4ten"]


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["nfs"] = CollectorOptions(enabled=False)
    assert NfsSource().plan(bench.config) == ()


def test_closing_lets_go_of_the_files(bench: HostBench) -> None:
    fill(bench, mount("nas:/set", "/data"))
    before = open_files()
    reader = bench.only_reader(NfsSource())
    read(reader, "nfs.fast")
    reader.close()
    assert open_files() == before
