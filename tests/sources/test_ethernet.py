# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: those with hardware behind them, and what their drivers count."""

import ctypes
import errno
import fcntl
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufeed.clock import SystemClock
from gpufeed.model.desired import CollectorOptions, ProbeConfig
from gpufeed.model.ids import LaneId
from gpufeed.model.network import NetCounters, NetEvents, NetInterface
from gpufeed.sources.contract import Board, Desk, Outcome, Reader
from gpufeed.sources.ethernet import EthernetSource, NetSpec, open_driver_statistics, open_net
from gpufeed.sources.interfaces import MAX_INTERFACES
from gpufeed.units import NS_PER_MS, NS_PER_S
from host_bench import HostBench, failing, open_files, read, samples_of, statuses

FUNCTION = "sys/devices/pci0000:10/0000:10:00.0/0000:11:00.0"


def interface(bench: HostBench, name: str = "eth0", function: str = FUNCTION, **files: str) -> str:
    path = f"{function}/net/{name}"
    content = {
        "operstate": "up",
        "carrier": "1",
        "speed": "100000",
        "carrier_changes": "5",
        "ifindex": "7",
        "address": "02:00:00:00:00:07",
        "statistics/rx_bytes": "1000",
        "statistics/tx_bytes": "2000",
        "statistics/rx_errors": "1",
        "statistics/tx_errors": "2",
        "statistics/rx_dropped": "3",
        "statistics/tx_dropped": "4",
        "statistics/rx_missed_errors": "5",
        "statistics/rx_crc_errors": "1",
    } | {file.replace("__", "/"): text for file, text in files.items()}
    for file, text in content.items():
        bench.write(f"{path}/{file}", f"{text}\n")
    bench.write(f"{function}/numa_node", "1\n")
    link(bench, f"{path}/device", f"../../../{function.rpartition('/')[2]}")
    link(bench, f"sys/class/net/{name}", f"../../../{path}")
    return path


def link(bench: HostBench, path: str, target: str) -> None:
    full = bench.root / path
    full.parent.mkdir(parents=True, exist_ok=True)
    full.symlink_to(target)


def net(bench: HostBench) -> Reader:
    return bench.open(EthernetSource().plan(bench.config)[0])


@pytest.fixture
def drivers(bench: HostBench) -> Iterator[Callable[[], Reader]]:
    """Opens readers of what drivers count, and closes them."""
    opened: list[Reader] = []

    def open_one() -> Reader:
        opened.append(bench.open(EthernetSource().plan(bench.config)[1]))
        return opened[-1]

    yield open_one
    for reader in opened:
        reader.close()


def states(bench: HostBench) -> list[NetInterface]:
    return samples_of(read(net(bench), "ethernet.slow"), NetInterface)


def names(bench: HostBench) -> list[str]:
    return [sample.device for sample in states(bench)]


