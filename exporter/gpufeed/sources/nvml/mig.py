# SPDX-License-Identifier: Apache-2.0
"""The MIG devices of one board: which there are, and what each of them can tell by itself.

Places for them have holes. A handle dies with its instance and may come to stand for another, so each is asked who it
is before it is believed. Power, temperature, clocks and links are the board's alone, and memory and engines are a GPU
instance's: compute instances within it share them, and have only their processes to themselves.
"""

from typing import Final, NamedTuple

from gpufeed.clock import Clock
from gpufeed.errors import Absent, DeviceLost, DeviceResetRequired, SourceError, Unsupported
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuIdentity, GpuProcesses, GpuSlow, MigInstance, MigInstances
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml.device import Aperture, Device, Memory
from gpufeed.sources.nvml.faults import InvalidArgument
from gpufeed.sources.nvml.getter import Getter
from gpufeed.sources.nvml.gpm import GpmReadings
from gpufeed.sources.nvml.processes import ProcessLists

_MAX_PLACES: Final = 64
"""Seven of a board so far; a number beyond this is no count."""

Sliced = GpuFast | GpuSlow | GpuProcesses


class _Slice(NamedTuple):
    """One MIG device, and what is asked of it."""

    said: MigInstance
    device: Device
    memory: Getter[Memory]
    aperture: Getter[Aperture]
    processes: ProcessLists


class MigReadings:
    """How one board is split, found out at its first read and again when anything says that it has changed."""

    def __init__(self, device: Device, identity: GpuIdentity, clock: Clock) -> None:
        self._device = device
        self._board = identity.gpu
        self._has_gpm = identity.has_gpm
        self._clock = clock
        self._slices: tuple[_Slice, ...] = ()
        self._gpm: dict[int, GpmReadings] = {}
        self._is_stale = True
        self._is_on: bool | None = None  # not known yet
        self.has_turned = False  # MIG was switched on or off since: what the board can give has changed with it

    @property
    def is_split(self) -> bool:
        """Whether there are instances: then lists of the whole board are not to be had, or count twice."""
        return bool(self._slices)

    def look(self, failures: list[SourceError], *, is_on: bool | None) -> MigInstances:
        """How the board is split now, by the mode just read (None: it was not).

        Raises DeviceLost, DeviceResetRequired and HandleGone.
        """
        self._find(failures, is_on=bool(self._is_on) if is_on is None else is_on)
        return MigInstances(gpu=self._board, instances=tuple(each.said for each in self._slices))

    def read(self, failures: list[SourceError]) -> tuple[Sliced, ...]:
        """Memory of each GPU instance, and the processes of each compute instance; nothing where MIG is off."""
        if self._is_stale:
            self._find(failures, is_on=self._mode())
        samples: list[Sliced] = []
        told: set[int] = set()
        for each in self._slices:
            try:
                samples += self._of(each, failures, is_first=each.said.gi not in told)
            except (DeviceLost, DeviceResetRequired):
                raise
            except SourceError:
                self._is_stale = True  # it is no more, and is missed by nobody
                continue
            told.add(each.said.gi)
        return tuple(samples)

    def read_gpm(self) -> tuple[GpmInterval, ...]:
        """What the engines of each GPU instance did. Raises DeviceLost, DeviceResetRequired."""
        found: list[GpmInterval] = []
        for gi, gpm in tuple(self._gpm.items()):
            try:
                interval = gpm.read(GpuKey(self._board.uuid, gi))
            except (DeviceLost, DeviceResetRequired):
                raise
            except SourceError as error:
                self._is_stale |= not isinstance(error, Unsupported)
                _close(self._gpm.pop(gi))
                continue
            if interval is not None:
                found.append(interval)
        return tuple(found)

    def close(self) -> None:
        """Free what GPM holds, as far as NVML lets it."""
        gpms, self._gpm = self._gpm, {}
        for gpm in gpms.values():
            _close(gpm)

    def _mode(self) -> bool:
        try:
            return self._device.mig_enabled()
        except (Unsupported, InvalidArgument):
            return False

    def _find(self, failures: list[SourceError], *, is_on: bool) -> None:
        self.has_turned |= self._is_on is not None and is_on != self._is_on
        self._is_on = is_on
        found = self._places(failures) if is_on else ()
        was_stale, self._is_stale = self._is_stale, False
        if not was_stale and [each.said for each in found] == [each.said for each in self._slices]:
            return
        self._slices = found
        self.close()  # an instance under the same number may be another one: its samples do not fit the old
        if self._has_gpm:
            instances = dict.fromkeys(each.said.gi for each in found)
            self._gpm = {gi: GpmReadings(self._device, self._clock, gi) for gi in instances}

    def _places(self, failures: list[SourceError]) -> tuple[_Slice, ...]:
        found: list[_Slice] = []
        for place in range(min(self._device.mig_devices_max(), _MAX_PLACES)):
            try:
                device = self._device.mig_device(place)
                found.append(_slice(device))
            except (DeviceLost, DeviceResetRequired):
                raise
            except (Absent, InvalidArgument):
                continue  # a hole, or an instance that ended between two calls
            except SourceError as error:
                failures.append(error)
        return tuple(found)

    def _of(self, each: _Slice, failures: list[SourceError], *, is_first: bool) -> list[Sliced]:
        if each.device.mig_ids() != (each.said.gi, each.said.ci):
            raise Absent("the handle stands for another instance")
        uuid, gi = self._board.uuid, each.said.gi
        samples: list[Sliced] = []
        memory = each.memory.read(failures) if is_first else None
        if memory is not None:
            samples.append(
                GpuFast(
                    gpu=GpuKey(uuid, gi),
                    memory_total_bytes=memory.total,
                    memory_used_bytes=memory.used,
                    memory_reserved_bytes=memory.reserved,
                    memory_free_bytes=memory.free,
                )
            )
        aperture = each.aperture.read(failures) if is_first else None
        if aperture is not None:
            samples.append(
                GpuSlow(gpu=GpuKey(uuid, gi), bar1_total_bytes=aperture.total, bar1_used_bytes=aperture.used)
            )
        processes = each.processes.read(GpuKey(uuid, gi, each.said.ci), failures)
        return samples if processes is None else [*samples, processes]


def _slice(device: Device) -> _Slice:
    gi, ci = device.mig_ids()
    return _Slice(
        said=MigInstance(gi, ci, device.uuid()),
        device=device,
        memory=Getter(device.memory, device.memory_v1),
        aperture=Getter(device.aperture),
        processes=ProcessLists(device),
    )


def _close(gpm: GpmReadings) -> None:
    try:
        gpm.close()
    except SourceError:
        return  # its instance is gone: nothing of it is left to free
