# SPDX-License-Identifier: Apache-2.0
"""From Lustre's counters to the vocabulary of storage. Pure.

Calls, and how long they took, are those of applications, cache hits included: the file system's own view. Bytes are
those of the servers where the client counts them, by target or, before 2.9, in a line of their own; where it does
not, those of applications have to do.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from gpufeed.model.ids import StorageKey
from gpufeed.model.storage import StorageCounters
from gpufeed.parse.lustre import LustreStats
from gpufeed.sources.summing import by_name, total

N = TypeVar("N", int, float)
Direction = Literal["read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreClient:
    """One mount: what applications did, and what each target on the servers was asked for; none: not known."""

    llite: LustreStats
    osc: tuple[LustreStats, ...] = ()


def counters_of(file_system: str, clients: Sequence[LustreClient]) -> StorageCounters:
    """The counters of a file system, summed over its mounts."""

    def over(value: Callable[[LustreClient], N | None]) -> N | None:
        return total(map(value, clients))

    return StorageCounters(
        storage=StorageKey("lustre", file_system),
        read_bytes=over(lambda client: _server_bytes(client, "read")),
        write_bytes=over(lambda client: _server_bytes(client, "write")),
        application_read_bytes=over(lambda client: client.llite.transferred("read_bytes")),
        reads=over(lambda client: _calls(client.llite, "read")),
        writes=over(lambda client: _calls(client.llite, "write")),
        read_s=over(lambda client: _took_s(client.llite, "read")),
        write_s=over(lambda client: _took_s(client.llite, "write")),
        operations=by_name(pair for client in clients for pair in _operations(client.llite)),
        operation_s=by_name(
            (name, counter.total_s)
            for client in clients
            for name, counter in client.llite.operations.items()
            if counter.total_s is not None
        ),
    )


def _server_bytes(client: LustreClient, direction: Direction) -> int | None:
    if client.osc:
        return total(osc.transferred(f"{direction}_bytes") for osc in client.osc)
    if not client.llite.counters.keys().isdisjoint(("osc_read", "osc_write")):
        return client.llite.transferred(f"osc_{direction}")
    return client.llite.transferred(f"{direction}_bytes")


def _calls(llite: LustreStats, direction: Direction) -> int | None:
    """Timed calls where there are any, so that they divide the time; else those that moved bytes."""
    return llite.samples(direction if direction in llite.counters else f"{direction}_bytes")


def _took_s(llite: LustreStats, direction: Direction) -> float | None:
    counter = llite.counters.get(direction)
    if counter is not None:
        return counter.total_s
    is_measured_zero = llite.is_timed and llite.samples(f"{direction}_bytes") == 0
    return 0.0 if is_measured_zero else None


def _operations(llite: LustreStats) -> Iterable[tuple[str, int]]:
    counted = {name: counter.samples for name, counter in llite.operations.items()}
    for direction in ("read", "write"):
        moved = llite.counters.get(f"{direction}_bytes")
        if moved is not None:
            counted.setdefault(direction, moved.samples)
    return counted.items()
