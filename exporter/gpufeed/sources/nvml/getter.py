# SPDX-License-Identifier: Apache-2.0
"""One reading that a device may or may not have: found out once, then asked or never asked again."""

from collections.abc import Callable
from typing import Generic, TypeVar

from gpufeed.errors import Absent, Broken, Denied, DeviceLost, DeviceResetRequired, SourceError, Unsupported
from gpufeed.sources.nvml.faults import HandleGone, InvalidArgument

T = TypeVar("T")


class Getter(Generic[T]):
    """A call with its fallbacks, best first. Until one has answered, a refusal drops it and tries the next.

    After that a refusal counts for that read only: it may come and go with MIG mode.
    """

    def __init__(self, *calls: Callable[[], T]) -> None:
        self._calls = list(calls)
        self._is_proven = False
        self.refusal: SourceError | None = None

    @property
    def is_missing(self) -> bool:
        """Whether this device cannot give it at all; `refusal` says why."""
        return not self._calls

    def read(self, failures: list[SourceError]) -> T | None:
        """The value, None where it cannot be had; a passing failure is added to `failures`.

        Raises DeviceLost, DeviceResetRequired and HandleGone: these are about the whole device.
        """
        while self._calls:
            try:
                value = self._calls[0]()
            except (Unsupported, Denied, InvalidArgument) as error:
                if not self._is_proven:
                    self.refusal = error
                    del self._calls[0]
                elif isinstance(error, InvalidArgument):
                    raise
                else:
                    return None
            except (DeviceLost, DeviceResetRequired, HandleGone):
                raise
            except Absent:
                return None
            except Broken as error:
                failures.append(error)
                return None
            else:
                self._is_proven = True
                return value
        return None
