# SPDX-License-Identifier: Apache-2.0
"""Event sets: XIDs once each, nothing from before, a lost GPU at once."""

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.stepped import SteppedNode

S = 1_000_000_000
XID = 0x8
Enter = Callable[..., SteppedNode]


def listen(*gpus: int, types: int = XID) -> Any:
    pynvml.nvmlInit()
    event_set = pynvml.nvmlEventSetCreate()
    for gpu in gpus:
        pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(gpu), types, event_set)
    return event_set


def quiet(event_set: Any) -> None:
    for timeout_ms in (0, 1000):
        with pytest.raises(pynvml.NVMLError_Timeout):
            pynvml.nvmlEventSetWait_v2(event_set, timeout_ms)


def test_an_xid_is_told_once_to_those_who_listen(enter: Enter) -> None:
    node = enter(gpus=2)
    node.give_xid(1, 13)
    event_set = listen(0, 1)
    quiet(event_set)
    node.give_xid(1, 31)
    node.give_xid(1, 48)
    told = [pynvml.nvmlEventSetWait_v2(event_set, 0) for _ in range(2)]
    assert [(event.eventType, event.eventData) for event in told] == [(XID, 31), (XID, 48)]
    assert {pynvml.nvmlDeviceGetUUID(event.device) for event in told} == {
        pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(1))
    }
    quiet(event_set)


def test_who_listens_to_something_else_is_not_told(enter: Enter) -> None:
    node = enter(gpus=1)
    event_set = listen(0, types=0x100)
    node.give_xid(0, 48)
    quiet(event_set)


def test_a_lost_gpu_answers_at_once_each_time(enter: Enter) -> None:
    node = enter("gpu_lost", gpus=1)
    event_set = listen(0)
    node.advance(10 * S)
    for _ in range(3):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            pynvml.nvmlEventSetWait_v2(event_set, 5000)


def test_an_unsupported_bit_spoils_the_whole_registration(enter: Enter) -> None:
    node = enter(gpus=1, driver_version="555.42.06")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert not pynvml.nvmlDeviceGetSupportedEventTypes(handle) & 0x8000
    event_set = pynvml.nvmlEventSetCreate()
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceRegisterEvents(handle, XID | 0x8000, event_set)
    node.give_xid(0, 48)
    quiet(event_set)


def test_a_freed_set_is_gone(enter: Enter) -> None:
    enter(gpus=1)
    event_set = listen(0)
    pynvml.nvmlEventSetFree(event_set)
    for call in (pynvml.nvmlEventSetFree, lambda gone: pynvml.nvmlEventSetWait_v2(gone, 0)):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            call(event_set)
