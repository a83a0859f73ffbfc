# SPDX-License-Identifier: Apache-2.0
"""The frame of the simulated driver library: how its functions are declared, and what they are given.

A function is Python, called through a C function pointer, and answers as C functions do: it writes into the memory
it is handed and returns a status. It raises `Status` for any status but success.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gpufeed.simulate.block import Moment
from gpufeed.simulate.hardware import Board
from gpufeed.simulate.mig import LAYOUTS, MEMORY_SLICES, NUMBERS, MigDevice

if TYPE_CHECKING:
    from gpufeed.simulate.nvml.face import Face

SUCCESS: Final = 0
UNINITIALIZED: Final = 1
INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
GPU_IS_LOST: Final = 15
ARGUMENT_VERSION_MISMATCH: Final = 25
UNKNOWN: Final = 999

ERROR_TEXTS: Final = {
    SUCCESS: "Success",
    UNINITIALIZED: "Uninitialized",
    INVALID_ARGUMENT: "Invalid Argument",
    NOT_SUPPORTED: "Not Supported",
    NOT_FOUND: "Not Found",
    INSUFFICIENT_SIZE: "Insufficient Size",
    DRIVER_NOT_LOADED: "Driver Not Loaded",
    TIMEOUT: "Timeout",
    GPU_IS_LOST: "GPU is lost",
    ARGUMENT_VERSION_MISMATCH: "Argument Version Mismatch",
    UNKNOWN: "Unknown Error",
}

UINT_P: Final = ctypes.POINTER(ctypes.c_uint)
INT_P: Final = ctypes.POINTER(ctypes.c_int)
ULONGLONG_P: Final = ctypes.POINTER(ctypes.c_ulonglong)
ADDRESS_P: Final = ctypes.POINTER(ctypes.c_void_p)
ADDRESS: Final = ctypes.c_void_p
UINT: Final = ctypes.c_uint


_Call = TypeVar("_Call", bound=Callable[..., None])


class Status(Exception):  # noqa: N818  # a status is not always an error: TIMEOUT is how a quiet event set answers
    """Any nvmlReturn_t but success."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as one call finds it."""

    face: "Face"
    board: Board
    moment: Moment
    part: MigDevice | None = None  # of a MIG device's handle: which it is

    @property
    def index(self) -> int:
        """NVML index."""
        return self.board.index

    @property
    def is_mig(self) -> bool:
        """Whether MIG is on, with or without instances."""
        return self.moment.whole("mig_layout") > 0

    @property
    def parts(self) -> tuple[MigDevice, ...]:
        """The MIG devices of the board."""
        return LAYOUTS[NUMBERS[self.moment.whole("mig_layout")]]

    @property
    def memory_bytes(self) -> int:
        """Of the board or the GPU instance."""
        size = self.board.model.memory_bytes
        return size if self.part is None else size * self.part.memory_slices // MEMORY_SLICES


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function of the library. A device function is given a `Gpu` in place of its handle, others the `Face`."""

    name: str
    arguments: tuple[Any, ...]
    call: Callable[..., None]
    takes_device: bool
    needs_init: bool = True


class Table:
    """The functions of one topic."""

    def __init__(self) -> None:
        self._functions: list[Function] = []

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions)

    def device(self, name: str, *arguments: Any) -> Callable[[_Call], _Call]:
        """Declare a function whose first argument is a device handle; `arguments` are the C types of the others."""
        return self._declare(name, (ADDRESS, *arguments), takes_device=True)

    def library(self, name: str, *arguments: Any, needs_init: bool = True) -> Callable[[_Call], _Call]:
        """Declare a function that takes no device handle."""
        return self._declare(name, arguments, takes_device=False, needs_init=needs_init)

    def _declare(
        self, name: str, arguments: tuple[Any, ...], *, takes_device: bool, needs_init: bool = True
    ) -> Callable[[_Call], _Call]:
        def declare(call: _Call) -> _Call:
            self._functions.append(
                Function(name=name, arguments=arguments, call=call, takes_device=takes_device, needs_init=needs_init)
            )
            return call

        return declare


def write_text(text: str, buffer: int | None, length: int) -> None:
    """Put `text` and a NUL into the caller's buffer. Raises Status where it is none, or too small."""
    data = text.encode() + b"\0"
    if buffer is None:
        raise Status(INVALID_ARGUMENT)
    if len(data) > length:
        raise Status(INSUFFICIENT_SIZE)
    ctypes.memmove(buffer, data, len(data))
