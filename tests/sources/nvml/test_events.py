# SPDX-License-Identifier: Apache-2.0
"""Events of one GPU: told once, waited for without blocking, and never spun upon."""

import ctypes
from typing import Any

import pynvml
import pytest

from gpufeed.errors import Broken, DeviceLost, SourceError, Unsupported
from gpufeed.model.frame import Event, GpuEvent, XidEvent
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.events import EventReadings
from gpufeed.sources.nvml.identity import read_identity
from gpufeed.units import NS_PER_S
from nvml_bench import Bench

WAIT = "nvmlEventSetWait_v2"
CREATE = "nvmlEventSetCreate"
EVENT = ctypes.POINTER(pynvml.c_nvmlEventData_t)


def listen(bench: Bench, index: int = 0) -> EventReadings:
    device, _ = bench.device(index)
    return EventReadings(device, read_identity(device, index, lambda _bus_id: None), bench.node.clock)


def xids(events: tuple[Event, ...]) -> list[int]:
    return [event.xid for event in events if isinstance(event, XidEvent)]


def test_an_xid_is_told_once_with_the_gpu_it_is_of(bench: Bench) -> None:
    events = listen(bench, 1)
    board = bench.node.face.boards[1]
    bench.node.give_xid(1, 79)

    (event,) = events.read()

    assert event == XidEvent(
        at_ns=bench.node.clock.monotonic_ns(), xid=79, uuid=event.uuid, pci_bus_id=board.pci_bus_id, origin="nvml"
    )
    assert event.uuid == board.uuid
    assert events.read() == ()


def test_xids_of_another_gpu_are_not_heard(bench: Bench) -> None:
    events = listen(bench, 0)
    bench.node.give_xid(1, 79)

    assert events.read() == ()


def test_several_xids_come_in_order_in_one_read(bench: Bench) -> None:
    events = listen(bench)
    for xid in (31, 43, 95):
        bench.node.give_xid(0, xid)

    assert xids(events.read()) == [31, 43, 95]


def test_what_happened_before_listening_is_not_told(bench: Bench) -> None:
    bench.node.give_xid(0, 13)

    assert listen(bench).read() == ()


def test_only_events_the_device_has_are_registered(bench: Bench) -> None:
    asked: list[int] = []

    def register(_device: Any, types: int, _set: Any) -> int:
        asked.append(types)
        return 0

    bench.put("nvmlDeviceRegisterEvents", (ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_void_p), register)
    listen(bench)

    assert asked == [0x8 | 0x100 | 0x8000]  # of XID, MIG change, unavailable and recovery action, all but one


def test_a_device_whose_events_hold_no_xid_is_unsupported(bench: Bench) -> None:
    def supported(_device: Any, types: Any) -> int:
        types[0] = 0x4 | 0x10
        return 0

    bench.put("nvmlDeviceGetSupportedEventTypes", (ctypes.c_void_p, ctypes.POINTER(ctypes.c_ulonglong)), supported)

    with pytest.raises(Unsupported):
        listen(bench)


@pytest.mark.parametrize(
    ("event_type", "kind"), [(0x100, "mig_changed"), (0x4000, "unavailable"), (0x8000, "recovery_action_changed")]
)
def test_other_events_are_told_by_kind(bench: Bench, event_type: int, kind: str) -> None:
    events = listen(bench)
    left = [event_type, 0x1]  # the second is of a kind nobody asked for

    def wait(_set: Any, data: Any, _timeout_ms: int) -> int:
        if not left:
            return 10
        data.contents.eventType = left.pop(0)
        return 0

    bench.put(WAIT, (ctypes.c_void_p, EVENT, ctypes.c_uint), wait)

    (event,) = events.read()

    assert isinstance(event, GpuEvent)
    assert event.kind == kind


def test_the_wait_does_not_block(bench: Bench) -> None:
    waited: list[int] = []

    def wait(_set: Any, _data: Any, timeout_ms: int) -> int:
        waited.append(timeout_ms)
        return 10

    events = listen(bench)
    bench.put(WAIT, (ctypes.c_void_p, EVENT, ctypes.c_uint), wait)
    events.read()

    assert waited == [0]


def test_a_storm_is_read_over_several_reads(bench: Bench) -> None:
    events = listen(bench)
    waits = 0

    def wait(_set: Any, data: Any, _timeout_ms: int) -> int:
        nonlocal waits
        waits += 1
        data.contents.eventType, data.contents.eventData = 0x8, 31
        return 0

    bench.put(WAIT, (ctypes.c_void_p, EVENT, ctypes.c_uint), wait)

    assert len(events.read()) == waits == 64


@pytest.mark.parametrize(("code", "error"), [(15, DeviceLost), (999, Broken)])
def test_the_wait_of_a_lost_gpu_does_not_spin(bench: Bench, code: int, error: type[SourceError]) -> None:
    events = listen(bench)
    bench.node.set_faults(Fault(effect="error", function=WAIT, code=code))
    waits = bench.node.face.calls[WAIT]

    for _ in range(240):  # two minutes of fast reads
        with pytest.raises(error):
            events.read()
        bench.step()

    # 1, 2, 4, 8, 16, 30, 30, 30 seconds
    assert bench.node.face.calls[WAIT] - waits <= 9


def test_a_set_that_failed_is_made_anew_and_listens_again(bench: Bench) -> None:
    events = listen(bench)
    bench.node.set_faults(Fault(effect="error", function=WAIT, code=999))
    with pytest.raises(Broken):
        events.read()
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    assert events.read() == ()
    bench.node.give_xid(0, 94)

    assert xids(events.read()) == [94]
    assert bench.node.face.calls[CREATE] == 2
    assert bench.node.face.calls["nvmlEventSetFree"] == 1


def test_a_set_that_cannot_even_be_freed_is_left_behind(bench: Bench) -> None:
    events = listen(bench)
    bench.node.set_faults(
        Fault(effect="error", function=WAIT, code=999), Fault(effect="error", function="nvmlEventSetFree")
    )
    with pytest.raises(Broken, match=WAIT):
        events.read()
    bench.node.set_faults()
    bench.node.advance(NS_PER_S)

    assert events.read() == ()


def test_events_seen_before_an_error_are_not_lost_with_it(bench: Bench) -> None:
    events = listen(bench)
    codes = [0, 15]

    def wait(_set: Any, data: Any, _timeout_ms: int) -> int:
        data.contents.eventType, data.contents.eventData = 0x8, 79
        return codes.pop(0)

    bench.put(WAIT, (ctypes.c_void_p, EVENT, ctypes.c_uint), wait)

    assert xids(events.read()) == [79]
    with pytest.raises(DeviceLost):
        events.read()


def test_a_set_that_cannot_be_made_again_is_tried_ever_more_rarely(bench: Bench) -> None:
    events = listen(bench)
    bench.node.set_faults(Fault(effect="error", function=WAIT, code=999), Fault(effect="error", function=CREATE))
    for _ in range(60):
        with pytest.raises(Broken):
            events.read()
        bench.step()

    assert bench.node.face.calls[CREATE] <= 6


def test_closing_frees_the_set_once(bench: Bench) -> None:
    events = listen(bench)
    events.close()
    events.close()

    assert bench.node.face.calls["nvmlEventSetFree"] == 1
    assert not bench.node.face.events._sets
