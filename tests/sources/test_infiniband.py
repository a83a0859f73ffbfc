# SPDX-License-Identifier: Apache-2.0
"""RDMA devices: found by one lane, read by a lane each, and never lost for one file."""

import errno
import os
from collections.abc import Mapping

import pytest

from gpufeed.model.desired import CollectorOptions
from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.ids import IbPortKey
from gpufeed.sources.contract import LanePlan, Outcome, Reader
from gpufeed.sources.infiniband import InfinibandSource
from gpufeed.units import NS_PER_MS
from host_bench import HostBench, failing, read, samples_of, statuses

PORT: Mapping[str, str] = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "link_layer": "InfiniBand",
    "lid": "0x3a4",
    "rate": "400 Gb/sec (4X NDR)",
    "gid_attrs/ndevs/0": "ibs1f0",
    "counters/port_rcv_data": "1000",
    "counters/port_xmit_data": "2000",
    "counters/port_rcv_packets": "30",
    "counters/port_xmit_packets": "40",
    "counters/port_xmit_wait": "77",
    "counters/symbol_error": "3",
    "counters/link_downed": "255",
    "hw_counters/lifespan": "10",
    "hw_counters/local_ack_timeout_err": "6",
    "hw_counters/rx_write_requests": "7",
}


def device(bench: HostBench, name: str = "mlx5_0", files: Mapping[str, str] = PORT, port: int = 1) -> str:
    path = f"sys/class/infiniband/{name}/ports/{port}"
    for file, text in files.items():
        bench.write(f"{path}/{file}", f"{text}\n")
    return path


def scan(bench: HostBench) -> Outcome:
    return read(bench.only_reader(InfinibandSource()), "infiniband.slow")


def plans(bench: HostBench) -> tuple[LanePlan, ...]:
    found = scan(bench).lanes
    assert found is not None
    return found


def reader_of(bench: HostBench, name: str = "mlx5_0") -> Reader:
    (plan,) = [plan for plan in plans(bench) if plan.lane == f"ib:{name}"]
    return bench.open(plan)


def fast(reader: Reader) -> IbCounters:
    (sample,) = samples_of(read(reader, "infiniband.fast"), IbCounters)
    return sample


def test_one_lane_is_found_per_device_and_the_same_again(bench: HostBench) -> None:
    device(bench, "mlx5_1")
    device(bench, "mlx5_0")
    reader = bench.only_reader(InfinibandSource())
    first = read(reader, "infiniband.slow")
    assert first.lanes is not None
    assert [plan.lane for plan in first.lanes] == ["ib:mlx5_0", "ib:mlx5_1"]
    assert read(reader, "infiniband.slow").lanes == first.lanes
    assert statuses(first)["infiniband", ""].state == "available"
    reader.close()


def test_devices_are_left_out_before_any_of_their_files_is_read(bench: HostBench) -> None:
    bench.options["infiniband"] = CollectorOptions(include="^(mlx|smi)", exclude="^(smi|scif)")
    for name in ("mlx5_0", "smi1", "mana_0"):
        device(bench, name)
    assert [plan.lane for plan in plans(bench)] == ["ib:mlx5_0"]
    assert bench.desks[0].counts.file_reads == 1


def test_data_counters_are_read_twice_a_second_at_most(bench: HostBench) -> None:
    device(bench)
    bench.fast_period_ns = 200 * NS_PER_MS
    (plan,) = plans(bench)
    assert next((group.name, group.period_ns) for group in plan.groups) == ("infiniband.fast", 500 * NS_PER_MS)


def test_a_node_without_rdma_is_no_failure(bench: HostBench) -> None:
    outcome = scan(bench)
    assert (outcome.lanes, outcome.failures) == ((), ())
    assert statuses(outcome)["infiniband", ""].state == "absent"


def test_devices_nobody_wants_are_said(bench: HostBench) -> None:
    bench.options["infiniband"] = CollectorOptions(include="^mlx")
    device(bench, "efa_0")
    assert statuses(scan(bench))["infiniband", ""].reason == "no RDMA device is wanted"


