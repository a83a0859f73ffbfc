# SPDX-License-Identifier: Apache-2.0
"""The reader of one GPU's lane: says at every fast read how the GPU is, and reads what it has while it is well."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gpufeed.errors import DeviceLost, DeviceResetRequired, SourceError
from gpufeed.model.frame import GpuEvent, InputStatus
from gpufeed.model.gpu import GpuCondition, GpuProcesses
from gpufeed.model.ids import GroupName
from gpufeed.sources.contract import Desk, DeviceFailure, Outcome, Reader
from gpufeed.sources.nvml.events import MIG_CHANGED
from gpufeed.sources.nvml.faults import HandleGone
from gpufeed.sources.nvml.inputs import inputs_of
from gpufeed.sources.nvml.open_gpu import OpenGpu
from gpufeed.sources.nvml.presence import Presence

FAST: Final = GroupName("nvml.fast")
SLOW: Final = GroupName("nvml.slow")
RARE: Final = GroupName("nvml.rare")
PROCESSES: Final = GroupName("nvml.processes")
NVLINK: Final = GroupName("nvlink.fast")
LINKS: Final = GroupName("nvlink.slow")
GPM: Final = GroupName("gpm.fast")
XID: Final = GroupName("xid.events")


class GpuSpec(Struct, frozen=True):
    """Which GPU, of which initialisation of NVML."""

    index: int
    generation: int
    driver_version: str | None = None


def open_gpu(spec: GpuSpec, desk: Desk) -> Reader:
    """The reader of one GPU's lane. Makes no call yet: a GPU that is lost at start still has its condition said."""
    return GpuReader(spec, desk)


