# SPDX-License-Identifier: Apache-2.0
"""What checks must remember of before: ports that once were up, counters that grew lately, a share over minutes.

Kept in the state file with the latches: a port that went down while the daemon was away is still a port that was up.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from gpufeed.model.fabric import IbErrors, IbPort
from gpufeed.model.ids import IbPortKey, StorageKey
from gpufeed.model.state import NodeState
from gpufeed.model.storage import StorageCounters
from gpufeed.units import NS_PER_S

ACTIVE: Final = 4
"""IB_PORT_ACTIVE of the kernel's `enum ib_port_state`, first number of the `state` file."""
LINK_UP: Final = 5
"""LinkUp of `phys_state`."""

FATAL_IB_COUNTERS: Final = ("local_link_integrity_errors", "excessive_buffer_overrun_errors")
"""Counters of /sys/class/infiniband/*/ports/*/counters that must not move at all."""

FLAPS_REMEMBERED: Final = 3
FORGOTTEN_NS: Final = 3600 * NS_PER_S
HALF_WINDOW_NS: Final = 300 * NS_PER_S
"""A share is measured over the last one to two of these."""

IDLE_OR_FAULTY: Final = frozenset({"idle_held", "idle_free", "fault"})
"""States in which nobody asks what a GPU waits for."""


class Growth(Struct, frozen=True, array_like=True):
    """A counter, and when it last grew; `grown_at_ns` is None while it never has."""

    value: int
    grown_at_ns: int | None = None


class Blindness(Struct, frozen=True, array_like=True):
    """GPU time asked about and GPU time not known, up to a moment. Summed over the GPUs."""

    at_ns: int = 0
    asked_ns: int = 0
    unknown_ns: int = 0


class Baselines(Struct, frozen=True, kw_only=True):
    """Memory of all checks; replaced whole, never changed."""

    ports_once_up: frozenset[IbPortKey] = frozenset()
    flaps: dict[IbPortKey, int] = field(default_factory=dict)
    flapped_at_ns: dict[IbPortKey, tuple[int, ...]] = field(default_factory=dict)  # the last few
    ib_errors: dict[IbPortKey, dict[str, Growth]] = field(default_factory=dict)
    storage_errors: dict[StorageKey, dict[str, Growth]] = field(default_factory=dict)
    blindness: tuple[Blindness, Blindness, Blindness] = (Blindness(), Blindness(), Blindness())  # older, newer, now


def remember(before: Baselines, state: NodeState) -> Baselines:
    """`before` with what `state` adds."""
    now_ns = state.time.monotonic_ns
    return Baselines(
        ports_once_up=before.ports_once_up.union(_ports_up(state)),
        flaps=before.flaps | dict(state.ib_flaps),
        flapped_at_ns=before.flapped_at_ns | dict(_flaps(before, state)),
        ib_errors=before.ib_errors
        | {
            key: _grown(before.ib_errors.get(key, {}), counters, now_ns)
            for key, counters in _ib_counters(state)
            if counters
        },
        storage_errors=_not_forgotten(before.storage_errors, now_ns)
        | {
            key: _grown(before.storage_errors.get(key, {}), counters, now_ns)
            for key, counters in _storage_counters(state)
            if counters
        },
        blindness=_blindness(before.blindness, state),
    )


def after_reboot(before: Baselines) -> Baselines:
    """What outlives a reboot: which ports should be up. Counters and moments do not."""
    return Baselines(ports_once_up=before.ports_once_up)


def is_up(port: IbPort) -> bool:
    """Whether a port can carry traffic. A state that the kernel does not give is taken as good."""
    return port.state_id in {ACTIVE, None} and port.physical_state_id in {LINK_UP, None}


def _ports_up(state: NodeState) -> Iterator[IbPortKey]:
    for held in state.latest(IbPort).values():
        if held.sample.is_fabric and held.sample.state_id == ACTIVE and is_up(held.sample):
            yield held.sample.port


def _flaps(before: Baselines, state: NodeState) -> Iterator[tuple[IbPortKey, tuple[int, ...]]]:
    for port, flaps in state.ib_flaps.items():
        new = flaps - before.flaps.get(port, flaps)
        if new > 0:
            moments = before.flapped_at_ns.get(port, ()) + (state.time.monotonic_ns,) * min(new, FLAPS_REMEMBERED)
            yield port, moments[-FLAPS_REMEMBERED:]


def _ib_counters(state: NodeState) -> Iterator[tuple[IbPortKey, dict[str, int]]]:
    for held in state.latest(IbErrors).values():
        errors = held.sample.errors
        yield held.sample.port, {name: errors[name] for name in FATAL_IB_COUNTERS if name in errors}


def _storage_counters(state: NodeState) -> Iterator[tuple[StorageKey, dict[str, int]]]:
    for held in state.latest(StorageCounters).values():
        counters = {"timeouts": held.sample.timeouts, "errors": held.sample.errors}
        yield held.sample.storage, {name: value for name, value in counters.items() if value is not None}


def _not_forgotten(errors: Mapping[StorageKey, dict[str, Growth]], now_ns: int) -> dict[StorageKey, dict[str, Growth]]:
    """Less targets that grew nothing for an hour: mounts of pods come and go, and those still there are read anew."""
    return {
        key: grown
        for key, grown in errors.items()
        if any(one.grown_at_ns is not None and now_ns - one.grown_at_ns < FORGOTTEN_NS for one in grown.values())
    }


def _grown(before: Mapping[str, Growth], counters: Mapping[str, int], now_ns: int) -> dict[str, Growth]:
    grown = {}
    for name, value in counters.items():
        last = before.get(name)
        if last is None:
            grown[name] = Growth(value)
        elif value == last.value:
            grown[name] = last
        else:  # a counter that fell was reset: only what it counted since is growth
            grown[name] = Growth(value, now_ns if value > last.value else last.grown_at_ns)
    return grown


def _blindness(
    before: tuple[Blindness, Blindness, Blindness], state: NodeState
) -> tuple[Blindness, Blindness, Blindness]:
    older, newer, _ = before
    now = _asked(state)
    if now.asked_ns < newer.asked_ns or older.at_ns == 0 or now.at_ns < newer.at_ns:
        return (now, now, now)
    if now.at_ns - newer.at_ns >= HALF_WINDOW_NS:
        return (newer, now, now)
    return (older, newer, now)


def _asked(state: NodeState) -> Blindness:
    asked_ns = unknown_ns = 0
    for attribution in state.attributions.values():
        for pair, spent_ns in attribution.state_ns.items():
            if pair.state not in IDLE_OR_FAULTY:
                asked_ns += spent_ns
            if pair.state == "unknown":
                unknown_ns += spent_ns
    return Blindness(state.time.monotonic_ns, asked_ns, unknown_ns)