def test_bytes_are_four_times_the_words(bench: HostBench) -> None:
    device(bench)
    assert fast(reader_of(bench)) == IbCounters(
        port=IbPortKey("mlx5_0", 1),
        receive_bytes=4000,
        transmit_bytes=8000,
        receive_packets=30,
        transmit_packets=40,
        transmit_wait_ticks=77,
    )


def test_a_port_is_described_with_its_speed(bench: HostBench) -> None:
    device(bench)
    (port,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbPort)
    assert port == IbPort(
        port=IbPortKey("mlx5_0", 1),
        link_layer="InfiniBand",
        lid=932,
        state_id=4,
        physical_state_id=5,
        rate_bytes_per_s=50e9,
        width=4,
        speed="NDR",
        netdev="ibs1f0",
    )


def test_errors_and_events_go_by_their_files_names(bench: HostBench) -> None:
    device(bench)
    (errors,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbErrors)
    assert errors.errors == {"symbol_error": 3, "link_downed": 255}
    assert errors.hw_events == {"local_ack_timeout_err": 6, "rx_write_requests": 7}
    assert errors.saturated == ("link_downed",)


def test_a_device_is_described_with_its_place(bench: HostBench) -> None:
    device(bench)
    base = "sys/class/infiniband/mlx5_0"
    for name, text in (("board_id", "MT_0000000838"), ("fw_ver", "28.41.1000"), ("hca_type", "MT4129")):
        bench.write(f"{base}/{name}", text)
    bench.write(f"{base}/node_guid", "0c42:a103:00aa:bb01\n")
    bench.write("sys/devices/0000:18:00.0/numa_node", "1\n")
    (bench.root / base / "device").symlink_to("../../../devices/0000:18:00.0")
    (described,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbDevice)
    assert described == IbDevice(
        device="mlx5_0",
        board_id="MT_0000000838",
        firmware="28.41.1000",
        hca_type="MT4129",
        node_guid="0c42:a103:00aa:bb01",
        pci_bus_id="0000:18:00.0",
        numa_node=1,
    )


def test_a_device_that_says_little_of_itself_is_described_all_the_same(bench: HostBench) -> None:
    device(bench)
    bench.write("sys/class/infiniband/mlx5_0/node_guid", "none\n")
    (bench.root / "sys/class/infiniband/mlx5_0/device").symlink_to("../virtual/rxe")
    (described,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbDevice)
    assert described == IbDevice(device="mlx5_0")


@pytest.mark.parametrize("name", ["smi0", "rxe0", "siw_eth0"])
def test_management_and_software_devices_are_no_part_of_the_fabric(bench: HostBench, name: str) -> None:
    device(bench, name)
    (port,) = samples_of(read(reader_of(bench, name), "infiniband.slow"), IbPort)
    assert not port.is_fabric


def test_a_virtual_function_of_a_device_here_is_no_part_of_the_fabric(bench: HostBench) -> None:
    device(bench)
    (bench.root / "sys/class/infiniband/mlx5_0/device").mkdir()
    (bench.root / "sys/class/infiniband/mlx5_0/device/physfn").symlink_to("../0000:18:00.0")
    (port,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbPort)
    assert not port.is_fabric


def test_one_unreadable_file_is_one_value_less(bench: HostBench) -> None:
    path = device(bench)
    bench.refuse(f"{path}/rate")
    outcome = read(reader_of(bench), "infiniband.slow")
    (port,) = samples_of(outcome, IbPort)
    assert (port.rate_bytes_per_s, port.width, port.state_id) == (None, None, 4)
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("mlx5_0/1/rate", "broken")]


