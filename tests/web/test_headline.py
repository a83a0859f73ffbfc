# SPDX-License-Identifier: Apache-2.0
"""The one sentence: what matters most comes first, and nothing is called well that is not known to be."""

import pytest

from gpufeed.model.state import CAUSES
from gpufeed.web import words
from gpufeed.web.headline import FAULTS, STARVED, THROTTLED, headline
from gpufeed.web.shape import GpuView, HealthView, SlotView, StateSeconds
from gpufeed.web.timeline import COLUMNS, span_s, timeline


def gpu(index: int, *recent: tuple[str, str, float]) -> GpuView:
    now = max(recent, key=lambda one: one[2], default=("unknown", "no_data", 0.0))
    return GpuView(
        index=index, uuid=f"GPU-{index}", name=None, pci_bus_id=None, condition="ok", detail="", state=now[0],
        cause=now[1], confidence=None, evidence=(), tracked_seconds=0.0, states=(), utilization=None,
        memory_used_bytes=None, memory_total_bytes=None, power_watts=None, temperature_celsius=None, processes=None,
        recent=tuple(StateSeconds(*one) for one in recent),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("recent", "tone", "text"),
    [
        ((("busy", "tensor", 90.0), ("starved", "storage", 9.0)), "good", "All 2 GPUs are fed"),
        ((("busy", "tensor", 80.0), ("starved", "storage", 20.0)), "warn", "GPUs wait for storage 20 % of the time"),
        ((("throttled", "thermal", 60.0), ("starved", "peer", 40.0)), "warn",
         "GPUs are slowed down by heat 60 % of the time"),
        ((("unknown", "stale", 40.0), ("busy", "other", 60.0)), "blind",
         "What the GPUs do cannot be told 40 % of the time"),
        ((("idle_free", "", 100.0),), "idle", "Nobody uses the GPUs"),
        ((("idle_held", "", 100.0),), "idle", "A job holds the GPUs and does nothing"),
        ((), "blind", "Nothing is decided yet"),
    ],
)  # fmt: skip
def test_waiting_and_well_being(recent: tuple[tuple[str, str, float], ...], tone: str, text: str) -> None:
    told = headline([gpu(0, *recent), gpu(1, *recent)], [], is_probe_up=True)
    assert (told.tone, told.text) == (tone, text)


def test_a_faulty_gpu_comes_before_all_waiting_and_brings_what_to_do() -> None:
    gpus = [gpu(0, ("starved", "storage", 100.0)), gpu(3, ("fault", "lost", 100.0))]
    check = HealthView("GPU 3", "lost", "failed", "", "node_reboot")
    told = headline(gpus, [check], is_probe_up=True)
    assert (told.tone, told.text) == ("bad", "GPU 3 fell off the bus")
    assert told.detail == "The other GPU: starved 100 %."
    assert told.advice == "Recommended: reboot the node."


def test_several_faulty_gpus_are_counted() -> None:
    gpus = [gpu(number, ("fault", "hung", 100.0)) for number in range(3)]
    assert headline(gpus, [], is_probe_up=True).text == "3 of 3 GPUs are unusable"


def test_without_readings_nothing_is_well() -> None:
    assert headline([gpu(0, ("busy", "tensor", 1.0))], [], is_probe_up=False).tone == "bad"
    assert headline([], [], is_probe_up=True).tone == "blind"


def test_every_cause_has_words() -> None:
    assert (set(STARVED), set(THROTTLED), set(FAULTS)) == tuple(
        set(CAUSES[state]) for state in ("starved", "throttled", "fault")
    )


def test_the_span_grows_with_the_past() -> None:
    assert [span_s(10_000 - old, 10_000) for old in (0, 300, 301, 900, 901, 99_999)] == [300, 300, 900, 900, 1800, 1800]


def test_a_timeline_fills_whole_columns_and_merges_what_is_alike() -> None:
    slots = [
        SlotView(1000.0 + 5 * number, (StateSeconds("busy", "tensor", 2.5), StateSeconds("starved", "storage", 2.5)))
        for number in range(60)
    ]
    picture = timeline(slots, 1300.0, 300)
    assert f'd="M0 20h{COLUMNS}v20h-{COLUMNS}z"' in picture  # busy: the lower half
    assert f'd="M0 0h{COLUMNS}v20h-{COLUMNS}z"' in picture
    assert "<path" not in timeline([], 1300.0, 300)


def test_numbers_read_well() -> None:
    for shown, expected in (
        (words.percent(None), "–"), (words.percent(0.0), "0 %"), (words.percent(0.001), "<1 %"),
        (words.percent(1.0), "100 %"), (words.flow(0.0), "0 B/s"), (words.flow(2.44e9), "2.4 GB/s"),
        (words.flow(999.0), "999 B/s"), (words.flow(450e9), "450 GB/s"), (words.flow(None), "–"),
        (words.latency(0.0008), "0.8 ms"), (words.latency(0.016), "16 ms"), (words.latency(2.0), "2.0 s"),
        (words.latency(None), "–"), (words.age(None), "never"), (words.age(3.2), "3 s"), (words.age(240.0), "4 min"),
        (words.age(7200.0), "2 h"), (words.memory(None, 1), "–"), (words.memory(2**30, 2**36), "1 of 64 GiB"),
        (words.label("starved", "host_cpu"), "starved: host cpu"), (words.label("idle_free", ""), "idle free"),
        (words.evidence(0.5, "ratio"), "50 %"), (words.evidence(0.02, "seconds"), "20 ms"),
        (words.evidence(1e9, "bytes_per_second"), "1.0 GB/s"), (words.evidence(3.0, ""), "3"),
    ):  # fmt: skip
        assert shown == expected
