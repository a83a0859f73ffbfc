# SPDX-License-Identifier: Apache-2.0
"""Checks of gpufeed itself: whether it still sees, and whether it understands what it sees."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.baselines import HALF_WINDOW_NS
from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.state import NodeState
from gpufeed.units import NS_PER_S, seconds

SelfCheck = Callable[[NodeState, Latches], Finding | None]

FIRST_FRAME_NS: Final = 15 * NS_PER_S
"""Longer than the server waits for the first frame of a new probe: one that never came up is down."""
STALE_AFTER_NS: Final = 60 * NS_PER_S
BLIND_RATIO: Final = 0.3


def probe(state: NodeState, _: Latches) -> Finding | None:
    """The process that reads the hardware has ended, or says nothing."""
    if state.probe.is_up:
        return OK
    if not state.probe.frames and state.probe.silent_ns < FIRST_FRAME_NS:
        return None
    return Finding(2, "the probe is down", "investigate")


def stale(state: NodeState, _: Latches) -> Finding | None:
    """A collector that once worked has brought nothing for a minute."""
    ages_ns = {
        name: state.time.monotonic_ns - collector.last_success_ns
        for name, collector in state.collectors.items()
        if collector.last_success_ns is not None
    }
    if not ages_ns:
        return None
    oldest = max(ages_ns, key=lambda name: ages_ns[name])
    if ages_ns[oldest] <= STALE_AFTER_NS:
        return OK
    return Finding(1, f"collector {oldest} brought nothing for {seconds(ages_ns[oldest]):.0f} s", "investigate")


def blind(_: NodeState, latches: Latches) -> Finding | None:
    """For much of the time that GPUs had work, what they waited for is unknown."""
    older, now = latches.baselines.blindness[0], latches.baselines.blindness[2]
    asked_ns, unknown_ns = now.asked_ns - older.asked_ns, now.unknown_ns - older.unknown_ns
    if now.at_ns - older.at_ns < HALF_WINDOW_NS or asked_ns <= 0:
        return None
    if unknown_ns <= BLIND_RATIO * asked_ns:
        return OK
    return Finding(1, f"{unknown_ns / asked_ns:.0%} of the working GPUs' time is not understood", "investigate")


SELF_CHECKS: Final[Mapping[str, SelfCheck]] = MappingProxyType({"probe": probe, "stale": stale, "blind": blind})
