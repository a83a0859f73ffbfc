# SPDX-License-Identifier: Apache-2.0
"""Length-prefixed MessagePack: any split gives the same messages, any bytes give messages or a WireError."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import WireError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame, FrameTime, GpuEvent, LaneStatus, Reading, XidEvent
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.wire.framing import Decoder, decode, encode
from gpufeed.wire.messages import (
    MAX_MESSAGE_BYTES,
    Applied,
    Blob,
    BlobSaved,
    Desired,
    Hello,
    Log,
    Message,
    Release,
    Resume,
    Shutdown,
)

TIME = FrameTime(monotonic_ns=1, boottime_ns=2, wall_ns=3)


def reading(lane: str, *values: Any) -> Reading:
    samples = tuple(Extension(source="s", metric=f"m{at}", labels=(), value=value) for at, value in enumerate(values))
    return Reading(
        lane=LaneId(lane),
        group=GroupName("host.fast"),
        collector="extra",
        began_ns=4,
        ended_ns=5,
        period_ns=6,
        samples=samples,
    )


MESSAGES: list[Message] = [
    Hello(protocol=1, build_id="0.1.0+abc", pid=7),
    Desired(generation=2, config=ProbeConfig(runtime_dir="/run/gpufeed", periods_ns={GroupName("gpm.fast"): 5})),
    Applied(generation=2),
    Frame(
        sequence=1,
        time=TIME,
        lanes=(LaneStatus(lane=LaneId("a"), collector="host", busy_since_ns=None, late_after_ns=1, stuck_after_ns=2),),
        readings=(reading("a", 1.5),),
        events=(XidEvent(at_ns=1, xid=79, uuid=None), GpuEvent(at_ns=2, kind="mig_changed", uuid=None)),
    ),
    Log(level=20, logger="gpufeed.probe", text="two\nlines"),
    Release(until_ns=9),
    Resume(),
    Blob(name="state", data=b"\x00\xff"),
    Blob(name="state", data=None),
    BlobSaved(name="state"),
    Shutdown(reason="replace"),
]


@pytest.mark.parametrize(
    "message", [pytest.param(found, id=f"{at}-{type(found).__name__}") for at, found in enumerate(MESSAGES)]
)
def test_every_message_comes_back_as_it_was_sent(message: Message) -> None:
    assert list(Decoder().feed(encode(message))) == [message]


@given(st.lists(st.integers(0, 64), max_size=60))
def test_any_split_of_the_bytes_gives_the_same_messages(cuts: list[int]) -> None:
    stream = b"".join(map(encode, MESSAGES))
    decoder, found, at = Decoder(), list[Message](), 0
    for length in [*cuts, len(stream)]:
        found += decoder.feed(stream[at : at + length])
        at += length
    assert found == MESSAGES


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_bytes_give_messages_or_a_wire_error(pieces: list[bytes]) -> None:
    decoder = Decoder()
    try:
        for piece in pieces:
            list(decoder.feed(piece))
    except WireError:
        with pytest.raises(WireError):
            list(decoder.feed(b""))


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.integers(0, 12), st.integers(0, 6), st.booleans(), junk)
def test_a_frame_with_junk_anywhere_is_salvaged_or_a_wire_error(field: int, part: int, deep: bool, put: Any) -> None:
    rows = msgspec.msgpack.decode(encode(MESSAGES[3])[4:])
    if deep:
        rows[4][0][part] = put
    else:
        rows[field % len(rows)] = put
    with contextlib.suppress(WireError):
        decode(msgspec.msgpack.encode(rows))


def test_a_length_over_the_cap_is_refused_before_it_is_waited_for() -> None:
    with pytest.raises(WireError, match="over the cap"):
        list(Decoder().feed((MAX_MESSAGE_BYTES + 1).to_bytes(4, "big")))


def test_a_message_over_the_cap_is_not_sent() -> None:
    with pytest.raises(WireError, match="over the cap"):
        encode(Blob(name="state", data=bytes(MAX_MESSAGE_BYTES)))


def test_what_messagepack_cannot_say_is_a_wire_error() -> None:
    with pytest.raises(WireError, match="cannot be encoded"):
        encode(Frame(sequence=2**70, time=TIME))


def test_a_reading_of_wrong_type_costs_itself_and_is_named() -> None:
    frame = Frame(sequence=1, time=TIME, readings=(reading("good", 1.0), reading("bad", 1.0, "not a number")))
    (found,) = Decoder().feed(encode(frame))
    assert isinstance(found, Frame)
    assert [kept.lane for kept in found.readings] == ["good"]
    (failure,) = found.failures
    assert (failure.lane, failure.collector, failure.at_ns, failure.reason) == ("bad", "extra", 5, "broken")
    assert "float" in failure.detail


def test_a_frame_that_is_wrong_elsewhere_is_a_wire_error() -> None:
    body = msgspec.msgpack.encode(["frame", 1, "yesterday", [], [], [], [], [], []])
    with pytest.raises(WireError):
        decode(body)