def test_an_interface_is_described_and_counted(bench: HostBench) -> None:
    interface(bench)
    (bench.root / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    link(bench, f"{FUNCTION}/driver", "../../../../bus/pci/drivers/mlx5_core")
    reader = net(bench)
    slow, fast = read(reader, "ethernet.slow"), read(reader, "ethernet.fast")
    assert slow.samples == (
        NetInterface(
            device="eth0",
            is_up=True,
            speed_bytes_per_s=12.5e9,
            carrier_changes=5,
            errors={"rx_errors": 1, "tx_errors": 2, "rx_dropped": 3, "tx_dropped": 4, "rx_missed_errors": 5},
            driver="mlx5_core",
            pci_bus_id="0000:11:00.0",
            numa_node=1,
        ),
    )
    assert fast.samples == (NetCounters(device="eth0", receive_bytes=1000, transmit_bytes=2000),)
    assert statuses(slow)["ethernet", ""].state == "available"
    reader.close()


def test_only_interfaces_with_hardware_behind_them_are_taken(bench: HostBench) -> None:
    interface(bench, "eth0")
    bench.write("sys/class/net/lo/operstate", "unknown\n")
    bench.write("sys/class/net/veth1/operstate", "up\n")
    bench.write("sys/class/net/bonding_masters", "bond0\n")
    link(bench, "sys/class/net/gone", "../../devices/nothing")
    assert names(bench) == ["eth0"]


def test_a_device_link_that_leads_nowhere_still_says_that_there_is_hardware(bench: HostBench) -> None:
    bench.write("sys/class/net/eth0/operstate", "up\n")
    link(bench, "sys/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:1f.6/")
    (sample,) = states(bench)
    assert (sample.device, sample.is_up, sample.pci_bus_id, sample.numa_node) == ("eth0", True, "0000:00:1f.6", None)


def test_virtual_functions_and_their_near_ends_are_left_out(bench: HostBench) -> None:
    interface(bench, "eth0", phys_port_name="p0")
    interface(bench, "eth0_3", phys_port_name="pf0vf3")
    virtual = f"{FUNCTION[:-1]}3"
    interface(bench, "eth3", virtual)
    (bench.root / virtual / "physfn").symlink_to(bench.root / FUNCTION)
    assert names(bench) == ["eth0"]


def test_a_port_that_will_not_be_named_is_taken(bench: HostBench) -> None:
    path = interface(bench)
    bench.refuse(f"{path}/phys_port_name")
    assert names(bench) == ["eth0"]


def test_a_node_of_too_many_interfaces_is_cut(bench: HostBench) -> None:
    for number in range(MAX_INTERFACES + 3):
        (bench.root / f"sys/class/net/eth{number:03}/device").mkdir(parents=True)
    assert len(names(bench)) == MAX_INTERFACES


@pytest.mark.parametrize("speed", ["-1", "4294967295"])
def test_the_speed_of_an_interface_without_one_is_absent_and_never_negative(bench: HostBench, speed: str) -> None:
    interface(bench, speed=speed)
    (sample,) = states(bench)
    assert (sample.is_up, sample.speed_bytes_per_s) == (True, None)


def test_the_speed_of_an_interface_that_is_down_is_not_asked_for(bench: HostBench) -> None:
    path = interface(bench, operstate="down")
    bench.refuse(f"{path}/speed")
    outcome = read(net(bench), "ethernet.slow")
    (sample,) = samples_of(outcome, NetInterface)
    assert (sample.is_up, sample.speed_bytes_per_s, outcome.failures) == (False, None, ())


@pytest.mark.parametrize(("carrier", "is_up"), [("1", True), ("0", False), (None, None)])
def test_carrier_decides_where_the_driver_keeps_no_state(
    bench: HostBench, carrier: str | None, is_up: bool | None
) -> None:
    path = interface(bench, operstate="unknown")
    if carrier is None:
        (bench.root / f"{path}/carrier").unlink()
    else:
        bench.write(f"{path}/carrier", carrier)
    (sample,) = states(bench)
    assert sample.is_up is is_up


def test_one_file_that_cannot_be_read_is_one_value_less(bench: HostBench) -> None:
    path = interface(bench)
    bench.refuse(f"{path}/statistics/rx_dropped")
    bench.write(f"{path}/carrier_changes", "many")
    outcome = read(net(bench), "ethernet.slow")
    (sample,) = samples_of(outcome, NetInterface)
    assert sample.carrier_changes is None
    assert sorted(sample.errors) == ["rx_errors", "rx_missed_errors", "tx_dropped", "tx_errors"]
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [
        ("eth0/statistics/rx_dropped", "broken"),
        ("eth0/carrier_changes", "parse"),
    ]


def test_an_interface_that_vanishes_takes_nothing_with_it(bench: HostBench) -> None:
    interface(bench, "eth0")
    interface(bench, "eth1", f"{FUNCTION[:-1]}1")
    reader = net(bench)
    read(reader, "ethernet.slow")
    (bench.root / "sys/class/net/eth0").unlink()
    outcome = read(reader, "ethernet.fast")
    assert samples_of(outcome, NetCounters) == [
        NetCounters(device="eth0"),
        NetCounters(device="eth1", receive_bytes=1000, transmit_bytes=2000),
    ]
    assert outcome.failures == ()
    assert [sample.device for sample in samples_of(read(reader, "ethernet.slow"), NetInterface)] == ["eth1"]


def bond(bench: HostBench, name: str = "bond0") -> None:
    (bench.root / f"sys/devices/virtual/net/{name}/bonding").mkdir(parents=True)
    link(bench, f"sys/class/net/{name}", f"../../devices/virtual/net/{name}")


def test_a_member_of_a_bond_says_of_which_and_the_bond_is_no_interface_of_its_own(bench: HostBench) -> None:
    path = interface(bench)
    bond(bench)
    link(bench, f"{path}/master", "../../../../../virtual/net/bond0")
    (sample,) = states(bench)
    assert (sample.device, sample.bond) == ("eth0", "bond0")


def test_a_bond_is_found_where_its_links_are_directories(bench: HostBench) -> None:
    path = interface(bench)
    bond(bench)
    for upper in ("upper_vlan7", "upper_bond0"):
        (bench.root / path / upper).mkdir()
    (sample,) = states(bench)
    assert sample.bond == "bond0"


def test_a_bridge_is_no_bond(bench: HostBench) -> None:
    path = interface(bench)
    (bench.root / "sys/class/net/br0/bridge").mkdir(parents=True)
    link(bench, f"{path}/master", "../../../../../virtual/net/br0")
    (sample,) = states(bench)
    assert sample.bond is None


def test_a_node_without_interfaces_says_so(bench: HostBench) -> None:
    outcome = read(net(bench), "ethernet.slow")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["ethernet", ""].state == "absent"


def test_a_class_that_cannot_be_listed_is_tried_again(
    bench: HostBench, drivers: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    interface(bench)
    reader, driver = net(bench), drivers()
    with monkeypatch.context() as patch:
        patch.setattr("os.listdir", failing(open, OSError(errno.EIO, "")))
        outcome = read(reader, "ethernet.fast")
        assert (outcome.samples, [failure.reason for failure in outcome.failures]) == ((), ["broken"])
        assert statuses(outcome)["ethernet", ""].state == "broken"
        assert [failure.reason for failure in read(driver, "ethernet.slow").failures] == ["broken"]
    assert len(read(reader, "ethernet.fast").samples) == 1


def test_bytes_are_read_once_a_second_at_most(bench: HostBench) -> None:
    bench.fast_period_ns = 200 * NS_PER_MS
    plan, driver = EthernetSource().plan(bench.config)
    assert {group.name: group.period_ns for group in plan.groups} == {
        "ethernet.slow": 10 * NS_PER_S,
        "ethernet.fast": NS_PER_S,
    }
    assert [plan.lane, driver.lane] == ["net", "ethtool"]


def test_interfaces_are_left_out_before_any_of_their_files_is_read(
    bench: HostBench, drivers: Callable[[], Reader]
) -> None:
    for name in ("eth0", "eth1", "ib0"):
        interface(bench, name)
        bench.write(f"ethtool/{name}/statistics", "NIC statistics:\n     rx_discards_phy: 9\n")
    bench.write(f"{FUNCTION}/net/eth1/operstate", "garbage\n")
    bench.options["ethernet"] = CollectorOptions(include="^eth", exclude="1$")
    outcome = read(net(bench), "ethernet.slow")
    assert [sample.device for sample in samples_of(outcome, NetInterface)] == ["eth0"]
    assert outcome.failures == ()
    assert [sample.device for sample in samples_of(read(drivers(), "ethernet.slow"), NetEvents)] == ["eth0"]


def test_a_collector_switched_off_has_no_lane(bench: HostBench) -> None:
    bench.options["ethernet"] = CollectorOptions(enabled=False)
    assert EthernetSource().plan(bench.config) == ()


def events(outcome: Outcome) -> NetEvents:
    (sample,) = samples_of(outcome, NetEvents)
    return sample


def test_kept_text_of_a_driver_is_sorted_into_kinds(bench: HostBench, drivers: Callable[[], Reader]) -> None:
    interface(bench)
    interface(bench, "eth1")
    bench.write(
        "ethtool/eth0/statistics",
        "NIC statistics:\n     rx_prio3_pause_duration: 2000000\n     rx0_bytes: 1\n     outbound_pci_stalled_rd: 25\n"
        "     rx_discards_phy: 9\nnonsense\n",
    )
    bench.write("ethtool/eth1/statistics", "NIC statistics:\n     rx0_bytes: 1\n")
    outcome = read(drivers(), "ethernet.slow")
    assert events(outcome) == NetEvents(
        device="eth0",
        events={"rx_discards_phy": 9},
        pause_s={"receive": 2.0},
        priority_pause_s={"receive": {"3": 2.0}},
        pci_stall_ratio={"read": 0.25},
    )
    assert [(failure.device, failure.reason) for failure in outcome.failures] == [("eth0/ethtool", "parse")]


def test_an_interface_of_another_namespace_is_never_taken_for_ours(
    bench: HostBench, drivers: Callable[[], Reader]
) -> None:
    # every network namespace has a loopback: the kernel would answer for ours
    interface(bench, "lo", ifindex=str(socket.if_nametoindex("lo")), address="02:11:22:33:44:55")
    interface(bench, "eth9", ifindex="no number")
    outcome = read(drivers(), "ethernet.slow")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["ethtool", "lo"].state == "absent"
    assert statuses(outcome)["ethtool", "eth9"].state == "absent"


def test_a_name_too_long_for_an_interface_is_absent(
    bench: HostBench, drivers: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "if_nametoindex", lambda _name: 7)
    interface(bench, "a-name-of-more-than-fifteen", address="00:00:00:00:00:00")
    assert read(drivers(), "ethernet.slow").samples == ()


class Kernel:
    """The kernel's side of the two requests: answers into the caller's memory, as it does."""

    def __init__(self, **values: int) -> None:
        self.values = values
        self.error: int | None = None
        self.has_set = True
        self.counted: Callable[[], int] = lambda: len(self.values)
        self.asked: list[int] = []

    def ioctl(self, _socket: socket.socket, request: int, argument: bytes) -> bytes:
        if self.error is not None:
            raise OSError(self.error, "")
        if request == 0x8927:
            return argument[:18] + bytes.fromhex("020000000007") + argument[24:]
        (address,) = struct.unpack_from("P", argument, 16)
        command, _, length = struct.unpack("=III", ctypes.string_at(address, 12))
        self.asked.append(command)
        answer = {
            0x37: struct.pack("=IIQI", command, 0, 2 if self.has_set else 0, self.counted()),
            0x1B: struct.pack("=III", command, 1, len(self.values))
            + b"".join(name.encode().ljust(32, b"\0") for name in self.values),
            0x1D: struct.pack(f"=II{len(self.values)}Q", command, len(self.values), *self.values.values()),
        }[command]
        assert length is not None
        ctypes.memmove(address, answer, len(answer))
        return argument


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    answering = Kernel(rx0_bytes=11, rx_discards_phy=22, outbound_pci_stalled_wr=50)
    monkeypatch.setattr(fcntl, "ioctl", answering.ioctl)
    monkeypatch.setattr(socket, "if_nametoindex", lambda _name: 7)
    return answering


def test_a_driver_is_asked_for_its_names_once_and_for_values_each_time(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel
) -> None:
    interface(bench)
    reader = drivers()
    assert events(read(reader, "ethernet.slow")).events == {"rx_discards_phy": 22}
    kernel.values["rx_discards_phy"] = 23
    found = events(read(reader, "ethernet.slow"))
    assert (found.events, found.pci_stall_ratio) == ({"rx_discards_phy": 23}, {"write": 0.5})
    assert kernel.asked == [0x37, 0x1B, 0x1D, 0x1D]


def test_names_are_asked_for_again_when_there_are_more_of_them(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel
) -> None:
    interface(bench)
    reader = drivers()
    read(reader, "ethernet.slow")
    kernel.values = {"rx0_bytes": 1, "rx1_bytes": 2, "rx2_bytes": 3, "rx_discards_phy": 24}
    assert events(read(reader, "ethernet.slow")).events == {"rx_discards_phy": 24}


def test_a_driver_that_changes_what_it_counts_at_every_look_is_broken(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel
) -> None:
    interface(bench)
    reader = drivers()

    def ioctl(one: socket.socket, request: int, argument: bytes) -> bytes:
        answer = kernel.ioctl(one, request, argument)
        if kernel.asked and kernel.asked[-1] == 0x1B:
            kernel.values[f"rx{len(kernel.values)}_bytes"] = 1
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "ioctl", ioctl)
        outcome = read(reader, "ethernet.slow")
    assert [failure.reason for failure in outcome.failures] == ["broken"]
    assert statuses(outcome)["ethtool", "eth0"].state == "broken"


@pytest.mark.parametrize("count", [0, 8193, 4])
def test_a_count_that_cannot_be_is_unsupported_and_nothing_is_read(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel, count: int
) -> None:
    interface(bench)
    kernel.counted = lambda: count
    outcome = read(drivers(), "ethernet.slow")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["ethtool", "eth0"].state == "unsupported"
    assert 0x1D not in kernel.asked


def test_a_driver_without_statistics_is_unsupported(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel
) -> None:
    interface(bench)
    kernel.has_set = False
    assert statuses(read(drivers(), "ethernet.slow"))["ethtool", "eth0"].state == "unsupported"


@pytest.mark.parametrize(("error", "state"), [(errno.EOPNOTSUPP, "unsupported"), (errno.ENODEV, "absent")])
def test_a_driver_that_refuses_is_no_failure(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel, error: int, state: str
) -> None:
    interface(bench)
    reader = drivers()
    read(reader, "ethernet.slow")
    bench.write(f"{FUNCTION}/net/eth0/address", "02:00:00:00:00:07\n")
    with pytest.MonkeyPatch.context() as patch:

        def ioctl(one: socket.socket, request: int, argument: bytes) -> bytes:
            if request == 0x8946:
                raise OSError(error, "")
            return kernel.ioctl(one, request, argument)

        patch.setattr(fcntl, "ioctl", ioctl)
        outcome = read(reader, "ethernet.slow")
    assert (outcome.samples, outcome.failures) == ((), ())
    assert statuses(outcome)["ethtool", "eth0"].state == state


def test_an_interface_that_the_kernel_knows_nothing_of_is_absent(
    bench: HostBench, drivers: Callable[[], Reader], kernel: Kernel
) -> None:
    interface(bench)
    kernel.error = errno.ENODEV
    assert statuses(read(drivers(), "ethernet.slow"))["ethtool", "eth0"].state == "absent"


def real_desk(tmp_path: Path) -> Desk:
    return Desk(lane=LaneId("x"), clock=SystemClock(), config=ProbeConfig(runtime_dir=str(tmp_path)), board=Board())


def test_each_interface_of_this_machine_has_moved_between_before_and_after(tmp_path: Path) -> None:
    def moved(device: str) -> int:
        return int(Path(f"/sys/class/net/{device}/statistics/rx_bytes").read_text(encoding="ascii"))

    listed = [path.name for path in Path("/sys/class/net").iterdir() if (path / "device").is_symlink()]
    before = {device: moved(device) for device in listed}
    outcome = read(open_net(NetSpec(), real_desk(tmp_path)), "ethernet.fast")
    for sample in samples_of(outcome, NetCounters):
        assert sample.receive_bytes is not None
        assert before[sample.device] <= sample.receive_bytes <= moved(sample.device)


def test_drivers_of_this_machine_answer_or_say_that_they_do_not(tmp_path: Path) -> None:
    before = open_files()
    reader = open_driver_statistics(NetSpec(), real_desk(tmp_path))
    outcome = read(reader, "ethernet.slow")
    reader.close()
    assert outcome.failures == ()
    assert {status.state for status in outcome.inputs} <= {"available", "unsupported", "absent", "denied"}
    assert open_files() == before