def test_a_file_the_driver_refuses_is_no_failure(bench: HostBench, monkeypatch: pytest.MonkeyPatch) -> None:
    device(bench)
    reader = reader_of(bench)
    monkeypatch.setattr(os, "read", failing(os.read, OSError(errno.EINVAL, "no cable")))
    outcome = read(reader, "infiniband.slow")
    assert samples_of(outcome, IbPort) == [IbPort(port=IbPortKey("mlx5_0", 1))]
    assert outcome.failures == ()


def test_garbage_in_a_counter_is_one_value_less(bench: HostBench) -> None:
    path = device(bench)
    bench.write(f"{path}/counters/port_rcv_data", b"\xff\xfe")
    outcome = read(reader_of(bench), "infiniband.fast")
    (sample,) = samples_of(outcome, IbCounters)
    assert (sample.receive_bytes, sample.transmit_bytes) == (None, 8000)
    assert [failure.reason for failure in outcome.failures] == ["parse"]


def test_a_driver_without_management_counters_is_unsupported_and_its_neighbour_lives(bench: HostBench) -> None:
    device(bench)
    device(bench, "irdma0", {"state": "4: ACTIVE", "link_layer": "Ethernet", "hw_counters/cnpSent": "3"})
    outcome = read(reader_of(bench, "irdma0"), "infiniband.slow")
    assert statuses(outcome)["infiniband", "irdma0"].state == "unsupported"
    assert samples_of(outcome, IbErrors)[0].hw_events == {"cnpSent": 3}
    assert fast(reader_of(bench)).receive_bytes == 4000


def test_a_function_without_management_attribute_says_so_in_words(bench: HostBench) -> None:
    files = {name: "N/A (no PMA)" if name.startswith("counters/") else text for name, text in PORT.items()}
    device(bench, files=files)
    reader = reader_of(bench)
    assert fast(reader) == IbCounters(port=IbPortKey("mlx5_0", 1))
    outcome = read(reader, "infiniband.slow")
    assert samples_of(outcome, IbErrors)[0].errors == {}
    assert outcome.failures == ()


@pytest.mark.parametrize(
    ("files", "received", "sent", "packets"),
    [
        ({"rx_bytes": "500", "tx_bytes": "600", "rx_pkts": "5", "tx_pkts": "6"}, 500, 600, 5),
        ({"ip4InOctets": "500", "ip6InOctets": "20", "ip4OutOctets": "600"}, 520, 600, None),
        ({"rx_rdma_ucast_bytes": "1", "rx_rdma_mcast_bytes": "2", "tx_rdma_ucast_bytes": "3"}, 3, 3, None),
    ],
)
def test_bytes_among_hardware_counters_are_bytes(
    bench: HostBench, files: dict[str, str], received: int, sent: int, packets: int | None
) -> None:
    device(bench, "efa_0", {"state": "4: ACTIVE", **{f"hw_counters/{name}": text for name, text in files.items()}})
    reader = reader_of(bench, "efa_0")
    sample = fast(reader)
    assert (sample.receive_bytes, sample.transmit_bytes, sample.receive_packets) == (received, sent, packets)
    assert statuses(read(reader, "infiniband.slow"))["infiniband", "efa_0"].state == "available"


def test_the_wide_counters_of_old_kernels_come_first(bench: HostBench) -> None:
    device(
        bench, files={**PORT, "counters_ext/port_rcv_data_64": "9000000000", "counters_ext/port_rcv_packets_64": "8"}
    )
    sample = fast(reader_of(bench))
    assert (sample.receive_bytes, sample.receive_packets, sample.transmit_bytes) == (36_000_000_000, 8, 8000)


def test_a_narrow_data_counter_that_stands_at_its_ceiling_is_saturated(bench: HostBench) -> None:
    device(bench, files={**PORT, "counters/port_xmit_data": "4294967295"})
    reader = reader_of(bench)
    fast(reader)
    (once,) = samples_of(read(reader, "infiniband.slow"), IbErrors)
    fast(reader)
    (twice,) = samples_of(read(reader, "infiniband.slow"), IbErrors)
    assert once.saturated == ("link_downed",)
    assert twice.saturated == ("link_downed", "port_xmit_data")


