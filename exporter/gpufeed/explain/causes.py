# SPDX-License-Identifier: Apache-2.0
"""What each state and cause is called, what to look at next, and what cannot be told from it on this node."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from gpufeed.model.state import StateCause


class Story(NamedTuple):
    """`is`: as the end of "GPU 3: …"."""

    is_: str
    next: str = ""
    alike: str = ""
    shown: tuple[str, ...] = ()  # readings of the GPU that show it, where nothing of the host was scored


_SERVER: Final = "a slow server and a slow network to it"
_ACTIVE: Final = ("active", "SMs with work", "tensor pipes", "device memory")
_NVLINK: Final = ("NVLink of capacity", "SMs with work")
_FABRIC: Final = ("fabric port of rate", "SMs with work")
_CLOCK: Final = ("SM clock of highest", "power of limit")

STORIES: Final[Mapping[tuple[str, str], Story]] = MappingProxyType(
    {
        ("busy", "tensor"): Story("busy computing"),
        ("busy", "memory"): Story("busy moving device memory"),
        ("busy", "other"): Story("busy with other kernels", shown=_ACTIVE),
        ("communicating", "nvlink"): Story("exchanging over NVLink", shown=_NVLINK),
        ("communicating", "fabric"): Story("exchanging with other nodes", shown=_FABRIC),
        ("communicating", "pcie_p2p"): Story("exchanging over PCIe", shown=_ACTIVE),
        ("starved", "storage"): Story(
            "waiting for storage",
            "the server and the network of this storage; other nodes that read from it; more or larger prefetch",
            _SERVER,
        ),
        ("starved", "checkpoint"): Story(
            "waiting for a checkpoint to be written",
            "how often checkpoints are written; writing them in the background; what the storage can take",
            _SERVER,
        ),
        ("starved", "host_cpu"): Story(
            "waiting for the host's processors",
            "number of loader workers, decoding on the GPU, processors given to the job, one thread that does it all",
            "slow preprocessing and too few processors for it",
        ),
        ("starved", "host_memory"): Story(
            "waiting for the host's memory",
            "memory limit of the job, number and prefetch of workers, what else fills the page cache or swaps",
            "too little memory and a neighbour that takes it",
        ),
        ("starved", "pcie"): Story(
            "waiting for copies over PCIe",
            "PCIe width and generation of the GPU (gpufeed_gpu_pcie_link_*), pinned memory, copying less",
            "",
            ("PCIe receive of achievable",),
        ),
        ("starved", "nvlink"): Story(
            "held up by NVLink",
            "links that are down or count errors (gpufeed_nvlink_*), then how the model is split over GPUs",
            "a saturated link and a job that exchanges too much for it",
            _NVLINK,
        ),
        ("starved", "fabric"): Story(
            "held up by the network between nodes",
            "errors, congestion and rate of the ports (gpufeed_ib_*), then the same on the other nodes of the job",
            "congestion in a switch and a slow card at the other end",
            _FABRIC,
        ),
        ("starved", "peer"): Story(
            "waiting for another GPU of the job",
            "clocks, temperature and errors of the slowest GPU; if all wait alike, it is on another node",
            "a late peer, a black-holed network path and an uneven split of the work",
            ("SMs with work",),
        ),
        ("starved", "unknown"): Story(
            "waiting, for what could not be told",
            "`gpufeed doctor`: what is not measured; then the job's own profiler",
            "Python between kernels, a remote service, locks, and storage that is not measured",
            ("active",),
        ),
        ("throttled", "thermal"): Story(
            "slowed down by heat", "fans, airflow, inlet temperature, and whether its neighbours are hot too",
            "", _CLOCK,
        ),
        ("throttled", "power_brake"): Story(
            "slowed down by the power brake", "power supplies and the rack's power budget",
            "", _CLOCK,
        ),
        ("throttled", "power_cap"): Story(
            "slowed down by its power limit", "whether the limit was lowered (gpufeed_gpu_power_limit_watts)",
            "", _CLOCK,
        ),
        ("idle_held", ""): Story(
            "held by a job that does nothing",
            "whether the job still makes progress: its log, its queue of requests",
            "no requests, a blocked remote call and a deadlock",
            ("active",),
        ),
        ("idle_free", ""): Story("used by nobody"),
        ("fault", "lost"): Story("lost, off its bus,", "the kernel log; a reboot, then have the board checked"),
        ("fault", "xid"): Story("unusable after a fatal error (XID)", "its runbook by number; reset the GPU"),
        ("fault", "ecc"): Story("unusable for memory errors", "reset the GPU; if it comes back, have it replaced"),
        ("fault", "fabric_state"): Story("outside the NVLink fabric", "the fabric manager's log"),
        ("fault", "recovery_pending"): Story("waiting to be reset", "drain the GPU and reset it"),
        ("fault", "hung"): Story(
            "hung in a driver call", "the kernel log; a reboot, because such a call cannot be ended",
            "a dead GPU and a driver that waits for another one",
        ),
        ("unknown", "no_data"): Story("not read", "`gpufeed doctor`"),
        ("unknown", "stale"): Story("not read in time", "gpufeed_lane_stuck_seconds and the log of gpufeed"),
        ("unknown", "conflict"): Story("read, but the readings contradict each other", "the driver", "", _ACTIVE),
        ("unknown", "unsupported"): Story(
            "not understood", "`gpufeed doctor`", "", _ACTIVE
        ),
    }
)  # fmt: skip
"""By state and cause; every one there is."""


def story(cause: StateCause) -> Story:
    """Of one state and cause."""
    return STORIES[cause]
