# SPDX-License-Identifier: Apache-2.0
"""GPUs by the PCI tree."""

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.gpu import PciGpus
from gpufeed.sources.pci import PciSource
from host_bench import HostBench, read, statuses


def function(bench: HostBench, bus_id: str, vendor: str, device_class: str) -> None:
    path = f"devices/pci0000:00/0000:00:01.0/{bus_id}"
    bench.write(f"sys/{path}/vendor", f"{vendor}\n")
    bench.write(f"sys/{path}/class", f"{device_class}\n")
    link = bench.root / f"sys/bus/pci/devices/{bus_id}"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../{path}")


def path_of(bus_id: str) -> tuple[str, ...]:
    return ("pci0000:00", "0000:00:01.0", bus_id)


def test_boards_of_both_classes_are_found_and_nothing_else(bench: HostBench) -> None:
    function(bench, "0000:18:00.0", "0x10de", "0x030200")
    function(bench, "0000:01:00.0", "0x10de", "0x030000")
    function(bench, "0000:01:00.1", "0x10de", "0x040300")  # the board's audio function
    function(bench, "0000:05:00.0", "0x10de", "0x068000")  # an NVSwitch
    function(bench, "0000:02:00.0", "0x1a03", "0x030000")  # the management controller's display
    function(bench, "0000:03:00.0", "0x10de", "what")
    bench.write("sys/bus/pci/devices/0000:04:00.0/other", "")
    outcome = read(bench.only_reader(PciSource()), "host.rare")
    bus_ids = ("0000:01:00.0", "0000:18:00.0")
    assert outcome.samples == (PciGpus(bus_ids=bus_ids, paths=tuple(map(path_of, bus_ids))),)
    assert statuses(outcome)["pci", ""].state == "available"


def test_what_a_function_is_is_looked_up_once(bench: HostBench) -> None:
    function(bench, "0000:18:00.0", "0x10de", "0x030200")
    function(bench, "0000:02:00.0", "0x1a03", "0x030000")
    reader = bench.only_reader(PciSource())
    read(reader, "host.rare")
    before = bench.desks[0].counts.file_reads
    assert read(reader, "host.rare").samples == (PciGpus(bus_ids=("0000:18:00.0",), paths=(path_of("0000:18:00.0"),)),)
    assert bench.desks[0].counts.file_reads == before + 1
    reader.close()


def test_a_copied_tree_without_links_has_gpus_and_no_paths(bench: HostBench) -> None:
    bench.write("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n")
    bench.write("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n")
    assert read(bench.only_reader(PciSource()), "host.rare").samples == (
        PciGpus(bus_ids=("0000:18:00.0",), paths=((),)),
    )


def test_a_machine_without_pci_is_no_failure(bench: HostBench) -> None:
    outcome = read(bench.only_reader(PciSource()), "host.rare")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["pci", ""].state == "absent"


def test_without_gpus_to_look_at_there_is_no_lane(bench: HostBench) -> None:
    bench.options["nvml"] = CollectorOptions(enabled=False)
    assert PciSource().plan(bench.config) == ()
