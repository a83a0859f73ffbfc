# SPDX-License-Identifier: Apache-2.0
"""Fabric, storage, host, health and gpufeed itself as families."""

from dataclasses import replace

import pytest

from exposition import nodes
from exposition.reading import family_of, rows_of
from gpufeed.exposition.server_facts import ProcessFacts, ServerFacts
from gpufeed.model.frame import InputStatus, LaneStatus
from gpufeed.model.host import Pressure
from gpufeed.model.ids import IbPortKey, LaneId, StorageKey
from gpufeed.model.state import CollectorRecord, NodeState, Verdict
from gpufeed.model.storage import StorageCounters, StorageInfo

SECOND = nodes.SECOND
EMPTY = NodeState(time=nodes.TIME)
PORT = {"device": "mlx5_0", "port": "1"}


def test_a_port_is_described_and_counted() -> None:
    state = nodes.node(ports=1)
    assert rows_of(state, "gpufeed_ib_port_info") == [
        (PORT | {"link_layer": "InfiniBand", "lid": "100", "speed": "NDR", "netdev": ""}, 1)
    ]
    assert rows_of(state, "gpufeed_ib_port_receive_bytes_total") == [(PORT, 4_000)]
    assert rows_of(state, "gpufeed_ib_port_saturated_counters") == [(PORT, 1)]
    assert rows_of(state, "gpufeed_ib_port_saturated") == [(PORT | {"counter": "local_link_integrity_errors"}, 1)]
    assert (PORT | {"type": "local_link_integrity_errors"}, 15) in rows_of(state, "gpufeed_ib_port_errors_total")


def test_an_interface_is_described_and_counted_and_its_pauses_stand_whole_and_by_priority() -> None:
    state = nodes.node(ports=1)
    device = {"device": "eth0"}
    described = {"driver": "mlx5_core", "pci_bus_id": "0000:19:00.1", "numa_node": "0", "bond": "bond0"}
    assert rows_of(state, "gpufeed_net_info") == [(device | described, 1)]
    assert rows_of(state, "gpufeed_net_up") == [(device, 1)]
    assert rows_of(state, "gpufeed_net_receive_bytes_total") == [(device, 11_000)]
    assert (device | {"type": "rx_dropped"}, 0) in rows_of(state, "gpufeed_net_errors_total")
    assert (device | {"direction": "receive"}, 0.5) in rows_of(state, "gpufeed_net_pause_seconds_total")
    assert len(rows_of(state, "gpufeed_net_priority_pause_seconds_total")) == 16
    assert (device | {"direction": "read"}, 0.25) in rows_of(state, "gpufeed_net_pci_stall_ratio")


def test_storage_says_what_it_is_by_the_options_that_matter() -> None:
    mount = StorageKey("nfs", "/data")
    info = StorageInfo(
        storage=mount, source="nas:/x", fstype="nfs4", options={"vers": "4.2", "ro": "", "addr": "10.0.0.1"}
    )
    [(labels, _)] = rows_of(nodes.with_samples(EMPTY, info), "gpufeed_storage_info")
    assert labels == {
        "kind": "nfs",
        "target": "/data",
        "source": "nas:/x",
        "fstype": "nfs4",
        "vers": "4.2",
        "proto": "",
        "nconnect": "",
        "rsize": "",
        "wsize": "",
        "ro": "true",
    }


def test_storage_without_options_has_none() -> None:
    [(labels, _)] = rows_of(
        nodes.with_samples(EMPTY, StorageInfo(storage=StorageKey("block", "sda"))), "gpufeed_storage_info"
    )
    assert {labels[name] for name in labels if name not in {"kind", "target"}} == {""}


def test_a_kind_that_does_not_count_something_has_no_row_of_it() -> None:
    state = nodes.with_samples(EMPTY, StorageCounters(storage=StorageKey("weka", "/w"), read_bytes=0))
    assert rows_of(state, "gpufeed_storage_read_bytes_total") == [({"kind": "weka", "target": "/w"}, 0)]
    assert rows_of(state, "gpufeed_storage_timeouts_total") == []
    assert rows_of(state, "gpufeed_storage_operations_total") == []