def test_every_port_of_a_device_is_read_and_odd_names_are_not(bench: HostBench) -> None:
    device(bench, port=1)
    device(bench, port=2)
    (bench.root / "sys/class/infiniband/mlx5_0/ports/extra").mkdir()
    outcome = read(reader_of(bench), "infiniband.fast")
    assert [sample.port.port for sample in samples_of(outcome, IbCounters)] == [1, 2]


def test_one_silent_port_beside_another_is_named(bench: HostBench) -> None:
    device(bench, port=1)
    device(bench, files={"state": "1: DOWN"}, port=2)
    status = statuses(read(reader_of(bench), "infiniband.slow"))["infiniband", "mlx5_0"]
    assert (status.state, status.reason.startswith("port 2 ")) == ("available", True)


def test_a_port_that_vanishes_takes_nobody_with_it_and_comes_back(bench: HostBench) -> None:
    device(bench, port=1)
    path = bench.root / device(bench, port=2)
    reader = reader_of(bench)
    read(reader, "infiniband.slow")
    path.rename(bench.root / "away")
    assert [port.port.port for port in samples_of(read(reader, "infiniband.slow"), IbPort)] == [1]
    (bench.root / "away").rename(path)
    assert [port.port.port for port in samples_of(read(reader, "infiniband.slow"), IbPort)] == [1, 2]
    reader.close()


def test_counters_of_a_port_gone_between_two_slow_reads_are_absent(bench: HostBench) -> None:
    path = bench.root / device(bench)
    reader = reader_of(bench)
    fast(reader)
    path.rename(bench.root / "away")
    assert fast(reader) == IbCounters(port=IbPortKey("mlx5_0", 1))


def test_a_link_that_leads_nowhere_is_absent_and_no_failure(bench: HostBench) -> None:
    (bench.root / "sys/class/infiniband").mkdir(parents=True)
    (bench.root / "sys/class/infiniband/odd0").symlink_to("../../gone")
    reader = reader_of(bench, "odd0")
    assert read(reader, "infiniband.fast") == Outcome()
    outcome = read(reader, "infiniband.slow")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["infiniband", "odd0"].state == "absent"


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["infiniband"] = CollectorOptions(enabled=False)
    assert InfinibandSource().plan(bench.config) == ()


def fabric_of(bench: HostBench, *names: str, drivers: Mapping[str, str] | None = None) -> dict[str, bool]:
    for name in names:
        device(bench, name)
    for name, driver in (drivers or {}).items():
        (bench.root / f"sys/class/infiniband/{name}/device").mkdir()
        (bench.root / f"sys/class/infiniband/{name}/device/driver").symlink_to(f"../../bus/pci/drivers/{driver}")
    found = {}
    for plan in plans(bench):
        (port,) = samples_of(read(bench.open(plan), "infiniband.slow"), IbPort)
        found[port.port.device] = port.is_fabric
    return found


def test_rdma_of_a_network_card_is_no_fabric_where_there_is_another(bench: HostBench) -> None:
    names = ("irdma0", "mana_0", "mlx5_0", "rocep1", "rxe0")
    found = fabric_of(bench, *names, drivers={"rocep1": "ice", "mlx5_0": "mlx5_core"})
    assert found == {"irdma0": False, "mana_0": False, "mlx5_0": True, "rocep1": False, "rxe0": False}


def test_rdma_of_network_cards_is_the_fabric_where_there_is_no_other(bench: HostBench) -> None:
    assert fabric_of(bench, "irdma0", "irdma1", "siw0") == {"irdma0": True, "irdma1": True, "siw0": False}


