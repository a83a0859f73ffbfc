# SPDX-License-Identifier: Apache-2.0
"""What a job does, as data: where its input comes from, what its step computes and exchanges, what interrupts it.

Seconds are those of an H100; a slower board takes longer for what it computes (`SLOWNESS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from gpufeed.simulate.activity import Activity
from gpufeed.simulate.pipeline.meter import Kind

SLOWNESS: Final[Mapping[str, float]] = MappingProxyType({"h100": 1.0, "a100": 1.95})
"""Of public storage benchmarks' compute times: A100 over H100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A server and the way to it, as this node finds it; shared by all ranks that read from it."""

    kind: Kind = "nfs"
    of_demand: float = 4.0  # what it gives this node, over what the job asks for when nothing holds it up
    bytes_per_s: float | None = None  # the same in bytes, instead
    write_bytes_per_s: float = 4e9
    rtt_s: float = 0.0008  # of one mebibyte, when nobody else asks
    spread: float = 0.15  # sigma of the logarithm of what a whole fetch takes
    window: int = 8  # operations one reader has outstanding
    slots: int = 256  # that the client has for all of its readers
    file_s: float = 0.0005  # to look up and open one file
    files_per_s: float = 1e6  # that the server can open
    burst_s: float = 0.0  # others' bursts: mean length; 0: there are none
    calm_s: float = 30.0  # mean time between them
    in_burst: float = 1.0  # share of its speed that is left in one


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """How batches come to one rank."""

    storage: Storage = Storage()
    batch_bytes: float = 46e6
    files_per_batch: int = 0  # opened one by one; 0: large files that stay open
    spread: float = 0.02  # standard deviation of a batch's size, over its mean
    cpu_s: float = 0.05  # one core, to decode and augment a batch
    cpu_spread: float = 0.15  # standard deviation of that, over its mean
    workers: int = 4  # 0: the main thread does it itself, between steps
    prefetch: int = 2  # batches each worker may be ahead
    cores: int = 4  # that the rank may use
    copy_bytes: float = 60e6  # to the GPU
    copies_ahead: bool = True  # while the step before computes
    dataset_bytes: float | None = None  # per rank; None: never read twice
    cache_bytes: float = 0.0  # of the page cache, per rank
    reclaim_s: float = 0.0  # that a batch waits for memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """An exchange between the ranks, begun when the last of them comes."""

    nvlink_bytes: float = 0.0  # per GPU and direction
    fabric_bytes: float = 0.0
    nvlink_reach: float = 0.55  # share of the links' rate that messages of this size get
    fabric_reach: float = 0.6
    overlap: float = 0.0  # share of it that may pass behind the computing before it
    engine: Literal["sm", "copy"] = "sm"  # who moves the data: a kernel, or copy engines and no kernel at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A part of a step: computing, then an exchange."""

    seconds: float
    activity: Activity
    collective: Collective | None = None
    woven: float = 0.0  # share of the time that passes in exchanges of milliseconds over NVLink
    launch_gap: float = 0.0  # share of the time in which kernels wait for the main thread to launch the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """Optimizer state on the host: gradients come down, processors update, parameters go up; once a step."""

    bytes: float  # each way
    cpu_s: float
    cores: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State written every so often."""

    every_s: float = 300.0
    bytes: float = 14e9  # per rank
    is_async: bool = False
    by_first_only: bool = False  # rank 0 writes, the others wait at a barrier
    serialize_bytes_per_s: float = 3e9
    storage: Storage = Storage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A pause of training every so often: forward passes, then scores on the host."""

    every_s: float = 600.0
    seconds: float = 20.0
    cpu_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """What comes before the first step."""

    import_s: float = 6.0  # no context yet
    compile_s: float = 20.0
    scan_files: int = 0  # looked up one after the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Ranks on other nodes that take part in the exchanges: seen as one, the last of them."""

    slowness: float = 1.0  # how long its step takes, over what ours takes when nothing holds it up
    spread: float = 0.01
    hangs_at_s: float | None = None  # from then on it never comes


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Steps, for ever."""

    input: Input | None = Input()
    works: tuple[Work, ...] = ()
    spread: float = 0.015  # of a step's computing, over its mean
    loop_s: float = 0.0  # of the main thread, between two steps, before it launches anything
    offload: Offload | None = None
    checkpoint: Checkpoint | None = None
    evaluation: Evaluation | None = None
    startup: Startup | None = None
    remote: Remote | None = None

    @property
    def seconds(self) -> float:
        """Of computing in a step."""
        return sum(work.seconds for work in self.works)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Requests answered by one engine over all GPUs of the job, in batches that change as they come and go."""

    load: float = 0.3  # of what it can do
    request_s: float = 2.0  # that decoding one answer takes
    prefill_s: float = 0.05
    spread: float = 0.5  # sigma of the logarithm of how long an answer takes
    batch: int = 16
    together: bool = True  # one engine over all GPUs; else one on each
    burst: float = 1.0  # how many times the mean rate requests come at in a burst
    burst_s: float = 20.0
    calm_s: float = 60.0
    host_gap: float = 0.02  # share of decoding in which the engine prepares the next step


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """Somebody thinks, and now and then runs a cell."""

    think_s: float = 90.0
    cell_s: float = 8.0
    host_share: float = 0.3  # of cells that compute on the host only


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Memory held, or not even that, and nothing done."""

    is_held: bool = True


Workload = Training | Serving | Notebook | Quiet


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload on some of the node's GPUs."""

    workload: Workload
    share: tuple[float, float] = (0.0, 1.0)  # of the node's GPUs: from, until

    def ranks(self, gpus: int) -> range:
        """The GPUs it has on a node of this size."""
        return range(round(self.share[0] * gpus), round(self.share[1] * gpus))


TroubleKind = Literal[
    "clock", "rank_slow", "hang", "late_input", "nvlink_down",
    "fabric_slow", "fabric_congested", "fabric_lossy", "pcie_narrow", "remote_slow", "processors_taken",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that is not as it should be, for a time."""

    kind: TroubleKind
    factor: float = 1.0  # share of the usual speed that is left
    gpu: int | None = None  # None: all
    from_s: float = 0.0
    until_s: float | None = None
    reason: str = ""  # of kind clock: the clock-event reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Work on the node that has no GPU: own processes, own mounts, own disk."""

    cores: float = 0.0
    blocked: int = 0  # tasks in uninterruptible sleep
    nfs_read_bytes_per_s: float = 0.0
    disk_read_bytes_per_s: float = 0.0
    disk_write_bytes_per_s: float = 0.0
    net_receive_bytes_per_s: float = 0.0
    on_s: float = 20.0  # mean length of its busy times
    off_s: float = 10.0  # and of the quiet ones; 0: never quiet
