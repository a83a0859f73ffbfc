# SPDX-License-Identifier: Apache-2.0
"""The machine."""

import os

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.host import HostCpu, HostMemory, NodeInfo
from gpufeed.sources.host import HostSource
from host_bench import HostBench, open_files, read, samples_of, statuses

STAT = "cpu  1000 0 500 9000 20 0 10 0 0 0\ncpu0 500 0 250 4500 10 0 5 0 0 0\ncpu1 0 0 0 0\nprocs_blocked 3\n"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def test_processor_time_and_memory_are_read(bench: HostBench) -> None:
    bench.write("proc/stat", STAT)
    bench.write("proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 512 kB\n")
    outcome = read(bench.only_reader(HostSource()), "host.fast")
    (cpu,) = samples_of(outcome, HostCpu)
    assert (cpu.seconds["idle"], cpu.cpus, cpu.blocked_tasks) == (9000 / TICKS_PER_S, 2, 3)
    assert samples_of(outcome, HostMemory) == [HostMemory(total_bytes=1024**2, available_bytes=512 * 1024)]


def test_one_broken_file_leaves_the_other(bench: HostBench) -> None:
    bench.write("proc/stat", "nonsense")
    bench.write("proc/meminfo", "MemTotal: 1024 kB\n")
    outcome = read(bench.only_reader(HostSource()), "host.fast")
    assert [type(sample) for sample in outcome.samples] == [HostMemory]
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("stat", "parse")]
    assert statuses(outcome)["host", "stat"].state == "broken"


def test_the_node_is_named(bench: HostBench) -> None:
    bench.write("proc/sys/kernel/hostname", "gpu-node-7\n")
    bench.write("proc/sys/kernel/random/boot_id", "9b2c\n")
    bench.write("etc/machine-id", "0f0f\n")
    bench.write("sys/class/dmi/id/product_name", "DGX H100\n")
    outcome = read(bench.only_reader(HostSource()), "host.slow")
    assert outcome.samples == (NodeInfo(nodename="gpu-node-7", machine_id="0f0f", boot_id="9b2c", product="DGX H100"),)


def test_what_a_virtual_machine_lacks_is_absent(bench: HostBench) -> None:
    bench.write("proc/sys/kernel/hostname", "vm\n")
    bench.write("etc/machine-id", "")
    outcome = read(bench.only_reader(HostSource()), "host.slow")
    assert outcome.samples == (NodeInfo(nodename="vm"),)


def test_a_node_without_a_name_is_not_named(bench: HostBench) -> None:
    assert read(bench.only_reader(HostSource()), "host.slow").samples == ()


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["host"] = CollectorOptions(enabled=False)
    assert HostSource().plan(bench.config) == ()


def test_closing_lets_go_of_the_files(bench: HostBench) -> None:
    bench.write("proc/stat", STAT)
    before = open_files()
    reader = bench.only_reader(HostSource())
    read(reader, "host.fast")
    reader.close()
    assert open_files() == before
