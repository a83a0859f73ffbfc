# SPDX-License-Identifier: Apache-2.0
"""Every error of gpufeed.

    GpufeedError
    ├── ConfigError            the configuration is wrong; carries every problem found, with file, line and key
    ├── ParseError             bytes from outside are not what their format says
    ├── WireError              the other process speaks another protocol, or nonsense
    ├── SpawnError             a child process could not be started
    ├── LaneStuck              blocking work cannot be done now: the work before it has not come back
    ├── Unreachable            a receiver of alerts could not be asked: the text says why, and holds no secret
    └── SourceError            a reading could not be had; carries why, in one of six words
        ├── Absent             no such hardware or file here: not a fault, looked for again
        ├── Unsupported        this device or driver cannot give it: its series do not exist
        ├── Denied             permission is missing: the text says which, and the fix
        ├── DeviceLost         the device fell off its bus
        ├── DeviceResetRequired the device answers, but must be reset before it works
        └── Broken             an error: counted, logged when it starts and when it ends

Raise the narrowest, catch by name. `except Exception` stands in one place only: where a lane runs a reader.
"""

from typing import ClassVar


class GpufeedError(Exception):
    """Base of all errors raised on purpose."""


class ParseError(GpufeedError):
    """Text or bytes do not follow their format: `what` was expected, `excerpt` was found."""

    def __init__(self, what: str, found: object, where: str = "") -> None:
        excerpt = found if isinstance(found, str) else repr(found)
        self.what = what
        self.excerpt = excerpt[:80]
        self.where = where
        place = f"{where}: " if where else ""
        super().__init__(f"{place}expected {what}, found {self.excerpt!r}")


class WireError(GpufeedError):
    """A message that cannot be framed, decoded or accepted."""


class SpawnError(GpufeedError):
    """A child process could not be started."""


class LaneStuck(GpufeedError):
    """Blocking work cannot be done now: the work before it has not come back."""


class Unreachable(GpufeedError):
    """A receiver of alerts could not be asked; the text says why, and holds no secret."""


class ConfigError(GpufeedError):
    """All problems of a configuration at once, each a full sentence with its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SourceError(GpufeedError):
    """A reading could not be had. `reason` is a closed word for a label, the text is for people."""

    reason: ClassVar[str] = "error"


class Absent(SourceError):
    """No such hardware or file here."""

    reason = "absent"


class Unsupported(SourceError):
    """This device or driver cannot give this reading."""

    reason = "unsupported"


class Denied(SourceError):
    """Permission is missing."""

    reason = "denied"


class DeviceLost(SourceError):
    """The device fell off its bus."""

    reason = "lost"


class DeviceResetRequired(SourceError):
    """The device must be reset before it works again."""

    reason = "reset_required"


class Broken(SourceError):
    """Anything else that went wrong while reading."""

    reason = "broken"
