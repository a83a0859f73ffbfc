# SPDX-License-Identifier: Apache-2.0
"""Checks of an InfiniBand or RoCE port."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.baselines import FLAPS_REMEMBERED, is_up
from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.fabric import IbDevice, IbErrors, IbPort
from gpufeed.model.ids import IbPortKey
from gpufeed.model.state import NodeState
from gpufeed.units import NS_PER_S

IbCheck = Callable[[IbPortKey, NodeState, Latches], Finding | None]

FLAPPING_WITHIN_NS: Final = 12 * 3600 * NS_PER_S
ERRORS_REMEMBERED_NS: Final = 3600 * NS_PER_S


def port_down(port: IbPortKey, state: NodeState, latches: Latches) -> Finding | None:
    """A port that once was up is not. One that never was has no cable, and is nobody's fault."""
    held = state.latest(IbPort).get(port)
    if held is None or not held.sample.is_fabric or port not in latches.baselines.ports_once_up:
        return None
    if is_up(held.sample):
        return OK
    state_id, physical = held.sample.state_id, held.sample.physical_state_id
    reason = f"{port.device} port {port.port} is down (state {state_id}, physical state {physical})"
    return Finding(2, reason, "investigate")


def flapping(port: IbPortKey, state: NodeState, latches: Latches) -> Finding | None:
    """A port went down and came back three times in twelve hours."""
    if port not in state.ib_flaps:
        return None
    moments = latches.baselines.flapped_at_ns.get(port, ())
    if len(moments) < FLAPS_REMEMBERED or state.time.monotonic_ns - moments[0] > FLAPPING_WITHIN_NS:
        return OK
    return Finding(1, f"{port.device} port {port.port} went down and up {len(moments)} times in 12 hours", "replace")


def errors(port: IbPortKey, state: NodeState, latches: Latches) -> Finding | None:
    """A counter that must not move has moved within the last hour."""
    if port not in state.latest(IbErrors):
        return None
    counters = latches.baselines.ib_errors.get(port, {})
    if not counters:
        return None
    moved = [
        name
        for name, growth in counters.items()
        if growth.grown_at_ns is not None and state.time.monotonic_ns - growth.grown_at_ns <= ERRORS_REMEMBERED_NS
    ]
    if not moved:
        return OK
    return Finding(1, f"{port.device} port {port.port} counts {', '.join(moved)}", "replace")


def rate(port: IbPortKey, state: NodeState, _: Latches) -> Finding | None:
    """A port is up and slower than another port of the same kind of card: one slow rail slows every collective."""
    ports = {held.sample.port: held.sample for held in state.latest(IbPort).values()}
    boards = {held.sample.device: held.sample.board_id for held in state.latest(IbDevice).values()}
    board = boards.get(port.device)
    rates = {
        key: of.rate_bytes_per_s
        for key, of in ports.items()
        if board is not None
        and boards.get(key.device) == board
        and of.is_fabric
        and is_up(of)
        and of.rate_bytes_per_s is not None
    }
    own = rates.pop(port, None)
    if own is None or not rates:
        return None
    if own >= max(rates.values()):
        return OK
    reason = f"{port.device} port {port.port} runs at {8e-9 * own:g} Gbit/s, its like at {8e-9 * max(rates.values()):g}"
    return Finding(1, reason, "investigate")


IB_CHECKS: Final[Mapping[str, IbCheck]] = MappingProxyType(
    {"port_down": port_down, "flapping": flapping, "errors": errors, "rate": rate}
)
