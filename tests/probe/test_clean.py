# SPDX-License-Identifier: Apache-2.0
"""Text that leaves the probe is valid, printable and bounded, wherever in a frame it stands."""

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.model.frame import Frame, FrameTime, InputStatus, Reading
from gpufeed.model.ids import GroupName, LaneId, StorageKey
from gpufeed.model.storage import StorageInfo
from gpufeed.probe.clean import MAX_LOG, MAX_TEXT, clean, clean_log, clean_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=2 * MAX_TEXT)
TIME = FrameTime(monotonic_ns=1, boottime_ns=1, wall_ns=1)


@given(ANY_TEXT)
def test_any_text_becomes_valid_printable_and_bounded(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert len(cleaned) <= MAX_TEXT
    assert cleaned.isprintable()
    assert clean_text(cleaned) == cleaned


def test_printable_text_of_any_language_stays() -> None:
    assert clean_text("Größe 数据 /mnt/データ") == "Größe 数据 /mnt/データ"


def test_lines_of_a_log_text_stay_lines() -> None:
    assert clean_log("one\n\ttwo\x00") == "one\n\N{REPLACEMENT CHARACTER}two\N{REPLACEMENT CHARACTER}"
    assert len(clean_log("x" * 10 * MAX_LOG)) == MAX_LOG


def frame_with(target: str, option: str) -> Frame:
    info = StorageInfo(storage=StorageKey("nfs", target), options={option: "3"})
    reading = Reading(
        lane=LaneId("nfs"),
        group=GroupName("nfs.fast"),
        collector="nfs",
        began_ns=0,
        ended_ns=1,
        period_ns=1,
        samples=(info,),
    )
    return Frame(sequence=1, time=TIME, readings=(reading,))


def test_a_clean_frame_is_not_copied() -> None:
    frame = frame_with("/data", "vers")
    assert clean(frame) is frame


def test_names_deep_inside_samples_are_cleaned() -> None:
    cleaned = clean(frame_with("/da\nta\udcff", "ve\rs"))
    info = cleaned.readings[0].samples[0]
    assert isinstance(info, StorageInfo)
    assert info.storage.target == "/da\N{REPLACEMENT CHARACTER}ta\N{REPLACEMENT CHARACTER}"
    assert info.options == {"ve\N{REPLACEMENT CHARACTER}s": "3"}


def test_reasons_and_fixes_are_cleaned() -> None:
    status = InputStatus(input="nfs", scope="a\tb", state="denied", reason="x" * 5000, fix="\x1b[31m")
    cleaned = clean(Frame(sequence=1, time=TIME, inputs=(status,))).inputs[0]
    assert cleaned.scope == "a\N{REPLACEMENT CHARACTER}b"
    assert len(cleaned.reason) == MAX_TEXT
    assert cleaned.fix == "\N{REPLACEMENT CHARACTER}[31m"