def test_pressure_of_cgroups_is_not_the_pressure_of_the_node() -> None:
    state = nodes.with_samples(
        EMPTY,
        Pressure(resource="cpu", waiting_s=1.5),
        Pressure(resource="io", cgroup="/job", waiting_s=9.0, stalled_s=9.0),
    )
    assert rows_of(state, "gpufeed_pressure_waiting_seconds_total") == [({"resource": "cpu"}, 1.5)]
    assert rows_of(state, "gpufeed_pressure_stalled_seconds_total") == []
    assert rows_of(state, "gpufeed_pressure_available") == [({"resource": "cpu"}, 1)]


@pytest.mark.parametrize(
    ("scope", "refused"), [("", {"cpu", "io", "memory", "irq"}), ("irq", {"irq"}), ("memory", {"memory"})]
)
def test_pressure_that_the_kernel_does_not_give_is_said_to_be_unavailable(scope: str, refused: set[str]) -> None:
    status = InputStatus(input="pressure", scope=scope, state="absent", reason="built without PSI")
    state = replace(EMPTY, inputs={("pressure", scope): status})
    assert rows_of(state, "gpufeed_pressure_available") == [
        ({"resource": name}, 0) for name in ("cpu", "io", "memory", "irq") if name in refused
    ]


def test_an_input_is_available_when_one_device_has_it() -> None:
    statuses = (
        InputStatus(input="gpm", scope="GPU-0", state="unsupported"),
        InputStatus(input="gpm", scope="GPU-1", state="available"),
        InputStatus(input="nfs", scope="", state="denied"),
        InputStatus(input="c2c", scope="GPU-0", state="unsupported"),  # nothing is decided by it
    )
    state = replace(EMPTY, inputs={(status.input, status.scope): status for status in statuses})
    assert rows_of(state, "gpufeed_attribution_input_available") == [({"input": "gpm"}, 1), ({"input": "nfs"}, 0)]


def test_a_verdict_comes_out_under_the_labels_of_its_subject() -> None:
    found = (
        Verdict(subject=nodes.key(1), check="xid", level=2, since_ns=0),
        Verdict(subject=IbPortKey("mlx5_0", 1), check="link", level=1, since_ns=0),
        Verdict(subject=StorageKey("nfs", "/data"), check="answers", level=0, since_ns=0),
        Verdict(subject="host", check="pressure", level=0, since_ns=0),
        Verdict(subject="self", check="lanes", level=2, since_ns=0),
        Verdict(subject=nodes.key(9), check="xid", level=2, since_ns=0),
    )
    state = replace(nodes.node(gpus=2), verdicts={(verdict.subject, verdict.check): verdict for verdict in found})
    assert rows_of(state, "gpufeed_gpu_health") == [({"gpu": "1", "uuid": nodes.uuid(1), "check": "xid"}, 2)]
    assert rows_of(state, "gpufeed_ib_health") == [(PORT | {"check": "link"}, 1)]
    assert rows_of(state, "gpufeed_storage_health") == [({"kind": "nfs", "target": "/data", "check": "answers"}, 0)]
    assert rows_of(state, "gpufeed_host_health") == [({"check": "pressure"}, 0)]
    assert rows_of(state, "gpufeed_self_health") == [({"check": "lanes"}, 2)]


def lane(busy_since_ns: int | None) -> LaneStatus:
    return LaneStatus(
        lane=LaneId("gpu3"),
        collector="nvml",
        busy_since_ns=busy_since_ns,
        late_after_ns=2 * SECOND,
        stuck_after_ns=8 * SECOND,
        gpu=3,
        uuid=nodes.uuid(3),
    )


@pytest.mark.parametrize(
    ("busy_for_ns", "stuck_s"), [(None, 0.0), (0, 0.0), (8 * SECOND - 1, 0.0), (8 * SECOND, 8.0), (60 * SECOND, 60.0)]
)
def test_a_lane_is_stuck_from_its_limit_on_and_since_its_call_began(busy_for_ns: int | None, stuck_s: float) -> None:
    one = lane(None if busy_for_ns is None else nodes.NOW - busy_for_ns)
    state = replace(EMPTY, lanes={one.lane: one})
    labels = {"lane": "gpu3", "gpu": "3", "uuid": nodes.uuid(3)}
    assert rows_of(state, "gpufeed_lane_stuck_seconds") == [(labels, stuck_s)]


