# SPDX-License-Identifier: Apache-2.0
"""The event set of one GPU, waited for by that GPU's own lane without blocking.

A wait on a lost GPU returns with an error at once, each time: a loop around it has burnt a core elsewhere. Here an
error ends the set, and the next one is made after a pause.
"""

from typing import Any, Final

from gpufeed.clock import Clock
from gpufeed.errors import SourceError, Unsupported
from gpufeed.model.frame import Event, GpuEvent, XidEvent
from gpufeed.model.gpu import GpuIdentity
from gpufeed.sources.nvml.backoff import Backoff
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.faults import NoEvent
from gpufeed.units import NS_PER_S

MIG_CHANGED: Final = "mig_changed"

_XID: Final = 0x8
_KINDS: Final = {0x100: MIG_CHANGED, 0x4000: "unavailable", 0x8000: "recovery_action_changed"}
"""nvmlEventType bits by kind of GpuEvent."""

_WANTED: Final = _XID | 0x100 | 0x4000 | 0x8000
_MAX_EVENTS: Final = 64
"""Of one read: a storm is read over several, and the GPU's other readings go on."""

_PAUSE_NS: Final = NS_PER_S
_LONGEST_PAUSE_NS: Final = 30 * NS_PER_S


class EventReadings:
    """Events of one GPU, from the moment this is made."""

    def __init__(self, device: Device, identity: GpuIdentity, clock: Clock) -> None:
        self._device = device
        self._identity = identity
        self._clock = clock
        self._backoff = Backoff(clock, _PAUSE_NS, _LONGEST_PAUSE_NS)
        self._error: SourceError | None = None
        self._set: Any = None
        self._mask = device.supported_events() & _WANTED
        if not self._mask & _XID:
            raise Unsupported("nvmlDeviceGetSupportedEventTypes: XIDs are not among the events of this device")
        self._recover()

    def read(self) -> tuple[Event, ...]:
        """What happened since the last read. Raises SourceError; then does nothing until the pause is over."""
        if self._set is None:
            self._recover()
        events: list[Event] = []
        try:
            self._drain(events)
        except SourceError as error:
            self._fail(error)
            if not events:
                raise
            return tuple(events)  # these did happen; the error is met again when the pause is over
        self._backoff.succeeded()
        return tuple(events)

    def close(self) -> None:
        """Free the set. Raises SourceError."""
        event_set, self._set = self._set, None
        if event_set is not None:
            self._device.nvml.call("nvmlEventSetFree", event_set)

    def _recover(self) -> None:
        if self._error is not None and not self._backoff.is_due:
            raise self._error.with_traceback(None)
        try:
            self._register()
        except SourceError as error:
            self._fail(error)
            raise

    def _register(self) -> None:
        nvml = self._device.nvml
        self._set = nvml.call("nvmlEventSetCreate")
        # one unsupported bit and none is registered: hence only those the device says it has
        nvml.call("nvmlDeviceRegisterEvents", self._device.handle, self._mask, self._set)

    def _drain(self, events: list[Event]) -> None:
        for _ in range(_MAX_EVENTS):
            try:
                data = self._device.nvml.call("nvmlEventSetWait_v2", self._set, 0)
            except NoEvent:
                return
            event = self._event(int(data.eventType), int(data.eventData))
            if event is not None:
                events.append(event)

    def _event(self, event_type: int, event_data: int) -> Event | None:
        # the handle inside the event is not asked who it is: of a lost GPU that fails, and this set has one GPU
        uuid = self._identity.gpu.uuid
        at_ns = self._clock.monotonic_ns()
        if event_type & _XID:
            return XidEvent(at_ns=at_ns, xid=event_data, uuid=uuid, pci_bus_id=self._identity.pci_bus_id)
        kind = _KINDS.get(event_type)
        return None if kind is None else GpuEvent(at_ns=at_ns, kind=kind, uuid=uuid, detail=str(event_data))

    def _fail(self, error: SourceError) -> None:
        self._error = error
        self._backoff.failed()
        try:
            self.close()
        except SourceError:
            return  # it belongs to a GPU that is gone: nothing of it is left to free
