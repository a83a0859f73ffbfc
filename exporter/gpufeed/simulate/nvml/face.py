# SPDX-License-Identifier: Apache-2.0
"""The NVML face: puts the simulated driver library in place of the one that nvidia-ml-py has loaded.

nvidia-ml-py finds each function as an attribute of the loaded library and keeps the pointer. Here that attribute is
a C function pointer made from Python, so that every call is marshalled as with the real library.
"""

import ctypes
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Protocol

import pynvml

from gpufeed.simulate.block import BlockReader, Moment, TornBlockError
from gpufeed.simulate.faults import Fault, decode
from gpufeed.simulate.hardware import MODELS, boards
from gpufeed.simulate.nvml import errors, events, fields, gpm, identity, links, mig, processes, readings, system
from gpufeed.simulate.nvml.library import (
    DRIVER_NOT_LOADED,
    ERROR_TEXTS,
    GPU_IS_LOST,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    UNKNOWN,
    Function,
    Gpu,
    Status,
)
from gpufeed.simulate.nvml.personality import has_function

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        function.name: function
        for function in chain(
            system.TABLE,
            identity.TABLE,
            readings.TABLE,
            errors.TABLE,
            links.TABLE,
            fields.TABLE,
            gpm.TABLE,
            processes.TABLE,
            events.TABLE,
            mig.TABLE,
        )
    }
)

_OF_THE_NODE: Final = frozenset(function.name for function in system.TABLE)
_ERROR_STRING: Final = "nvmlErrorString"
_TEXTS: Final = {code: ctypes.create_string_buffer(text.encode()) for code, text in ERROR_TEXTS.items()}
_FIRST_HANDLE: Final = 0x7F00_0000_1000
_HANDLE_STEP: Final = 0x100
_HANG_POLL_S: Final = 0.02
_NOT_AN_ERROR: Final = frozenset({"missing", "answers", "adds"})
"""Effects that leave a call its success."""


class _Pointer(Protocol):
    """A C function pointer; nvidia-ml-py sets `restype` on one of them."""

    restype: Any

    def __call__(self, *arguments: Any) -> Any: ...


