# SPDX-License-Identifier: Apache-2.0
"""How a node is looked at: how often, what of it can be seen, and what each sensor does to what it sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

_SECOND_NS: Final = 1_000_000_000
SHORTEST_PERIOD_NS: Final = _SECOND_NS // 5
LONGEST_PERIOD_NS: Final = 2 * _SECOND_NS

Placement = Literal["task", "job", "any"]
"""task: each rank has a cgroup of its own. job: all of them are in one, as in a pod. any: drawn for the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What sensors do to the truth. Each can be switched off without the others: 0, an empty tuple, or false."""

    utilization_windows_s: tuple[float, ...] = (1 / 6, 0.5, 1.0)
    """The mean of the last whole window of one of these lengths, by product; empty: since the last read."""
    utilization_in_percent: bool = True  # whole ones
    power_is_sliced: bool = True  # A100, H100: the sensor looks for 25 of every 100 ms
    power_gain: float = 0.05  # at most, of a board's sensor, either way
    power_offset_w: float = 2.0  # the same
    power_quantum_w: float = 0.1
    gpm_error: float = 0.01  # at most, of a metric, either way
    gpm_missing: float = 0.001  # of metrics: refused or not a number
    gpm_failures: float = 0.001  # of reads that give nothing
    gpm_delay_s: float = 0.02  # at most, from a sample to the time it is given
    counter_delay_s: float = 0.02  # at most, from what a counter showed to the time it is given
    wait_ticks_per_s: tuple[float, ...] = (6.25e7, 2.5e8, 1e9)  # of port_xmit_wait, by generation; empty: 1e9
    narrow_ports: float = 0.1  # of nodes: counters stop, of waiting at 32 bits, of errors at 8 or 16
    missed_tasks: float = 0.05  # of threads, at each look
    jitter_s: float = 0.005  # standard deviation of when lanes wake
    stalls: float = 0.01  # of rounds in which NVML's lock is held by somebody else
    stall_s: tuple[float, float] = (0.2, 2.0)
    pause_every_s: float = 600.0  # mean time between two moments in which the whole probe gets no processor; 0: never
    clock_step_every_s: float = 900.0  # mean time between steps of the wall clock; 0: never
    clock_step_s: float = 5.0  # at most, either way
    lost: float = 0.005  # of readings: never arrive
    reset_every_s: float = 1800.0  # mean time between resets of any one group of hardware counters; 0: never
    churn_every_s: float = 300.0  # mean time between ends of a rank's loaders, which begin anew; 0: never
    pid_reuse: float = 0.1  # of those: for one scan a process counts for another GPU too


QUIET: Final = Noise(
    utilization_windows_s=(),
    utilization_in_percent=False,
    power_is_sliced=False,
    power_gain=0.0,
    power_offset_w=0.0,
    power_quantum_w=0.0,
    gpm_error=0.0,
    gpm_missing=0.0,
    gpm_failures=0.0,
    gpm_delay_s=0.0,
    counter_delay_s=0.0,
    wait_ticks_per_s=(),
    narrow_ports=0.0,
    missed_tasks=0.0,
    jitter_s=0.0,
    stalls=0.0,
    pause_every_s=0.0,
    clock_step_every_s=0.0,
    lost=0.0,
    reset_every_s=0.0,
    churn_every_s=0.0,
    pid_reuse=0.0,
)
"""No noise at all: what is left are the units in which counters count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What can be seen of a node."""

    gpm: bool = True
    pressure: bool = True  # the kernel accounts pressure, of the node and of cgroups
    cgroups: bool = True  # jobs have any of their own
    processes: bool = True  # those that hold GPUs are visible in /proc
    nfs: bool = True  # statistics of mounts
    fabric: bool = True  # network cards


ALL: Final = "all"

INPUTS: Final[Mapping[str, Inputs]] = MappingProxyType(
    {
        ALL: Inputs(),
        "no_gpm": Inputs(gpm=False),
        "no_pressure": Inputs(pressure=False),
        "no_cgroups": Inputs(cgroups=False),
        "no_processes": Inputs(processes=False),
        "no_nfs": Inputs(nfs=False),
        "no_fabric": Inputs(fabric=False),
    }
)
"""Everything, and everything but one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensing:
    """One way to look. Raises ValueError for a period that no probe has."""

    period_ns: int = _SECOND_NS // 2  # of fast groups
    inputs: Inputs = Inputs()
    noise: Noise = Noise()
    seed: int = 0
    placement: Placement = "any"

    def __post_init__(self) -> None:
        if not SHORTEST_PERIOD_NS <= self.period_ns <= LONGEST_PERIOD_NS:
            raise ValueError(f"a fast period lasts 200 ms to 2 s, not {self.period_ns / 1e9:g} s")
