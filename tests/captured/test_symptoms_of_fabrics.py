# SPDX-License-Identifier: Apache-2.0
"""What other exporters' users met with on RDMA devices and network cards, each by its symptom.

The numbers are rows of the table of such reports that this was written from; #2846 and the like are those of its
threads in node_exporter and elsewhere.
"""

import pytest

from captured.written import Written as Node
from gpufeed.config.collectors import Collectors, InfinibandCollector

HEALTHY = """
:: sys/class/infiniband/mlx5_0
board_id MT_0000000838
ports/1/state 4: ACTIVE
ports/1/phys_state 5: LinkUp
ports/1/link_layer InfiniBand
ports/1/rate 400 Gb/sec (4X NDR)
ports/1/counters/port_rcv_data 1000
ports/1/counters/port_xmit_data 2000
ports/1/counters/symbol_error 0
"""
"""A neighbour that nothing may take away."""


def is_whole(node: Node) -> bool:
    """Whether the neighbour has everything."""
    received = node.value("ib_port_receive_bytes_total", device="mlx5_0", port="1")
    return received == 4000 and node.value("ib_port_rate_bytes_per_second", device="mlx5_0", port="1") == 50e9


def device(name: str, **files: str) -> str:
    entries = "".join(f"ports/1/{path} {text}\n" for path, text in files.items())
    return f"{HEALTHY}:: sys/class/infiniband/{name}\n{entries}"


def port(node: Node, metric: str, name: str) -> float | None:
    return node.value(f"ib_port_{metric}", device=name, port="1")


def test_1_a_counter_that_says_no_pma_does_not_fail_the_scrape(node: Node) -> None:
    silent = {"state": "4: ACTIVE", "counters/port_rcv_data": "N/A (no PMA)", "counters/symbol_error": "N/A (no PMA)"}
    node.write(device("i40iw0", **silent))
    assert port(node, "receive_bytes_total", "i40iw0") is None
    assert port(node, "state_id", "i40iw0") == 4
    assert node.failures() == {}
    assert is_whole(node)


def test_2_a_driver_without_counters_and_board_id_does_not_take_mlx5_along(node: Node) -> None:
    node.write(device("irdma0", **{"state": "4: ACTIVE", "hw_counters/ip4InOctets": "77"}))
    assert port(node, "receive_bytes_total", "irdma0") == 77
    assert is_whole(node)


def test_3_bnxt_re_without_counters_has_metrics_all_the_same(node: Node) -> None:
    node.write(device("bnxt_re0", **{"state": "4: ACTIVE", "hw_counters/rx_bytes": "5", "hw_counters/tx_bytes": "6"}))
    assert (port(node, "receive_bytes_total", "bnxt_re0"), port(node, "transmit_bytes_total", "bnxt_re0")) == (5, 6)
    assert is_whole(node)


def test_4_a_counter_that_refuses_to_be_read_is_one_series_less(node: Node) -> None:
    node.write(device("mlx5_1", **{"state": "4: ACTIVE", "counters/VL15_dropped": "!", "counters/symbol_error": "3"}))
    assert node.values("ib_port_errors_total", device="mlx5_1") == {"1,symbol_error": 3}
    assert is_whole(node)


@pytest.mark.parametrize("is_excluded", [False, True])
def test_5_an_excluded_device_is_not_read_at_all(node: Node, *, is_excluded: bool) -> None:
    node.write(device("mana_0", state="4: ACTIVE", rate="!"))
    if is_excluded:
        node.collectors = Collectors(infiniband=InfinibandCollector(exclude="^mana"))
    assert node.failures() == ({} if is_excluded else {"infiniband,broken": 1})
    assert port(node, "state_id", "mana_0") == (None if is_excluded else 4)
    assert is_whole(node)


@pytest.mark.parametrize(
    "rate", ["100 Gb/sec (1X NDR)", "200 Gb/sec (2X NDR)", "400 Gb/sec (4X NDR)", "800 Gb/sec (8X NDR)"]
)
def test_6_and_7_bytes_are_four_times_the_words_whatever_the_width(node: Node, rate: str) -> None:
    node.write(device("mlx5_1", **{"rate": rate, "counters/port_rcv_data": "250"}))
    assert port(node, "receive_bytes_total", "mlx5_1") == 1000


@pytest.mark.parametrize("rate", ["0 GB/sec", "!"])
def test_8_and_9_a_port_without_a_cable_has_no_rate_and_is_no_error(node: Node, rate: str) -> None:
    node.write(device("mlx5_1", state="1: DOWN", rate=rate))
    assert port(node, "rate_bytes_per_second", "mlx5_1") is None
    assert port(node, "state_id", "mlx5_1") == 1
    assert is_whole(node)


def test_10_hfi1_without_counters_ext_has_data(node: Node) -> None:
    node.write(device("hfi1_0", **{"counters/port_rcv_data": "9", "hw_counters/SwLinkUp,32": "2"}))
    assert port(node, "receive_bytes_total", "hfi1_0") == 36
    assert node.values("ib_port_hw_events_total", device="hfi1_0") == {"SwLinkUp,32,1": 2}


