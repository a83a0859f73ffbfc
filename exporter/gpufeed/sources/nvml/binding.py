# SPDX-License-Identifier: Apache-2.0
"""NVML as one lane calls it. With the simulator the only place that touches pynvml; its types end here.

Every call is named on the lane's desk before it starts, so that a hang can be named; it is counted; and its error
is one of ours, never an `NVMLError` (whose `==` raises and which has no hash).
"""

import ctypes
from collections.abc import Callable
from typing import Any, Final

import pynvml

from gpufeed.errors import Broken, SourceError, Unsupported
from gpufeed.sources.contract import Desk
from gpufeed.sources.nvml.faults import SUCCESS, LibraryMissing, LibraryUnusable, error_of

Handle = Any
"""An opaque pointer to a device; passed back as it came."""

CFunction = Callable[..., int]

MEMORY_V2: Final[int] = pynvml.nvmlMemory_v2
_NO_SUCH_FILE: Final = "No such file"


class Nvml:
    """The calls of one lane."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._references = 0

    def open(self) -> None:
        """Initialise NVML, or take one more reference: NVML counts them, and closes when the last is given back.

        One reference a lane means that no lane can close NVML while another is inside a call, which has crashed
        other programs. Raises SourceError; a library that cannot be loaded says why.
        """
        try:
            self._run("nvmlInit", pynvml.nvmlInit)
        except LibraryMissing as error:
            raise _loader_error(str(error)) from None
        self._references += 1

    def close(self) -> None:
        """Give the references back. Raises SourceError."""
        while self._references:
            self._references -= 1
            self._run("nvmlShutdown", pynvml.nvmlShutdown)

    @property
    def is_open(self) -> bool:
        """Whether this lane holds NVML open."""
        return self._references > 0

    def call(self, function: str, *arguments: object) -> Any:  # noqa: ANN401  # pynvml has no types
        """Call pynvml's wrapper `function`. Raises SourceError, Unsupported where binding or driver lacks it."""
        wrapper = getattr(pynvml, function, None)
        if wrapper is None:
            raise Unsupported(f"{function}: not known to nvidia-ml-py {_binding_version()}")
        return self._run(function, wrapper, *arguments)

    def function(self, name: str) -> CFunction:
        """The driver's own C function, to be called by `run_c`. Raises Unsupported where the driver lacks it."""
        function = getattr(pynvml.nvmlLib, name, None)
        if function is None:
            raise Unsupported(f"{name}: this driver does not have it")
        return function  # type: ignore[no-any-return]  # a ctypes function: int by default

    def run_c(self, name: str, function: CFunction, *arguments: object) -> int:
        """Call a C function; its return code. For arguments that live from call to call."""
        self._begin(name)
        return function(*arguments)

    def check(self, code: int, call: str) -> None:
        """Raise the SourceError of a return code that is not success."""
        if code != SUCCESS:
            raise error_of(code, call, words_of(code))

    def count_fields(self, fields: int) -> None:
        """Count field values asked for."""
        self._desk.counts.field_values += fields

    def _begin(self, name: str) -> None:
        self._desk.call = name
        self._desk.counts.nvml_calls += 1

    def _run(self, name: str, wrapper: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401  # as above
        self._begin(name)
        try:
            return wrapper(*arguments)
        except pynvml.NVMLLibraryMismatchError:
            # not an NVMLError: what some wrappers make of a missing versioned function
            raise Unsupported(f"{name}: this driver does not have the version asked for") from None
        except pynvml.NVMLError as error:
            raise _translated(name, error) from None
        except UnicodeDecodeError:
            raise Broken(f"{name}: the answer is no text") from None


def words_of(code: int) -> str:
    """NVML's words for a return code."""
    return str(pynvml.NVMLError(code))


def gpm_request() -> Any:  # noqa: ANN401  # a ctypes struct
    """The struct of nvmlGpmMetricsGet, version set, no metrics yet. 19 kB: one a GPU, kept."""
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    return request


def _translated(name: str, error: pynvml.NVMLError) -> SourceError:
    translated = error_of(error.value, name, str(error))
    if isinstance(translated, LibraryMissing) and error.__context__ is not None:
        # every way in which loading can fail is raised as "not found"; the real one hides behind it
        return LibraryMissing(str(error.__context__))
    return translated


def _loader_error(words: str) -> SourceError:
    return LibraryMissing(words) if _NO_SUCH_FILE in words else LibraryUnusable(words)


def _binding_version() -> str:
    return str(getattr(pynvml, "__version__", "of this installation"))


def module_id(nvml: Nvml, handle: Handle) -> int:
    """Number of the module in its baseboard: nvmlDeviceGetModuleId, whose default argument all threads would share."""
    answer = ctypes.c_uint()
    return int(nvml.call("nvmlDeviceGetModuleId", handle, answer))
