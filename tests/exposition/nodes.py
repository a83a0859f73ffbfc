# SPDX-License-Identifier: Apache-2.0
"""States written by hand: a node of any size on which everything is measured, for tests of what is made of it."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.frame import FrameTime, InputStatus, LaneStatus, ProbeCost
from gpufeed.model.gpu import (
    DriverInfo,
    GpmInterval,
    GpuFast,
    GpuIdentity,
    GpuProcess,
    GpuProcesses,
    GpuSlow,
    NvlinkTotals,
)
from gpufeed.model.gpu_errors import GpuErrorDetail, GpuErrors
from gpufeed.model.host import HostCpu, HostMemory, NodeInfo, Pressure
from gpufeed.model.ids import COLLECTORS, CollectorName, GpuKey, GpuUuid, GroupName, IbPortKey, LaneId, StorageKey
from gpufeed.model.jobs import JobUsage
from gpufeed.model.network import NetCounters, NetDirection, NetEvents, NetInterface
from gpufeed.model.nvlink import NvlinkLink, NvlinkLinks
from gpufeed.model.sample import Sample
from gpufeed.model.state import (
    CAUSES,
    Attribution,
    CollectorRecord,
    GpuRecord,
    GpuTotals,
    Held,
    JobView,
    JobWork,
    NearPort,
    NodeState,
    Ownership,
    ProbeRecord,
    StateCause,
    Subject,
    Verdict,
    XidTotals,
)
from gpufeed.model.storage import StorageCounters, StorageInfo

SECOND = 1_000_000_000
NOW = 1_000 * SECOND
WALL = 1_700_000_000 * SECOND
TIME = FrameTime(monotonic_ns=NOW, boottime_ns=NOW, wall_ns=WALL)
EVERY_PAIR = tuple(StateCause(state, cause) for state, causes in CAUSES.items() for cause in causes)
IB_ERRORS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors", "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped",
)  # fmt: skip
HW_EVENTS = (
    "out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
    "req_transport_retries_exceeded", "out_of_buffer", "roce_adp_retrans", "np_cnp_sent", "rp_cnp_handled",
    "duplicate_request", "rp_cnp_ignored", "np_ecn_marked_roce_packets", "resp_cqe_error",
)  # fmt: skip
NET_EVENTS = (
    "rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer", "link_down_events_phy", "rx_crc_errors_phy",
    "rx_pcs_symbol_err_phy", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy", "tx_pause_storm_warning_events",
    "tx_pause_storm_error_events", "outbound_pci_stalled_rd_events", "outbound_pci_stalled_wr_events",
    "rx_corrected_bits_phy", "outbound_pci_buffer_overflow", "rx_prio3_pause", "rx_prio3_pause_transition",
)  # fmt: skip
FABRIC_TROUBLES = (
    "degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery", "incorrect_configuration",
    "partition_not_assigned", "manager_disconnected",
)  # fmt: skip
PCIE_ERRORS = (
    "l0_to_recovery", "correctable", "naks_received", "receiver", "bad_tlp", "naks_sent", "bad_dllp", "non_fatal",
    "fatal", "unsupported_request", "lcrc", "lane",
)  # fmt: skip
NFS_OPERATIONS = ("READ", "WRITE", "GETATTR", "LOOKUP", "OPEN", "CLOSE", "ACCESS", "READDIR", "COMMIT", "RENAME")


def uuid(index: int) -> GpuUuid:
    return GpuUuid(f"GPU-0000000{index:x}-aaaa-bbbb-cccc-dddddddddddd")


def key(index: int, gi: int | None = None, ci: int | None = None) -> GpuKey:
    return GpuKey(uuid(index), gi, ci)


def held(sample: Sample, group: str = "nvml.fast", collector: CollectorName = "nvml") -> Held[Any]:
    return Held(
        sample=sample,
        lane=LaneId("gpu0"),
        group=GroupName(group),
        collector=collector,
        read_at_ns=NOW,
        stale_at_ns=NOW + 10 * SECOND,
    )


def holding(samples: Iterable[Sample]) -> Mapping[type[Sample], Mapping[Hashable, Held[Any]]]:
    found: dict[type[Sample], dict[Hashable, Held[Any]]] = {}
    for sample in samples:
        found.setdefault(type(sample), {})[sample.subject] = held(sample)
    return found


def with_samples(state: NodeState, *samples: Sample) -> NodeState:
    """The state with these samples besides; they replace those of the same subject."""
    merged = {kind: dict(of_kind) for kind, of_kind in state.samples.items()}
    for kind, of_kind in holding(samples).items():
        merged.setdefault(kind, {}).update(of_kind)
    return replace(state, samples=merged)


def record(index: int, **changes: Any) -> GpuRecord:
    one = GpuRecord(
        uuid=uuid(index),
        index=index,
        lane=LaneId(f"gpu{index}"),
        identity=identity(index),
        condition="ok",
        in_use_at_ns=NOW - 60 * SECOND,
        processes=1,
    )
    return replace(one, **changes)


def identity(index: int) -> GpuIdentity:
    return GpuIdentity(
        gpu=key(index),
        index=index,
        name="NVIDIA H100 80GB HBM3",
        serial=f"165012300{index}",
        pci_bus_id=f"0000:{0x18 + index:02x}:00.0",
        minor=index,
        architecture="hopper",
        part_number="692-2G520-0200-000",
        vbios="96.00.74.00.01",
        inforom="G520.0200.00.05",
        numa_node=index // 4,
        module_id=index + 1,
        power_limit_default_w=700.0,
        sm_clock_max_hz=1.98e9,
        memory_clock_max_hz=2.619e9,
        pcie_generation_max=5,
        pcie_width_max=16,
        graphics_clock_max_hz=1.98e9,
        video_clock_max_hz=1.755e9,
        power_limit_min_w=200.0,
        power_limit_max_w=700.0,
        temperature_limit_margins_c={"shutdown": -8.0, "slowdown": -2.0, "memory_max": 0.0, "gpu_max": 0.0},
    )


def gpu_samples(index: int) -> list[Sample]:
    one = key(index)
    return [
        GpuFast(
            gpu=one,
            utilization_ratio=0.97,
            memory_utilization_ratio=0.41,
            memory_total_bytes=85_520_809_984,
            memory_used_bytes=60_000_000_000,
            memory_reserved_bytes=600_000_000,
            memory_free_bytes=24_920_809_984,
            power_w=651.5,
            power_instant_w=655.25,
            power_limit_enforced_w=700.0,
            energy_j=123456.5 + index,
            temperature_c=61.0,
            memory_temperature_c=72.0,
            graphics_clock_hz=1.755e9,
            sm_clock_hz=1.755e9,
            memory_clock_hz=2.619e9,
            clock_event_ns={
                "sw_power_cap": 5 * SECOND, "hw_slowdown": 0, "sync_boost": 0, "sw_thermal": 0, "hw_thermal": 0,
                "hw_power_brake": 0, "board_limit": 0, "reliability": 0,
            },
            clock_events=0x4,
        ),
        GpmInterval(
            gpu=one,
            began_ns=NOW - SECOND,
            ended_ns=NOW,
            graphics_ratio=0.98,
            sm_ratio=0.9,
            occupancy_ratio=0.3,
            tensor_ratio=0.55,
            dram_ratio=0.4,
        ),
        NvlinkTotals(gpu=one, receive_bytes=7_000, transmit_bytes=8_000, links=18, links_up=18),
        GpuSlow(
            gpu=one,
            pcie_generation=5,
            pcie_width=16,
            pcie_replays=0,
            persistence_enabled=True,
            ecc_enabled=True,
            mig_enabled=False,
            recovery_action=0,
            fabric_state=3,
            fabric_status=0,
            fabric_trouble=dict.fromkeys(FABRIC_TROUBLES, False),
            performance_state=0,
            compute_mode=0,
            encoder_utilization_ratio=0.0,
            decoder_utilization_ratio=0.25,
            bar1_total_bytes=137_438_953_472,
            bar1_used_bytes=4_194_304,
            video_clock_hz=1.5e9,
            temperature_margin_c=26.0,
        ),
        error_counts(one),
        error_detail(one),
        NvlinkLinks(gpu=one, links=tuple(map(nvlink_link, range(18))), errors={"replay": 0, "recovery": 0, "crc": 0}),
        GpuProcesses(gpu=one, processes=(GpuProcess(4242, 60_000_000_000),)),
    ]  # fmt: skip


def error_counts(one: GpuKey) -> GpuErrors:
    return GpuErrors(
        gpu=one,
        ecc_volatile={"corrected": 2, "uncorrected": 0},
        ecc_aggregate={"corrected": 9, "uncorrected": 1},
        pcie_errors=dict.fromkeys(PCIE_ERRORS, 0),
        remapped_rows={"correctable": 0, "uncorrectable": 1},
        row_remap_pending=False,
        row_remap_failed=False,
    )


def error_detail(one: GpuKey) -> GpuErrorDetail:
    places = {kind: {"device_memory": 1, "sram": 0} for kind in ("corrected", "uncorrected")}
    return GpuErrorDetail(
        gpu=one,
        ecc_volatile_locations=places,
        ecc_aggregate_locations=places,
        sram_threshold_exceeded=False,
        row_remap_banks={"max": 2559, "high": 1, "partial": 0, "low": 0, "none": 0},
    )


def nvlink_link(number: int, **changes: Any) -> NvlinkLink:
    one = NvlinkLink(
        link=number,
        is_up=True,
        receive_bytes=400 + number,
        transmit_bytes=500 + number,
        speed_bytes_per_s=26.562e9,
        errors={"replay": 0, "recovery": 0, "crc": 0},
        version="4.0",
        remote_type="switch",
    )
    return msgspec.structs.replace(one, **changes)


def port_samples(index: int) -> list[Sample]:
    device = f"mlx5_{index}"
    port = IbPortKey(device, 1)
    return [
        IbDevice(
            device=device,
            board_id="MT_0000000838",
            firmware="28.39.1002",
            hca_type="MT4129",
            node_guid=f"a088:c203:00ab:{index:04x}",
            pci_bus_id=f"0000:{0x19 + index:02x}:00.0",
            numa_node=index // 4,
        ),
        IbPort(
            port=port,
            link_layer="InfiniBand",
            lid=100 + index,
            state_id=4,
            physical_state_id=5,
            rate_bytes_per_s=5e10,
            width=4,
            speed="NDR",
        ),
        IbCounters(
            port=port,
            receive_bytes=4_000,
            transmit_bytes=8_000,
            receive_packets=2,
            transmit_packets=3,
            transmit_wait_ticks=77,
        ),
        IbErrors(
            port=port,
            errors=dict.fromkeys(IB_ERRORS, 0) | {"local_link_integrity_errors": 15},
            hw_events=dict.fromkeys(HW_EVENTS, 0),
            saturated=("local_link_integrity_errors",),
        ),
    ]


def interface_samples(index: int) -> list[Sample]:
    device = f"eth{index}"
    directions: tuple[NetDirection, ...] = ("receive", "transmit")
    return [
        NetInterface(
            device=device,
            is_up=True,
            speed_bytes_per_s=2.5e10,
            carrier_changes=2,
            errors=dict.fromkeys(("rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_missed_errors"), 0),
            bond="bond0" if index < 2 else None,
            driver="mlx5_core",
            pci_bus_id=f"0000:{0x19 + index:02x}:00.1",
            numa_node=index // 4,
        ),
        NetCounters(device=device, receive_bytes=11_000, transmit_bytes=12_000),
        NetEvents(
            device=device,
            events=dict.fromkeys(NET_EVENTS, 0),
            pause_s=dict.fromkeys(directions, 0.5),
            priority_pause_s={way: dict.fromkeys(map(str, range(8)), 0.0625) for way in directions},
            pci_stall_ratio={"read": 0.25, "write": 0.0},
        ),
    ]


def disk_samples(index: int) -> list[Sample]:
    disk = StorageKey("block", f"nvme{index}n1")
    return [
        StorageInfo(storage=disk),
        StorageCounters(
            storage=disk,
            read_bytes=512 * 8,
            write_bytes=512 * 16,
            reads=4,
            writes=5,
            read_s=0.25,
            write_s=0.5,
            queue_s=0.75,
            busy_s=0.125,
            inflight=0,
        ),
    ]


def mount_samples(index: int) -> list[Sample]:
    mount = StorageKey("nfs", f"/data{index}")
    return [
        StorageInfo(
            storage=mount,
            source=f"nas:/export{index}",
            fstype="nfs4",
            options={"vers": "4.2", "proto": "tcp", "nconnect": "16", "rsize": "1048576", "wsize": "1048576", "ro": ""},
        ),
        StorageCounters(
            storage=mount,
            read_bytes=10_000,
            write_bytes=20_000,
            application_read_bytes=90_000,
            reads=10,
            writes=20,
            read_s=1.5,
            write_s=2.5,
            queue_s=0.5,
            retransmits=0,
            timeouts=0,
            errors=0,
            operations=dict.fromkeys(NFS_OPERATIONS, 3),
            operation_s=dict.fromkeys(NFS_OPERATIONS, 0.5),
        ),
    ]


def host_samples() -> list[Sample]:
    modes = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    return [
        DriverInfo(driver_version="550.90.07", nvml_version="12.550.90.07", cuda_version="12.4", device_count=8),
        NodeInfo(nodename="gpu-17", machine_id="0123456789abcdef", boot_id="b007", product="DGX H100"),
        HostCpu(seconds=dict.fromkeys(modes, 100.0), cpus=224, blocked_tasks=3),
        HostMemory(total_bytes=2_000_000_000_000, available_bytes=1_500_000_000_000),
        Pressure(resource="cpu", waiting_s=12.5),
        Pressure(resource="io", waiting_s=3.5, stalled_s=1.25),
        Pressure(resource="memory", waiting_s=0.0, stalled_s=0.0),
        Pressure(resource="cpu", cgroup="/slurm/job_7", waiting_s=99.0),
    ]


def attribution() -> Attribution:
    """Every pair, with one nanosecond more each."""
    spent = {pair: SECOND + place for place, pair in enumerate(EVERY_PAIR)}
    return Attribution(
        state_ns=spent,
        tracked_ns=sum(spent.values()),
        decided_until_ns=NOW - 3 * SECOND,
        current=EVERY_PAIR[0],
        confidence_ratio=0.9,
    )


def verdicts(gpus: int, ports: int, mounts: int) -> dict[tuple[Subject, str], Verdict]:
    subjects: list[tuple[Subject, tuple[str, ...]]] = [
        *((key(index), ("xid", "ecc", "thermal", "nvlink", "pcie", "lost")) for index in range(gpus)),
        *((IbPortKey(f"mlx5_{index}", 1), ("link", "errors")) for index in range(ports)),
        *((StorageKey("nfs", f"/data{index}"), ("answers",)) for index in range(mounts)),
        ("host", ("pressure",)),
        ("self", ("lanes", "probe")),
    ]
    return {
        (subject, check): Verdict(subject=subject, check=check, level=0, since_ns=0)
        for subject, checks in subjects
        for check in checks
    }


def ownership(gpus: int, ports: int, mounts: int) -> Ownership:
    """One job on all GPUs, which reads two mounts; two cards near to each."""
    job = JobView(scheduler="slurm", job_id="4242", step="0")
    waited = dict.fromkeys(("cpu", "io", "memory"), 1.5)
    usage = JobUsage(
        scheduler="slurm",
        job_id="4242",
        step="0",
        waiting_s=waited,
        stalled_s=waited,
        cpu_s=400.5,
        throttled_s=0.25,
        throttled_periods=2,
        read_call_bytes=9_000,
        block_read_bytes=1_000,
        voluntary_switches=50,
        involuntary_switches=5,
    )
    reads = tuple(StorageKey("nfs", f"/data{index}") for index in range(min(2, mounts)))
    near = tuple(
        NearPort(port=IbPortKey(f"mlx5_{index}", 1), netdev=f"ibs{index}", path="same_numa")
        for index in range(min(2, ports))
    )
    return Ownership(
        jobs={key(index): job for index in range(gpus)},
        storages={key(index): reads for index in range(gpus)},
        allocated={uuid(index): True for index in range(gpus)},
        ports={uuid(index): near for index in range(gpus)},
        work=(JobWork(job=job, usage=usage, threads=80, running=9, blocked=3, busiest_thread_ratio=0.875),),
    )


def node(*, gpus: int = 8, ports: int = 8, mounts: int = 20, disks: int = 40) -> NodeState:
    """A node on which everything is measured and every state was met; by default the reference node."""
    names = [*(f"gpu{index}" for index in range(gpus)), *(f"ib:mlx5_{index}" for index in range(ports))]
    others = ("nvml-init", "kernel-log", "pci", "net", "block", "nfs", "processes", "host", "state")
    lanes = [
        LaneStatus(
            lane=LaneId(name),
            collector="nvml",
            busy_since_ns=None,
            late_after_ns=2 * SECOND,
            stuck_after_ns=8 * SECOND,
            busy_ns=SECOND,
            gpu=int(name[3:]) if name.startswith("gpu") else None,
            uuid=uuid(int(name[3:])) if name.startswith("gpu") else None,
            fast_period_ns=SECOND if name == "gpu0" else None,
        )
        for name in (*names, *others)
    ]
    collected = CollectorRecord(
        errors={"broken": 1, "absent": 2},
        last_success_ns=NOW - SECOND // 4,
        last_success_wall_s=1_699_999_999.75,
        duration_s=0.004,
        is_successful=True,
    )
    samples = [
        *host_samples(),
        *(sample for index in range(gpus) for sample in gpu_samples(index)),
        *(sample for index in range(ports) for sample in port_samples(index)),
        *(sample for index in range(ports) for sample in interface_samples(index)),
        *(sample for index in range(disks) for sample in disk_samples(index)),
        *(sample for index in range(mounts) for sample in mount_samples(index)),
    ]
    engines = {"graphics": 98.0, "sm": 90.0, "tensor": 55.0, "dram": 40.0}
    totals = GpuTotals(
        engine_active_s=engines,
        pipe_active_s=dict.fromkeys(("hmma", "imma", "dfma", "fp64", "fp32", "fp16", "int"), 1.0),
        pcie_receive_bytes=5_000_000_000.0,
        pcie_transmit_bytes=6_000_000_000.0,
    )
    xids = XidTotals(by_class={"app": 2, "unusable": 1}, by_xid={31: 2, 79: 1}, last_wall_s={31: 1.5e9, 79: 1.6e9})
    return NodeState(
        time=TIME,
        samples=holding(samples),
        gpus={uuid(index): record(index) for index in range(gpus)},
        gpu_totals={key(index): totals for index in range(gpus)},
        attributions={key(index): attribution() for index in range(gpus)},
        xids={uuid(index): xids for index in range(gpus)},
        verdicts=verdicts(gpus, ports, mounts),
        lanes={lane.lane: lane for lane in lanes},
        inputs={
            ("gpm", uuid(index)): InputStatus(input="gpm", scope=uuid(index), state="available")
            for index in range(gpus)
        }
        | {("pressure", "irq"): InputStatus(input="pressure", scope="irq", state="absent")},
        collectors=dict.fromkeys(COLLECTORS, collected),
        gpus_expected={"inventory": gpus},
        ib_flaps={IbPortKey(f"mlx5_{index}", 1): 0 for index in range(ports)},
        probe=ProbeRecord(
            is_up=True,
            pid=17,
            cost=ProbeCost(
                cpu_ns=SECOND, resident_bytes=40_000_000, nvml_calls=900, field_values=700, file_reads=5_000
            ),
            frames=4_000,
        ),
        ownership=ownership(gpus, ports, mounts),
        cpu_s=next(sample.seconds for sample in samples if isinstance(sample, HostCpu)),
    )