def test_a_port_without_a_named_interface_has_the_one_on_its_function(bench: HostBench) -> None:
    unnamed = {file: text for file, text in PORT.items() if not file.startswith("gid_attrs")}
    for number in (1, 2):
        device(bench, files=unnamed, port=number)
    reader = reader_of(bench)

    def netdevs() -> list[str | None]:
        return [sample.netdev for sample in samples_of(read(reader, "infiniband.slow"), IbPort)]

    assert netdevs() == [None, None]
    bench.write("sys/class/infiniband/mlx5_0/device/net/ib0/dev_port", "0\n")
    assert netdevs() == ["ib0", "ib0"]
    bench.write("sys/class/infiniband/mlx5_0/device/net/ib1/dev_port", "1\n")
    assert netdevs() == ["ib0", "ib1"]
    bench.write("sys/class/infiniband/mlx5_0/device/net/ib1/dev_port", "7\n")
    assert netdevs() == ["ib0", None]


@pytest.mark.parametrize(
    ("receive", "transmit"),
    [
        (("rx_pkts",), ("tx_pkts",)),
        (("rx_rdma_ucast_pkts", "rx_rdma_mcast_pkts"), ("tx_rdma_ucast_pkts", "tx_rdma_mcast_pkts")),
        (("ip4InPkts", "ip6InPkts"), ("ip4OutPkts", "ip6OutPkts")),
        (("rcvd_pkts",), ("sent_pkts",)),
    ],
)
def test_packets_of_drivers_without_counters_are_found(
    bench: HostBench, receive: tuple[str, ...], transmit: tuple[str, ...]
) -> None:
    device(bench, files={f"hw_counters/{name}": "30" for name in receive} | {f"hw_counters/{transmit[0]}": "4"})
    sample = fast(reader_of(bench))
    assert (sample.receive_packets, sample.transmit_packets) == (30 * len(receive), 4)


def test_hardware_counters_of_the_device_are_those_of_its_only_port(bench: HostBench) -> None:
    device(bench, files={"state": "4: ACTIVE"})
    for name, text in (("rx_bytes", "77"), ("rx_drops", "3"), ("lifespan", "10")):
        bench.write(f"sys/class/infiniband/mlx5_0/hw_counters/{name}", f"{text}\n")
    reader = reader_of(bench)
    assert fast(reader).receive_bytes == 77
    (errors,) = samples_of(read(reader, "infiniband.slow"), IbErrors)
    assert errors.hw_events == {"rx_drops": 3}
    device(bench, files={"state": "4: ACTIVE"}, port=2)
    assert [sample.hw_events for sample in samples_of(read(reader, "infiniband.slow"), IbErrors)] == [{}, {}]


def way_of(bench: HostBench) -> tuple[str, ...]:
    (described,) = samples_of(read(reader_of(bench), "infiniband.slow"), IbDevice)
    return described.pci_path


def test_the_way_to_a_card_is_that_of_the_class_link(bench: HostBench) -> None:
    below = "sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0"
    bench.write(f"{below}/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n")
    (bench.root / "sys/class/infiniband").mkdir(parents=True)
    link = bench.root / "sys/class/infiniband/mlx5_0"
    link.symlink_to("../../devices/pci0000:15/0000:15:01.0/0000:18:00.0/infiniband/mlx5_0")
    assert way_of(bench) == ("pci0000:15", "0000:15:01.0", "0000:18:00.0")
    link.unlink()
    virtual = bench.root / "sys/devices/virtual/infiniband/mlx5_0/ports/1"
    virtual.mkdir(parents=True)
    link.symlink_to("../../devices/virtual/infiniband/mlx5_0")
    assert way_of(bench) == ()


def test_the_way_to_a_card_of_a_copied_class_is_that_of_its_function(bench: HostBench) -> None:
    device(bench)
    (bench.root / "sys/class/infiniband/mlx5_0/device").symlink_to("../../../0000:18:00.0")
    assert way_of(bench) == ()
    functions = bench.root / "sys/bus/pci/devices"
    functions.mkdir(parents=True)
    (functions / "0000:18:00.0").symlink_to("../../../devices/pci0000:15/0000:15:01.0/0000:18:00.0")
    assert way_of(bench) == ("pci0000:15", "0000:15:01.0", "0000:18:00.0")
