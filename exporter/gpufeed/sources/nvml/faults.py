# SPDX-License-Identifier: Apache-2.0
"""What NVML's return codes mean to us: the six words of a SourceError, and a few finer ones that only NVML knows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from gpufeed.errors import Absent, Broken, Denied, DeviceLost, DeviceResetRequired, SourceError, Unsupported

SUCCESS: Final = 0
INSUFFICIENT_SIZE: Final = 7


class NoEvent(Absent):
    """Nothing happened while an event set was waited for."""


class HandleGone(Broken):
    """The handle names nothing any more: the GPU must be found again."""


class InvalidArgument(HandleGone):
    """What a call that used to work answers when its handle is gone. Of a first call it means *not supported*."""


class DriverNotLoaded(Absent):
    """The library is there, the kernel module is not."""

    fix: ClassVar[str] = "modprobe nvidia"


class LibraryMissing(Absent):
    """The dynamic loader finds no NVML."""

    fix: ClassVar[str] = "install the NVIDIA driver's libraries for this machine, or start where they are visible"


class LibraryUnusable(Broken):
    """The dynamic loader finds an NVML that it cannot load."""

    fix: ClassVar[str] = "reinstall the NVIDIA driver's libraries: the one found cannot be loaded"


class DriverMismatch(Broken):
    """The library and the kernel module are of different drivers: one was upgraded without the other."""

    fix: ClassVar[str] = "reboot, or unload and reload the nvidia kernel modules"


BY_CODE: Final[Mapping[int, type[SourceError]]] = MappingProxyType(
    {
        0: Absent,  # raised by wrappers whose sizing call already succeeds: there is nothing to list
        1: HandleGone,  # uninitialized: after a reset also what an old handle answers
        2: InvalidArgument,
        3: Unsupported,
        4: Denied,
        6: Absent,
        9: DriverNotLoaded,
        10: NoEvent,
        12: LibraryMissing,
        13: Unsupported,  # function not found: an older driver
        15: DeviceLost,
        16: DeviceResetRequired,
        17: Denied,  # the operating system refused: cgroup, seccomp, device node
        18: DriverMismatch,
        25: Unsupported,  # struct version unknown to this driver
        28: HandleGone,  # GPU not found
    }
)
"""nvmlReturn_t to error. Anything else, 999 (unknown) included, is Broken: tried again."""

_DEVICE_CODES: Final = frozenset({15, 16})
_REFUSED_CODES: Final = frozenset({2, 3, 4, 13, 17, 25})


def is_about_the_device(code: int) -> bool:
    """Whether the code tells of the whole GPU, wherever it appears."""
    return code in _DEVICE_CODES


def is_refusal(code: int) -> bool:
    """Whether a first answer of this code means that the thing will not be had from this device and driver."""
    return code in _REFUSED_CODES


def error_of(code: int, call: str, words: str) -> SourceError:
    """The error for a return code of `call`; `words` are the driver's own."""
    return BY_CODE.get(code, Broken)(f"{call}: {words} ({code})")
