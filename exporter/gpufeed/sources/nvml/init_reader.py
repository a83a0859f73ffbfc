# SPDX-License-Identifier: Apache-2.0
"""The reader of the lane `nvml-init`: opens NVML, says which driver it is, plans a lane a GPU, and looks again.

The driver may come later than the daemon, and may be replaced below it. A library that was mapped once stays mapped:
after an upgrade of the driver this process can never speak to it again, so the probe asks to be replaced.
"""

from typing import Final

from msgspec import Struct

from gpufeed.errors import Denied, SourceError, Unsupported
from gpufeed.model.frame import GpuEvent, InputState, InputStatus
from gpufeed.model.gpu import DriverInfo
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.sources.contract import Desk, DeviceFailure, Group, LanePlan, Outcome, Reader
from gpufeed.sources.nvml.backoff import Backoff
from gpufeed.sources.nvml.binding import Nvml
from gpufeed.sources.nvml.faults import DriverMismatch, DriverNotLoaded, HandleGone, LibraryMissing, LibraryUnusable
from gpufeed.sources.nvml.gpu_reader import GpuSpec, open_gpu
from gpufeed.sources.nvml.open_gpu import DEVICE_ACCESS
from gpufeed.units import NS_PER_S

DRIVER: Final = GroupName("nvml.slow")
RELEASE: Final = GroupName("nvml.release")
DRIVER_CHANGED: Final = "driver_changed"

_PAUSE_NS: Final = 5 * NS_PER_S
_LONGEST_PAUSE_NS: Final = 30 * NS_PER_S
_INPUT: Final = "nvml"
_STATES: Final[dict[str, InputState]] = {"absent": "absent", "unsupported": "unsupported", "denied": "denied"}


class InitSpec(Struct, frozen=True):
    """What is read of every GPU: part of the spec, so that another choice makes another lane and its children."""

    gpu_groups: tuple[Group, ...]


def open_init(spec: InitSpec, desk: Desk) -> Reader:
    """The reader of `nvml-init`. Makes no call yet: a node without a driver is no error to open."""
    return InitReader(spec, desk)


