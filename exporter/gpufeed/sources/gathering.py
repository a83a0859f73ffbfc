# SPDX-License-Identifier: Apache-2.0
"""What one read gathers from several files or devices, and what a reader has said of its inputs before."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.errors import Absent, Denied, ParseError, SourceError, Unsupported
from gpufeed.model.frame import AnySample, InputState, InputStatus
from gpufeed.sources.contract import DeviceFailure, LanePlan, Outcome

_STATES: Final[Mapping[type[Exception], InputState]] = MappingProxyType(
    {Absent: "absent", Unsupported: "unsupported", Denied: "denied"}
)


def state_of(error: SourceError | ParseError) -> InputState:
    """The state of an input that this error kept us from."""
    return _STATES.get(type(error), "broken")


class Statuses:
    """The statuses a reader has said: one goes out when it is new or has changed, not at every read."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], InputStatus] = {}

    def news(self, *statuses: InputStatus) -> tuple[InputStatus, ...]:
        """Those that were not said like this before."""
        fresh = tuple(status for status in statuses if self._said.get((status.input, status.scope)) != status)
        self._said.update({(status.input, status.scope): status for status in fresh})
        return fresh


class Gathering:
    """An outcome in the making: one part of a read may fail, and the others stand."""

    def __init__(self, statuses: Statuses) -> None:
        self.samples: list[AnySample] = []
        self._statuses = statuses
        self._inputs: list[InputStatus] = []
        self._failures: list[DeviceFailure] = []

    def say(self, status: InputStatus) -> None:
        """What is known of an input."""
        self._inputs.append(status)

    def fail(self, device: str, error: SourceError | ParseError) -> None:
        """A part that gave nothing. What is absent or unsupported is no failure: nothing was promised."""
        if isinstance(error, Absent | Unsupported):
            return
        reason = "parse" if isinstance(error, ParseError) else error.reason
        self._failures.append(DeviceFailure(device=device, reason=reason, detail=str(error)))

    def note(self, failure: DeviceFailure) -> None:
        """A part that was left out on purpose, such as what is beyond a cap."""
        self._failures.append(failure)

    def outcome(self, lanes: tuple[LanePlan, ...] | None = None) -> Outcome:
        """All of it."""
        return Outcome(
            samples=tuple(self.samples),
            inputs=self._statuses.news(*self._inputs),
            failures=tuple(self._failures),
            lanes=lanes,
        )