def test_11_a_node_without_rdma_is_silent(node: Node) -> None:
    node.write(":: sys/class\n")
    assert node.failures() == {}
    assert node.input("infiniband").state == "absent"


def test_12_a_roce_device_without_counters_is_no_error(node: Node) -> None:
    node.write(device("rocep1s0", state="4: ACTIVE", link_layer="Ethernet"))
    assert node.failures() == {}
    assert is_whole(node)


def test_13_efa_has_traffic_and_its_bytes_are_bytes(node: Node) -> None:
    node.write(device("rdmap16s27", **{"hw_counters/rx_bytes": "1001", "hw_counters/rdma_read_bytes": "7"}))
    assert port(node, "receive_bytes_total", "rdmap16s27") == 1001
    assert node.values("ib_port_hw_events_total", device="rdmap16s27") == {}


def test_14_and_6_mlx5_has_traffic_from_sysfs(node: Node) -> None:
    node.write(HEALTHY)
    assert port(node, "transmit_bytes_total", "mlx5_0") == 8000


def test_15_a_counter_at_its_ceiling_is_not_a_healthy_flat_line(node: Node) -> None:
    at_the_end = {"counters/port_xmit_wait": "4294967295", "counters/link_downed": "255", "counters/symbol_error": "9"}
    node.write(device("mlx5_1", **at_the_end))
    assert node.values("ib_port_saturated", device="mlx5_1", port="1") == {"link_downed": 1, "port_xmit_wait": 1}
    assert node.value("ib_port_saturated_counters", device="mlx5_1", port="1") == 2


def test_16_counters_reset_from_elsewhere_are_followed_and_flap_nothing(node: Node) -> None:
    counted = {"state": "4: ACTIVE", "counters/link_downed": "9", "counters/port_rcv_data": "900"}
    node.write(device("mlx5_1", **counted))
    assert port(node, "receive_bytes_total", "mlx5_1") == 3600
    for file, text in (("link_downed", "0\n"), ("port_rcv_data", "2\n")):
        node.replace(f"sys/class/infiniband/mlx5_1/ports/1/counters/{file}", text)
    assert node.value("ib_port_receive_bytes_total", 15, device="mlx5_1", port="1") == 8
    assert port(node, "flaps_total", "mlx5_1") == 0
    assert node.values("ib_health", device="mlx5_1", check="errors") in ({"1": 0}, {})


def test_17_a_port_that_never_was_up_is_not_unhealthy_for_its_rate(node: Node) -> None:
    node.write(device("mlx5_1", state="1: DOWN", phys_state="3: Disabled", rate="10 Gb/sec (4X SDR)"))
    assert node.values("ib_health", 15, device="mlx5_1") in ({"flapping,1": 0}, {})


def test_18_a_management_device_on_the_same_function_is_not_taken_for_the_card(node: Node) -> None:
    node.write(device("smi1", state="4: ACTIVE"))
    assert port(node, "state_id", "smi1") is None
    assert is_whole(node)


@pytest.mark.parametrize("speed", ["-1", "!", "4294967295", "0", ""])
def test_39_an_interface_without_speed_has_none_and_is_not_lost(node: Node, speed: str) -> None:
    node.write(
        f":: sys/class/net/eth0\ndevice/numa_node 0\noperstate up\nlower_x/y 1\nstatistics/rx_bytes 7\nspeed {speed}"
    )
    assert node.value("net_speed_bytes_per_second", device="eth0") is None
    assert node.value("net_receive_bytes_total", device="eth0") == 7


def test_40_odd_and_many_names_of_a_driver_are_neither_a_panic_nor_ten_thousand_series(node: Node) -> None:
    names = "".join(f"|     [{queue}]: rx ucast packets: 1\n|     rx{queue}_xsk_packets: 2\n" for queue in range(512))
    twice = "|     rx_discards_phy: 4\n|     rx_discards_phy: 5\n|     outbound_pci_stalled_rd: 30\n|     garbage\n"
    node.write(
        f":: sys/class/net/eth0\ndevice/numa_node 0\noperstate up\n"
        f":: ethtool/eth0\nstatistics =\n|NIC statistics:\n{names}{twice}"
    )
    assert node.values("net_events_total", device="eth0") == {"rx_discards_phy": 4}
    assert node.values("net_pci_stall_ratio", device="eth0") == {"read": 0.3}


def test_50_a_port_that_came_back_stays_counted_and_does_not_stay_down(node: Node) -> None:
    node.write(HEALTHY)
    node.series(15)
    state = "sys/class/infiniband/mlx5_0/ports/1/state"
    for _ in range(3):
        node.replace(state, "1: DOWN\n")
        assert node.value("ib_health", 12, device="mlx5_0", port="1", check="port_down") == 2
        node.replace(state, "4: ACTIVE\n")
        assert node.value("ib_health", 12, device="mlx5_0", port="1", check="port_down") == 0
    assert port(node, "flaps_total", "mlx5_0") == 3
    assert node.value("ib_health", device="mlx5_0", port="1", check="flapping") == 1
