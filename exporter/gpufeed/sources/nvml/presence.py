# SPDX-License-Identifier: Apache-2.0
"""Finds one GPU, lets go of it when it is gone or NVML is to be released, and finds it again."""

from typing import Final

from gpufeed.errors import SourceError
from gpufeed.model.gpu import GpuConditionWord, GpuIdentity
from gpufeed.sources.contract import Desk
from gpufeed.sources.nvml.backoff import Backoff
from gpufeed.sources.nvml.binding import Handle, Nvml
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.open_gpu import OpenGpu
from gpufeed.units import NS_PER_S

_PAUSE_NS: Final = NS_PER_S
_LONGEST_PAUSE_NS: Final = 30 * NS_PER_S

_CONDITIONS: Final[dict[str, GpuConditionWord]] = {
    "lost": "lost",
    "reset_required": "reset_required",
    "denied": "denied",
}


class Presence:
    """One GPU, by NVML index until its place is known, by PCI bus id after it.

    Of several GPUs of which one is lost, lookups by index may fail for others too; those by bus id do not.
    """

    def __init__(self, index: int, driver_version: str | None, desk: Desk) -> None:
        self._index = index
        self._driver_version = driver_version
        self._desk = desk
        self._nvml = Nvml(desk)
        self._backoff = Backoff(desk.clock, _PAUSE_NS, _LONGEST_PAUSE_NS)
        self._gpu: OpenGpu | None = None
        self._remains: list[OpenGpu] = []  # of a GPU that was lost: freed when it answers again
        self._found_ns = 0
        self._error: SourceError | None = None
        self.identity: GpuIdentity | None = None

    @property
    def condition(self) -> GpuConditionWord:
        """How the GPU is, as far as known."""
        if self._error is not None:
            return _CONDITIONS.get(self._error.reason, "error")
        return "ok"

    @property
    def detail(self) -> str:
        """The driver's own words, where it is not well."""
        return "" if self._error is None else str(self._error)

    def current(self) -> OpenGpu:
        """The GPU. Raises SourceError while it is away, without a call until the pause between looks is over."""
        if self._gpu is None:
            if self._error is not None and not self._backoff.is_due:
                raise self._error.with_traceback(None)
            try:
                self._gpu = self._find()
            except SourceError as error:
                self.lose(error)
                raise
            self._found_ns = self._desk.clock.monotonic_ns()
            self._error = None
            self._free_remains()
        elif self._desk.clock.monotonic_ns() - self._found_ns > _LONGEST_PAUSE_NS:
            self._backoff.succeeded()  # not at once: a GPU that comes and goes is looked for ever more rarely
        return self._gpu

    def lose(self, error: SourceError) -> None:
        """It does not answer: no call until the pause is over, not even to free what it had."""
        if self._gpu is not None:
            self._remains.append(self._gpu)
            self._gpu = None
        self._error = error
        self._backoff.failed()

    def forget(self) -> None:
        """What is known of it may have changed: find it anew at the next read."""
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None

    def let_go(self) -> None:
        """Close everything, NVML included. Raises SourceError."""
        self.forget()
        self._free_remains()
        self._error = None
        self._nvml.close()

    def _free_remains(self) -> None:
        while self._remains:
            self._remains.pop().close()

    def _find(self) -> OpenGpu:
        if not self._nvml.is_open:
            self._nvml.open()
        device = Device(self._nvml, self._handle())
        gpu = OpenGpu(device, self._index, self._desk, self._driver_version)
        self.identity = gpu.identity
        self._desk.gpu_uuid = gpu.identity.gpu.uuid
        return gpu

    def _handle(self) -> Handle:
        bus_id = None if self.identity is None else self.identity.pci_bus_id
        if bus_id is None:
            return self._nvml.call("nvmlDeviceGetHandleByIndex", self._index)
        return self._nvml.call("nvmlDeviceGetHandleByPciBusId", bus_id)