class InitReader:
    """NVML as a whole."""

    def __init__(self, spec: InitSpec, desk: Desk) -> None:
        self._spec = spec
        self._desk = desk
        self._nvml = Nvml(desk)
        self._backoff = Backoff(desk.clock, _PAUSE_NS, _LONGEST_PAUSE_NS)
        self._generation = 0
        self._driver: DriverInfo | None = None
        self._error: SourceError | None = None
        self._has_fitted = False  # the library of this process has once fitted the driver, or had none to fit
        self._has_asked = False  # to be replaced: once is enough
        self._said: InputStatus | None = None

    def read(self, group: GroupName) -> Outcome:
        """`nvml.slow`: the driver, and a lane a GPU. `nvml.release`: let go of NVML when told to. Never raises."""
        if self._desk.board.released:
            return self._release()
        return self._look() if group == DRIVER else Outcome()

    def close(self) -> None:
        """Give back this lane's share in NVML; lanes of its GPUs make no further call. Raises SourceError."""
        board = self._desk.board
        if board.nvml_generation == self._generation:  # else a successor has opened it already
            board.nvml_is_open = False
        self._driver = None
        self._nvml.close()

    def _release(self) -> Outcome:
        if self._nvml.is_open:
            self.close()
        self._error = None
        self._backoff.succeeded()  # looked for at once when it is given back
        return Outcome(inputs=self._news("released", "NVML is closed until it is given back"))

    def _look(self) -> Outcome:
        if self._error is not None and not self._backoff.is_due:
            return self._failed(self._error)
        try:
            outcome = self._look_again() if self._nvml.is_open else self._open()
        except SourceError as error:
            self._backoff.failed()
            if isinstance(error, HandleGone):
                self._abandon()
            return self._failed(error)
        self._backoff.succeeded()
        self._error = None
        return outcome

    def _open(self) -> Outcome:
        self._nvml.open()
        self._has_fitted = True
        try:
            return self._opened(self._read_driver())
        except SourceError:
            self._nvml.close()
            raise

    def _look_again(self) -> Outcome:
        driver, known = self._read_driver(), self._driver
        if known is None or driver.device_count != known.device_count:
            return self._opened(driver)
        events: tuple[GpuEvent, ...] = ()
        if driver.driver_version != known.driver_version:
            events = self._ask_to_be_replaced(f"driver {known.driver_version} is now {driver.driver_version}")
        return Outcome(samples=(driver,), events=events, inputs=self._news("available"))

    def _opened(self, driver: DriverInfo) -> Outcome:
        board = self._desk.board
        self._generation = board.nvml_generation + 1
        board.nvml_generation = self._generation
        board.nvml_is_open = True
        self._driver = driver
        return Outcome(samples=(driver,), inputs=self._news("available"), lanes=self._plan(driver))

    def _plan(self, driver: DriverInfo) -> tuple[LanePlan, ...]:
        return tuple(
            LanePlan(
                lane=LaneId(f"gpu{index}"),
                groups=self._spec.gpu_groups,
                open=open_gpu,
                spec=GpuSpec(index=index, generation=self._generation, driver_version=driver.driver_version),
            )
            for index in range(driver.device_count)
        )

    def _read_driver(self) -> DriverInfo:
        return DriverInfo(
            driver_version=self._optional("nvmlSystemGetDriverVersion"),
            nvml_version=self._optional("nvmlSystemGetNVMLVersion"),
            cuda_version=_cuda_version(self._optional("nvmlSystemGetCudaDriverVersion_v2")),
            device_count=int(self._nvml.call("nvmlDeviceGetCount")),
        )

    def _optional(self, function: str) -> str | None:
        """What a version is called; None where this library does not say."""
        try:
            return str(self._nvml.call(function))
        except Unsupported:
            return None

    def _failed(self, error: SourceError) -> Outcome:
        self._error = error
        self._has_fitted |= isinstance(error, DriverNotLoaded)
        # of a process whose first word from NVML is a mismatch, another one would hear the same: it waits instead
        is_outdated = isinstance(error, DriverMismatch) and self._has_fitted
        return Outcome(
            events=self._ask_to_be_replaced(str(error)) if is_outdated else (),
            inputs=self._news(_STATES.get(error.reason, "broken"), str(error), _fix_of(error)),
            failures=(DeviceFailure(device="driver", reason=error.reason, detail=str(error)),),
            lanes=None if self._nvml.is_open else (),
        )

    def _ask_to_be_replaced(self, detail: str) -> tuple[GpuEvent, ...]:
        if self._has_asked:
            return ()
        self._has_asked = True
        at_ns = self._desk.clock.monotonic_ns()
        return (GpuEvent(at_ns=at_ns, kind=DRIVER_CHANGED, uuid=None, detail=detail),)

    def _abandon(self) -> None:
        """NVML says that it is not initialised: somebody else in this process has closed it."""
        try:
            self.close()
        except SourceError:
            self._nvml = Nvml(self._desk)

    def _news(self, state: InputState, reason: str = "", fix: str = "") -> tuple[InputStatus, ...]:
        status = InputStatus(_INPUT, "", state, reason, fix)
        if status == self._said:
            return ()
        self._said = status
        return (status,)


def _cuda_version(text: str | None) -> str | None:
    """12040 is CUDA 12.4."""
    if text is None:
        return None
    number = int(text)
    return f"{number // 1000}.{number % 1000 // 10}"


def _fix_of(error: SourceError) -> str:
    if isinstance(error, Denied):
        return DEVICE_ACCESS
    if isinstance(error, (DriverNotLoaded, LibraryMissing, LibraryUnusable, DriverMismatch)):
        return error.fix
    return ""