class Face:
    """A loaded library. `errors` keeps what went wrong inside a callback, for a test to raise."""

    def __init__(self, truth_path: str) -> None:
        self.path = truth_path
        self.calls: Counter[str] = Counter()
        self.field_values = 0
        self.errors: list[Exception] = []
        self.hung: set[int | None] = set()  # GPUs of calls that would not have returned, where time is stepped
        self.gpm = gpm.Samples()
        self.events = events.EventSets()
        self.initialized = 0
        self._reader = BlockReader(truth_path)
        header = self._reader.read().header
        self.boards = boards(MODELS[header.model], header.gpus)
        self._faults: tuple[int, tuple[Fault, ...]] = (-1, ())
        self._matched: Counter[Fault] = Counter()
        self._stalled: set[Fault] = set()  # hangs that were met, where time is stepped
        self._callbacks: dict[str, Any] = {}  # a callback that is collected while C may call it ends the process

    def __getattr__(self, name: str) -> _Pointer:
        """The function pointer of a symbol; AttributeError where the library has none, as ctypes does it."""
        function = FUNCTIONS.get(name)
        if self._is_missing(name) or (function is None and name != _ERROR_STRING):
            raise AttributeError(name)
        # without argument types, arguments are converted as for a symbol of a real library
        pointer = ctypes.CFUNCTYPE(ctypes.c_int)(self._text_address() if function is None else self._address(function))
        setattr(self, name, pointer)
        return pointer

    def moment(self, gpu: int | None = None) -> Moment:
        """The node, and one GPU of it, as they are now. Raises Status."""
        try:
            return self._reader.read(gpu)
        except TornBlockError as error:
            raise Status(UNKNOWN) from error

    def handle(self, index: int) -> int:
        """The address that stands for a device."""
        return _FIRST_HANDLE + index * _HANDLE_STEP

    def index(self, handle: int | None) -> int:
        """The NVML index of a handle. Raises Status."""
        index, rest = divmod((handle or 0) - _FIRST_HANDLE, _HANDLE_STEP)
        if rest or not 0 <= index < len(self.boards):
            raise Status(INVALID_ARGUMENT)
        return index

    def gpu(self, index: int, function: str) -> Gpu:
        """A GPU for one call of `function`, if nothing stands in the way. Raises Status, or hangs by a fault."""
        self.suffer(function, index)
        moment = self.moment(index)
        if moment.whole("lost"):
            raise Status(GPU_IS_LOST)
        return Gpu(face=self, board=self.boards[index], moment=moment)

    def suffer(self, function: str, gpu: int | None, field: int | None = None) -> None:
        """Let the faults of this call happen. Raises Status."""
        if self._stalled:
            self._stalled.intersection_update(self._table())
            if any(_is_behind(function, gpu, fault) for fault in self._stalled):
                self.hung.add(gpu)
        for fault in self._table():
            if fault.effect in _NOT_AN_ERROR or not fault.concerns(function, gpu, field):
                continue
            self._matched[fault] += 1
            if self._matched[fault] <= fault.after_calls:
                continue
            if fault.effect == "hang":
                self._hang(fault, gpu)
            else:
                raise Status({"not_supported": NOT_SUPPORTED, "lost": GPU_IS_LOST}.get(fault.effect, fault.code))

    def tell(self, function: str, gpu: int, field: int, true: float, stands: float) -> float:
        """What a field or metric is said to be: the truth, unless a fault tells something else."""
        for fault in self._table():
            if fault.concerns(function, gpu, field) and fault.effect in ("answers", "adds"):
                return fault.value if fault.effect == "answers" else stands + true
        return true

    def close(self) -> None:
        """Let go of the truth."""
        self._reader.close()

    def _table(self) -> tuple[Fault, ...]:
        moment = self.moment()
        turn = moment.header.fault_turn
        if self._faults[0] != turn:
            self._faults = (turn, decode(moment.faults))
        return self._faults[1]

    def _is_missing(self, name: str) -> bool:
        try:
            faults = self._table()
        except Status:
            return False  # the call will say so: here is no C caller who would understand it
        if not has_function(self.moment().header.driver_version, name):
            return True
        return any(fault.effect == "missing" and fault.function == name for fault in faults)

    def _hang(self, fault: Fault, gpu: int | None) -> None:
        if self.moment().header.period_ns == 0:
            # Nobody could move time on while this call waits. The answer is given, and marked as not yet there.
            self.hung.add(gpu)
            self._stalled.add(fault)
            return
        while fault in self._table():
            time.sleep(_HANG_POLL_S)

    def _address(self, function: Function) -> int:
        def callback(*arguments: Any) -> int:
            try:
                self._answer(function, arguments)
            except Status as status:
                return status.code
            except Exception as error:  # noqa: BLE001  # it would be printed, and C would get garbage for a status
                self.errors.append(error)
                return UNKNOWN
            return SUCCESS

        made = self._callbacks.setdefault(function.name, ctypes.CFUNCTYPE(ctypes.c_int, *function.arguments)(callback))
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def _text_address(self) -> int:
        """nvmlErrorString: the one function that returns no status, but the address of a text it keeps."""

        def callback(code: int) -> int:
            text = _TEXTS.get(code, _TEXTS[UNKNOWN])
            return ctypes.addressof(text)

        made = self._callbacks.setdefault(_ERROR_STRING, ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(callback))
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def _answer(self, function: Function, arguments: tuple[Any, ...]) -> None:
        self.calls[function.name] += 1
        if function.needs_init and not self.initialized:
            raise Status(UNINITIALIZED)
        if function.takes_device:
            is_part = mig.is_part(arguments[0])
            index = mig.board_of(arguments[0]) if is_part else self.index(arguments[0])
            if not self.moment().header.has_driver:
                raise Status(UNKNOWN)
            gpu = self.gpu(index, function.name)
            function.call(mig.part_of(gpu, arguments[0], function.name) if is_part else gpu, *arguments[1:])
        else:
            self.suffer(function.name, None)
            function.call(self, *arguments)

    def load(self) -> None:
        """What nvmlInit does. Raises Status."""
        if not self.moment().header.has_driver:
            raise Status(DRIVER_NOT_LOADED)
        self.initialized += 1


@contextmanager
def installed(truth_path: str) -> Iterator[Face]:
    """The face over this truth in place of the driver library; afterwards nvidia-ml-py is as if never used."""
    face = install(truth_path)
    try:
        yield face
    finally:
        uninstall()


def install(truth_path: str) -> Face:
    """Put the face in place, for good. A second call gives the face that is there; RuntimeError if of another node."""
    present = pynvml.nvmlLib
    if isinstance(present, Face):
        if present.path != truth_path:
            raise RuntimeError(f"the simulated driver shows {present.path} already")
        return present
    face = Face(truth_path)
    _reset(face)
    return face


def uninstall() -> None:
    """Take the face out: a plain nvmlInit looks for a driver library again."""
    present = pynvml.nvmlLib
    _reset(None)
    if isinstance(present, Face):
        present.close()


def _is_behind(function: str, gpu: int | None, fault: Fault) -> bool:
    """Whether this call could not be made, because its thread is in the one that hangs: one a GPU, one for the node."""
    if fault.gpu is not None:
        return gpu == fault.gpu
    return (fault.function in _OF_THE_NODE) == (function in _OF_THE_NODE)


def _reset(library: Face | None) -> None:
    pynvml.nvmlLib = library
    pynvml._nvmlLib_refcount = 0  # noqa: SLF001  # there is no other way to unload a library
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001
