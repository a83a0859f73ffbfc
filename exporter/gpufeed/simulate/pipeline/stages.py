# SPDX-License-Identifier: Apache-2.0
"""Stages of a job that a GPU can wait for, and how much faster than they are each of them is made."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from gpufeed.simulate.activity import Cause


class Stage(StrEnum):
    """Spelled as the causes of `starved` that they explain."""

    STORAGE = "storage"  # reads: the server, the way to it, the local disk
    CHECKPOINT = "checkpoint"  # everything that writing a checkpoint takes
    HOST_CPU = "host_cpu"  # loaders, the main thread, launches
    HOST_MEMORY = "host_memory"  # reclaim and swap
    PCIE = "pcie"  # copies between host and GPU
    NVLINK = "nvlink"
    FABRIC = "fabric"
    PEER = "peer"  # ranks that come later to a collective
    CLOCK = "clock"  # whatever holds the clocks down: the cause of `throttled`
    REQUESTS = "requests"  # who sends work: the cause of `idle_held`


class Speeds:
    """How many times as fast as it is each stage is made. Raises ValueError for what would slow it down."""

    def __init__(self, factors: Mapping[Stage, float] | None = None) -> None:
        self._factors = dict(factors or {})
        if any(not factor >= 1 for factor in self._factors.values()):
            raise ValueError("a stage is made faster, not slower: factors are at least 1")
        if self.of(Stage.PEER) not in (1.0, math.inf):
            raise ValueError("peers are either waited for or not: the factor of a peer is 1 or infinite")

    def of(self, stage: Stage) -> float:
        """1 where the stage is as the scenario has it."""
        return self._factors.get(stage, 1.0)

    def is_free(self, stage: Stage) -> bool:
        """Whether the stage takes no time at all."""
        return self.of(stage) == math.inf

    def ns(self, stage: Stage, seconds: float) -> int:
        """What takes the stage so many seconds, in nanoseconds."""
        return int(seconds * 1e9 / self.of(stage))


STARVED: Final[Mapping[Stage, Cause]] = {
    stage: ("starved", stage.value) for stage in Stage if stage not in (Stage.CLOCK, Stage.REQUESTS)
}
"""What is true of a GPU while the item it waits for is in a stage."""


def stage_of(cause: Cause) -> Stage | None:
    """The stage that is to blame for a (state, cause); None: none is."""
    state, why = cause
    if state == "throttled":
        return Stage.CLOCK
    if state == "idle_held":
        return Stage.REQUESTS
    return Stage(why) if state == "starved" and why != "unknown" else None