def test_full_has_the_fast_period_of_every_lane_that_reads_fast() -> None:
    slow = replace_lane("gpu1", 1_000_000_000)
    usual = replace_lane("gpu0", None)
    state = replace(nodes.node(gpus=1), lanes={one.lane: one for one in (usual, slow)})
    family = family_of(state, "gpufeed_fast_period_seconds", ServerFacts(fast_period_s=0.25))
    assert family is not None
    assert family.rows == [(("gpu1",), 1.0)]
    assert family.full_rows == [(("gpu0",), 0.25)]


def replace_lane(name: str, fast_period_ns: int | None) -> LaneStatus:
    from msgspec.structs import replace as changed

    return changed(lane(None), lane=LaneId(name), fast_period_ns=fast_period_ns)


def test_a_collector_that_never_read_has_errors_and_no_age() -> None:
    failed = CollectorRecord(errors={"denied": 3})
    state = replace(EMPTY, collectors={"nfs": failed})
    assert rows_of(state, "gpufeed_collector_success") == [({"collector": "nfs"}, 0)]
    assert rows_of(state, "gpufeed_collector_errors_total") == [({"collector": "nfs", "reason": "denied"}, 3)]
    assert rows_of(state, "gpufeed_sample_age_seconds") == []
    assert rows_of(state, "gpufeed_collector_duration_seconds") == []


def test_the_age_of_a_collector_is_counted_from_its_last_success() -> None:
    read = CollectorRecord(last_success_ns=nodes.NOW - 1_500_000_000, last_success_wall_s=5.0, is_successful=True)
    state = replace(EMPTY, collectors={"block": read})
    assert rows_of(state, "gpufeed_sample_age_seconds") == [({"collector": "block"}, 1.5)]
    assert rows_of(state, "gpufeed_collector_last_success_timestamp_seconds") == [({"collector": "block"}, 5.0)]


def test_a_server_that_has_just_begun_says_what_it_knows() -> None:
    assert rows_of(EMPTY, "gpufeed_probe_up") == [({}, 0)]
    assert rows_of(EMPTY, "gpufeed_probe_restarts_total") == [({}, 0)]
    assert rows_of(EMPTY, "gpufeed_maintenance") == [({}, 0)]
    assert rows_of(EMPTY, "gpufeed_config_last_reload_successful") == [({}, 1)]
    for absent in (
        "config_info",
        "rules_info",
        "config_last_reload_success_timestamp_seconds",
        "alerts",
        "probe_cpu_seconds_total",
    ):
        assert rows_of(EMPTY, f"gpufeed_{absent}") == []
    assert rows_of(EMPTY, "process_open_fds") == []


def test_a_simulated_node_is_plainly_marked() -> None:
    server = ServerFacts(version="1.2.3", revision="abc", python="3.12.1", is_simulated=True)
    [(labels, _)] = rows_of(EMPTY, "gpufeed_build_info", server)
    assert labels == {"version": "1.2.3", "revision": "abc", "python": "3.12.1", "simulated": "true"}
    [(labels, _)] = rows_of(EMPTY, "gpufeed_build_info")
    assert labels["simulated"] == "false"


def test_alerts_stand_while_there_are_any() -> None:
    server = ServerFacts(alerts={("GpuLost", "page", "firing"): 2, ("NvmlHang", "page", "pending"): 0})
    assert rows_of(EMPTY, "gpufeed_alerts", server) == [
        ({"alertname": "GpuLost", "severity": "page", "state": "firing"}, 2)
    ]


def test_scrapes_are_observed_without_changing_the_facts_of_before() -> None:
    before = ServerFacts()
    after = replace(before, scrape_durations=before.with_scrape(0.01))
    assert sum(before.scrape_durations.counts) == 0
    assert sum(after.scrape_durations.counts) == 1


def test_the_process_has_the_names_that_every_exporter_uses() -> None:
    facts = ProcessFacts(cpu_s=1.5, resident_bytes=2, virtual_bytes=3, start_wall_s=4.0, open_fds=5, max_fds=6)
    names = (
        "cpu_seconds_total",
        "resident_memory_bytes",
        "virtual_memory_bytes",
        "start_time_seconds",
        "open_fds",
        "max_fds",
    )
    found = [rows_of(EMPTY, f"process_{name}", ServerFacts(process=facts)) for name in names]
    assert found == [[({}, value)] for value in (1.5, 2, 3, 4.0, 5, 6)]
