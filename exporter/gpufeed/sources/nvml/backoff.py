# SPDX-License-Identifier: Apache-2.0
"""When to try again what has failed: after a pause that doubles up to a limit."""

from gpufeed.clock import Clock


class Backoff:
    """Pauses between attempts, on a clock that is given."""

    def __init__(self, clock: Clock, first_ns: int, limit_ns: int) -> None:
        self._clock = clock
        self._first_ns = first_ns
        self._limit_ns = limit_ns
        self._pause_ns = first_ns
        self._due_ns = clock.monotonic_ns()

    @property
    def is_due(self) -> bool:
        """Whether the pause is over."""
        return self._clock.monotonic_ns() >= self._due_ns

    def failed(self) -> None:
        """An attempt failed: the next is due after the pause, and the pause after it is twice as long."""
        self._due_ns = self._clock.monotonic_ns() + self._pause_ns
        self._pause_ns = min(self._pause_ns * 2, self._limit_ns)

    def succeeded(self) -> None:
        """An attempt succeeded: the next failure begins anew."""
        self._pause_ns = self._first_ns
        self._due_ns = self._clock.monotonic_ns()
