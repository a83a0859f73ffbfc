# SPDX-License-Identifier: Apache-2.0
"""The stories a simulated node can tell, by name. Each is data: phases of a training step, and incidents.

A job runs over all GPUs, in step. A phase says what the GPU does, what its share of the host does, and which
(state, cause) is true of it; a scenario is named for the one that should stand out.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Activity, HostShare, Incident, Phase, Scenario

_MS: Final = 1_000_000
_S: Final = 1_000_000_000

_FEEDING = HostShare(
    trainer_cpu=0.6,
    loader_cpu=0.3,
    loaders_running=1,
    nfs_read_bytes_per_s=400e6,
)
"""Loaders ahead of the GPU: one of four at work, reads answered at once."""

_COMPUTE = Activity(
    truth=("busy", "tensor"),
    graphics=1.0,
    sm=0.92,
    occupancy=0.45,
    tensor=0.55,
    dram=0.45,
    power=0.9,
    clock=0.93,
    temperature_c=62.0,
    nvlink=0.10,
    fabric=0.06,
    pcie_receive=0.02,
    pcie_transmit=0.01,
    reasons=MappingProxyType({"sw_power_cap": 0.4}),
    host=_FEEDING,
)
"""Forward and backward pass, with some communication behind it: a power cap at full load is normal."""

_EXCHANGE = Activity(
    truth=("communicating", "nvlink"),
    graphics=1.0,
    sm=0.20,
    occupancy=0.05,
    dram=0.15,
    power=0.45,
    temperature_c=62.0,
    nvlink=0.45,
    fabric=0.02,
    host=_FEEDING,
)
"""An exchange of gradients that nothing hides, on links with room to spare."""

_HEALTHY: Final = (
    Phase(duration_ns=450 * _MS, activity=_COMPUTE),
    Phase(duration_ns=50 * _MS, activity=_EXCHANGE),
)

_WAIT = Activity(truth=("starved", "unknown"), power=0.12, clock=0.93, temperature_c=52.0)
"""No kernel: the job holds its memory and waits for the next batch."""

_SLOW_STORAGE = HostShare(
    trainer_cpu=0.1,
    loader_cpu=0.05,
    loaders_blocked=4,
    nfs_read_bytes_per_s=150e6,
    nfs_read_rtt_s=0.016,
    nfs_queue_s=0.004,
    io_waiting=0.95,
    io_stalled=0.6,
)
"""Every loader in uninterruptible sleep, a READ takes twenty times as long as it should."""

_SLOW_LOADERS = HostShare(
    trainer_cpu=0.1,
    loader_cpu=0.97,
    loaders_running=4,
    nfs_read_bytes_per_s=60e6,
    cpu_waiting=0.85,
)
"""Every loader computes; the processors of the job are full, storage is quiet."""

STORAGE_STARVED = Scenario(
    name="storage_starved",
    description="Loaders wait for a slow NFS server; the GPUs wait for the loaders five eighths of the time.",
    phases=(
        Phase(
            duration_ns=300 * _MS,
            activity=replace(_COMPUTE, host=replace(_SLOW_STORAGE, trainer_cpu=0.6, loaders_blocked=3, io_stalled=0.1)),
        ),
        Phase(duration_ns=500 * _MS, activity=replace(_WAIT, truth=("starved", "storage"), host=_SLOW_STORAGE)),
    ),
)

HOST_CPU_STARVED = Scenario(
    name="host_cpu_starved",
    description="Loaders cannot decode as fast as the GPUs learn; every processor of the job is busy.",
    phases=(
        Phase(duration_ns=300 * _MS, activity=replace(_COMPUTE, host=replace(_SLOW_LOADERS, trainer_cpu=0.12))),
        Phase(duration_ns=500 * _MS, activity=replace(_WAIT, truth=("starved", "host_cpu"), host=_SLOW_LOADERS)),
    ),
)

NVLINK_BOUND = Scenario(
    name="nvlink_bound",
    description="An exchange between the GPUs of the node fills NVLink and takes longer than the computing.",
    phases=(
        Phase(duration_ns=400 * _MS, activity=_COMPUTE),
        Phase(
            duration_ns=600 * _MS,
            activity=replace(_EXCHANGE, truth=("starved", "nvlink"), nvlink=0.92, dram=0.30),
        ),
    ),
)

FABRIC_BOUND = Scenario(
    name="fabric_bound",
    description="An exchange with other nodes fills the network cards, and switches hold packets back.",
    phases=(
        Phase(duration_ns=400 * _MS, activity=_COMPUTE),
        Phase(
            duration_ns=600 * _MS,
            activity=replace(
                _EXCHANGE,
                truth=("starved", "fabric"),
                nvlink=0.06,
                dram=0.06,
                sm=0.15,
                power=0.3,
                fabric=0.93,
                fabric_waiting=0.4,
            ),
        ),
    ),
)

_SPIN = Activity(
    truth=("starved", "peer"),
    graphics=1.0,
    sm=0.15,
    occupancy=0.03,
    dram=0.005,
    power=0.13,
    clock=0.93,
    temperature_c=48.0,
    host=replace(_FEEDING, trainer_cpu=1.0, nfs_read_bytes_per_s=100e6),
)
"""A collective kernel that polls for the last of its peers: fully busy to look at, and nothing moves."""

_LATE = replace(_COMPUTE, clock=0.4, tensor=0.5, nvlink=0.0, fabric=0.0, power=0.6, reasons=MappingProxyType({}))

STRAGGLER_PEER = Scenario(
    name="straggler_peer",
    description="GPU 0 computes at less than half speed; all others wait for it inside a collective.",
    phases=(
        Phase(duration_ns=400 * _MS, activity=replace(_COMPUTE, nvlink=0.0, fabric=0.0)),
        Phase(duration_ns=600 * _MS, activity=_SPIN),
        Phase(duration_ns=50 * _MS, activity=_EXCHANGE),
    ),
    others=MappingProxyType(
        {0: (Phase(duration_ns=1000 * _MS, activity=_LATE), Phase(duration_ns=50 * _MS, activity=_EXCHANGE))}
    ),
)

_HOT = replace(
    _COMPUTE,
    truth=("throttled", "thermal"),
    tensor=0.5,
    power=0.5,
    clock=0.35,
    temperature_c=88.0,
    reasons=MappingProxyType({"hw_thermal": 1.0, "hw_slowdown": 1.0}),
)

THERMAL_THROTTLE = Scenario(
    name="thermal_throttle",
    description="Cooling has failed: the hardware holds the clocks at a third, four fifths of the time.",
    phases=(
        Phase(duration_ns=1600 * _MS, activity=_HOT),
        Phase(duration_ns=400 * _MS, activity=replace(_COMPUTE, temperature_c=86.0)),
    ),
    driver_version="580.95.05",  # the first branch that counts time by kind of thermal slowdown
)

IDLE_HELD = Scenario(
    name="idle_held",
    description="A job holds memory and a context on every GPU and does nothing at all.",
    phases=(
        Phase(
            duration_ns=1000 * _MS,
            activity=Activity(
                truth=("idle_held", ""),
                memory=0.5,
                power=0.1,
                clock=1.0,
                temperature_c=38.0,
                host=HostShare(cpu_waiting=0.0),
            ),
        ),
    ),
)

IDLE_FREE = Scenario(
    name="idle_free",
    description="Nobody uses the node.",
    phases=(
        Phase(
            duration_ns=1000 * _MS,
            activity=Activity(
                truth=("idle_free", ""),
                occupant="none",
                power=0.0,
                temperature_c=30.0,
                host=HostShare(cpu_waiting=0.0),
            ),
        ),
    ),
)

HEALTHY = Scenario(
    name="healthy",
    description="A training job that is fed well: computing nine tenths of the time, exchanging one tenth.",
    phases=_HEALTHY,
)

VICTIM: Final = 3
"""The GPU that incidents befall; on a node with fewer, the last."""

GPU_LOST = replace(
    HEALTHY,
    name="gpu_lost",
    description=f"After ten seconds GPU {VICTIM} falls off the bus; the others go on.",
    incidents=(Incident(kind="lost", gpu=VICTIM, from_ns=10 * _S),),
)

DRIVER_HANG = replace(
    HEALTHY,
    name="driver_hang",
    description=f"After ten seconds no driver call for GPU {VICTIM} returns any more; the others go on.",
    incidents=(Incident(kind="hang", gpu=VICTIM, from_ns=10 * _S),),
)

DRIVER_ABSENT_THEN_PRESENT = replace(
    HEALTHY,
    name="driver_absent_then_present",
    description="The driver is loaded only fifteen seconds after the start.",
    incidents=(Incident(kind="driver_absent", until_ns=15 * _S),),
)

GPU_XID = replace(
    HEALTHY,
    name="gpu_xid",
    description=f"After ten seconds GPU {VICTIM} reports an uncontained memory error and asks for a reset.",
    incidents=(Incident(kind="xid", gpu=VICTIM, from_ns=10 * _S, xid=95, recovery_action=1),),
)

IB_PORT_DOWN = replace(
    HEALTHY,
    name="ib_port_down",
    description=f"After ten seconds the port of the network card beside GPU {VICTIM} goes down.",
    incidents=(Incident(kind="port_down", gpu=VICTIM, from_ns=10 * _S),),
)

MIG = replace(
    HEALTHY,
    name="mig",
    description="Every board is split into three instances with holes between them; a job runs in the first.",
    models=("a100", "h100", "h200", "b200"),
    mig_layout="mixed",
)

MIG_RECREATED = replace(
    HEALTHY,
    name="mig_recreated",
    description=f"After ten seconds the seven instances of GPU {VICTIM} are destroyed and three others created.",
    models=("a100", "h100", "h200", "b200"),
    mig_layout="7x1g",
    incidents=(Incident(kind="mig", gpu=VICTIM, from_ns=10 * _S, mig_layout="mixed"),),
)

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            HEALTHY,
            STORAGE_STARVED,
            HOST_CPU_STARVED,
            NVLINK_BOUND,
            FABRIC_BOUND,
            STRAGGLER_PEER,
            THERMAL_THROTTLE,
            IDLE_HELD,
            IDLE_FREE,
            GPU_LOST,
            GPU_XID,
            IB_PORT_DOWN,
            DRIVER_HANG,
            DRIVER_ABSENT_THEN_PRESENT,
            MIG,
            MIG_RECREATED,
        )
    }
)
