# SPDX-License-Identifier: Apache-2.0
"""State over restarts: blobs the probe keeps for us, taken over at the start, saved every minute and at the end."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from gpufeed.clock import Clock
from gpufeed.logs import Transitions
from gpufeed.model.state import NodeState
from gpufeed.units import NS_PER_S

EVERY_NS: Final = 60 * NS_PER_S
SOON_NS: Final = 5 * NS_PER_S
"""After something that a crash must not lose; many of them at once are one save."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Something with state: how to get it, and how to give it back."""

    save: Callable[[], bytes]
    restore: Callable[[bytes | None], None]


class Store(Protocol):
    """Where state is kept. It answers by `on_blob` and `on_saved`."""

    def load(self, name: str) -> None:
        """Ask for a state."""

    def save(self, name: str, data: bytes) -> None:
        """Keep a state."""


class Saving:
    """Keeps each keeper's state under its name. Saves nothing before the old state has come back."""

    def __init__(self, keepers: Mapping[str, Keeper], clock: Clock) -> None:
        self._keepers = keepers
        self._store: Store | None = None
        self._clock = clock
        self._awaited = set(keepers)
        self._saved_ns = clock.monotonic_ns()
        self._is_hastened = False
        self._transitions = Transitions(logging.getLogger(__name__), clock)

    def begin(self, store: Store) -> None:
        """Ask for the state of an earlier server."""
        self._store = store
        for name in self._keepers:
            store.load(name)

    def on_blob(self, name: str, data: bytes | None) -> None:
        """The state of an earlier server; None: there is none."""
        if name in self._awaited:
            self._awaited.discard(name)
            self._keepers[name].restore(data)

    def on_state(self, state: NodeState) -> None:
        """Save, when a minute has passed since the last time, or seconds where it was hastened."""
        if state.time.monotonic_ns - self._saved_ns >= (SOON_NS if self._is_hastened else EVERY_NS):
            self.save()

    def hasten(self) -> None:
        """Something has happened that a crash must not lose."""
        self._is_hastened = True

    def save(self) -> None:
        """Save everything now."""
        self._saved_ns = self._clock.monotonic_ns()
        self._is_hastened = False
        for name, keeper in self._keepers.items():
            if self._store is not None and name not in self._awaited:  # else it would replace what is still to come
                self._store.save(name, keeper.save())

    def on_saved(self, name: str, error: str) -> None:
        """What became of it."""
        if error:
            self._transitions.failed(name, "state cannot be kept over a restart", state=name, error=error)
        else:
            self._transitions.recovered(name, "state is kept over a restart again", state=name)