class GpuReader:
    """One GPU."""

    def __init__(self, spec: GpuSpec, desk: Desk) -> None:
        self._spec = spec
        self._desk = desk
        self._presence = Presence(spec.index, spec.driver_version, desk)
        self._said: dict[str, InputStatus] = {}
        self._groups: dict[GroupName, Callable[[OpenGpu], Outcome]] = {
            SLOW: self._read_slow,
            RARE: self._read_rare,
            PROCESSES: self._read_processes,
            NVLINK: self._read_nvlink,
            LINKS: self._read_links,
            GPM: self._read_gpm,
            XID: self._read_events,
        }
        desk.gpu_index = spec.index

    def read(self, group: GroupName) -> Outcome:
        """One group now. While the GPU is away only `nvml.fast` says so, and every other group is empty.

        Raises SourceError for what may pass, but not of `nvml.fast`: that always says how the GPU is.
        """
        board = self._desk.board
        if board.released or not board.nvml_is_open or board.nvml_generation != self._spec.generation:
            return self._read_nothing(group)
        if group == FAST:
            return self._read_fast()
        try:
            gpu = self._presence.current()
        except SourceError:
            return Outcome()
        return self._guarded(gpu, self._groups[group])

    def close(self) -> None:
        """Let go of the GPU, and of this lane's share in NVML."""
        self._leave_board()
        self._presence.let_go()

    def _read_nothing(self, group: GroupName) -> Outcome:
        detail = ""
        try:
            self.close()
        except SourceError as error:
            detail = str(error)
        if group != FAST:
            return Outcome()
        uuid, index = self._desk.gpu_uuid, self._spec.index
        return Outcome(samples=(GpuCondition(index=index, uuid=uuid, condition="released", detail=detail),))

    def _read_fast(self) -> Outcome:
        try:
            gpu = self._presence.current()
            return self._guarded(gpu, self._read_well)
        except SourceError as error:
            if self._presence.condition == "ok":
                self._lose(error)  # it answers nothing at all: as good as gone
            return Outcome(samples=(self._condition(),), failures=self._failures([error]))

    def _read_well(self, gpu: OpenGpu) -> Outcome:
        failures: list[SourceError] = []
        sample, pcie = gpu.fast.read(gpu.identity.gpu, failures)
        samples = (self._condition(), sample) if pcie is None else (self._condition(), sample, pcie)
        return Outcome(samples=samples, inputs=self._news(gpu), failures=self._failures(failures))

    def _read_slow(self, gpu: OpenGpu) -> Outcome:
        failures: list[SourceError] = []
        slow, errors = gpu.slow.read(gpu.identity.gpu, failures)
        c2c = gpu.c2c.get()
        split = gpu.mig.look(failures, is_on=slow.mig_enabled)
        if gpu.mig.has_turned:
            self._presence.forget()  # what it can give has changed with it, and no event said so
        given = (slow, errors, None if c2c is None else c2c.read(gpu.identity.gpu), split)
        # the identity costs nothing here, and is soon known of a GPU that came back
        samples = (gpu.identity, *(sample for sample in given if sample is not None))
        return Outcome(samples=samples, inputs=self._news(gpu), failures=self._failures(failures))

    def _read_rare(self, gpu: OpenGpu) -> Outcome:
        if gpu.device.uuid() != gpu.identity.gpu.uuid:
            self._presence.forget()  # another board in the same place
            return Outcome()
        failures: list[SourceError] = []
        detail = gpu.rare.read(gpu.identity.gpu, failures)
        samples = (gpu.identity,) if detail is None else (gpu.identity, detail)
        return Outcome(samples=samples, inputs=self._news(gpu), failures=self._failures(failures))

    def _read_processes(self, gpu: OpenGpu) -> Outcome:
        failures: list[SourceError] = []
        samples = gpu.mig.read(failures)
        if not gpu.mig.is_split:
            whole = gpu.processes.read(gpu.identity.gpu, failures)
            samples = () if whole is None else (whole,)
        lists = [sample.processes for sample in samples if isinstance(sample, GpuProcesses)]
        board, lane = self._desk.board, self._desk.lane
        if lists:
            pids = tuple(process.pid for processes in lists for process in processes)
            board.gpu_pids[lane] = (gpu.identity.gpu.uuid, pids)
            (board.idle_gpus.discard if pids else board.idle_gpus.add)(lane)
        else:
            self._leave_board()
        return Outcome(samples=samples, inputs=self._news(gpu), failures=self._failures(failures))

    def _read_nvlink(self, gpu: OpenGpu) -> Outcome:
        nvlink = gpu.nvlink.get()
        samples = () if nvlink is None else (nvlink.read(gpu.identity.gpu),)
        return Outcome(samples=samples, inputs=self._news(gpu))

    def _read_links(self, gpu: OpenGpu) -> Outcome:
        links = gpu.links.get()
        samples = () if links is None else (links.read(gpu.identity.gpu),)
        return Outcome(samples=samples, inputs=self._news(gpu))

    def _read_gpm(self, gpu: OpenGpu) -> Outcome:
        gpm = gpu.gpm.get()
        interval = None if gpm is None else gpm.read(gpu.identity.gpu)
        whole = () if interval is None else (interval,)
        return Outcome(samples=(*whole, *gpu.mig.read_gpm()), inputs=self._news(gpu))

    def _read_events(self, gpu: OpenGpu) -> Outcome:
        listener = gpu.events.get()
        events = () if listener is None else listener.read()
        if any(isinstance(event, GpuEvent) and event.kind == MIG_CHANGED for event in events):
            self._presence.forget()  # what it can give has changed with it
        return Outcome(events=events, inputs=self._news(gpu))

    def _guarded(self, gpu: OpenGpu, read: Callable[[OpenGpu], Outcome]) -> Outcome:
        """Read from the GPU; where the error is about all of it, let go of it. Raises SourceError."""
        try:
            return read(gpu)
        except (DeviceLost, DeviceResetRequired) as error:
            self._lose(error)
            raise
        except HandleGone as error:
            if not _still_names(gpu):
                self._lose(error)
            raise

    def _lose(self, error: SourceError) -> None:
        self._presence.lose(error)
        self._leave_board()

    def _leave_board(self) -> None:
        self._desk.board.gpu_pids.pop(self._desk.lane, None)
        self._desk.board.idle_gpus.discard(self._desk.lane)

    def _condition(self) -> GpuCondition:
        return GpuCondition(
            index=self._spec.index,
            uuid=self._desk.gpu_uuid,
            condition=self._presence.condition,
            detail=self._presence.detail,
        )

    def _news(self, gpu: OpenGpu) -> tuple[InputStatus, ...]:
        news = tuple(status for status in inputs_of(gpu) if self._said.get(status.input) != status)
        self._said.update({status.input: status for status in news})
        return news

    def _failures(self, failures: list[SourceError]) -> tuple[DeviceFailure, ...]:
        device = self._desk.gpu_uuid or str(self._spec.index)
        return tuple(DeviceFailure(device=device, reason=error.reason, detail=str(error)) for error in failures)


def _still_names(gpu: OpenGpu) -> bool:
    """Whether the handle still names this GPU, so that an invalid argument was about something else."""
    try:
        return gpu.device.uuid() == gpu.identity.gpu.uuid
    except SourceError:
        return False
