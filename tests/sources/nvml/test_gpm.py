# SPDX-License-Identifier: Apache-2.0
"""GPM: pairs of samples, their spacing, and metrics that cannot be."""

import pytest

from gpufeed.errors import Broken, DeviceLost, SourceError, Unsupported
from gpufeed.model.gpu import GpmInterval
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.gpm import GpmReadings
from gpufeed.units import NS_PER_MS, NS_PER_S
from nvml_bench import Bench

METRICS = "nvmlGpmMetricsGet"
SAMPLE = "nvmlGpmSampleGet"
GPU = GpuKey(GpuUuid("GPU-x"))


@pytest.fixture
def gpm(bench: Bench) -> GpmReadings:
    device, _ = bench.device()
    return GpmReadings(device, bench.node.clock)


def integrals(bench: Bench) -> dict[str, float]:
    return {name: bench.true(name) for name in INTEGRALS}


def measured(bench: Bench, gpm: GpmReadings, after_ns: int = 500 * NS_PER_MS) -> GpmInterval:
    bench.node.advance(after_ns)
    interval = gpm.read(GPU)
    assert interval is not None
    return interval


def test_an_interval_is_exact_over_its_two_samples(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    began_ns, before = bench.node.clock.monotonic_ns(), integrals(bench)

    interval = measured(bench, gpm, 730 * NS_PER_MS)

    after = integrals(bench)
    mean = {name: (after[name] - before[name]) / 0.73 for name in before}
    assert (interval.began_ns, interval.ended_ns) == (began_ns, began_ns + 730 * NS_PER_MS)
    assert interval.graphics_ratio == pytest.approx(mean["graphics_s"])
    assert interval.sm_ratio == pytest.approx(mean["sm_s"])
    assert interval.occupancy_ratio == pytest.approx(mean["occupancy_s"])
    assert interval.tensor_ratio == pytest.approx(mean["tensor_s"])
    assert interval.dram_ratio == pytest.approx(mean["dram_s"])
    assert interval.pcie_transmit_bytes_per_s == pytest.approx(mean["pcie_transmit_bytes"])
    assert interval.pcie_receive_bytes_per_s == pytest.approx(mean["pcie_receive_bytes"])
    assert interval.pipes is not None
    assert interval.pipes["hmma"] == pytest.approx(mean["tensor_s"])
    assert interval.pipes["fp64"] == 0.0


def test_nvlink_metrics_are_not_swapped_where_receive_stands_first(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="answers", function=METRICS, field=60, value=3.0))  # 60 is receive

    interval = measured(bench, gpm)

    assert interval.nvlink_receive_bytes_per_s == 3 * 1024 * 1024
    assert interval.nvlink_transmit_bytes_per_s != interval.nvlink_receive_bytes_per_s


def test_the_first_read_only_seeds(bench: Bench, gpm: GpmReadings) -> None:
    assert gpm.read(GPU) is None
    assert bench.node.face.calls[METRICS] == 0


def test_samples_closer_than_the_driver_allows_are_never_taken(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.advance(100 * NS_PER_MS)

    assert gpm.read(GPU) is None
    assert bench.node.face.calls[SAMPLE] == 1
    assert measured(bench, gpm, 400 * NS_PER_MS).ended_ns - measured(bench, gpm).began_ns == 0


def test_a_read_that_came_too_early_loses_no_time(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    began_ns = bench.node.clock.monotonic_ns()
    bench.node.advance(60 * NS_PER_MS)
    gpm.read(GPU)

    assert measured(bench, gpm, 60 * NS_PER_MS).began_ns == began_ns


def test_intervals_follow_one_another_without_gap_or_overlap(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)

    intervals = [measured(bench, gpm, step * NS_PER_MS) for step in (500, 120, 2000, 999)]

    assert [interval.began_ns for interval in intervals[1:]] == [interval.ended_ns for interval in intervals[:-1]]


def test_after_a_long_gap_a_new_pair_begins(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.advance(11 * NS_PER_S)

    assert gpm.read(GPU) is None
    resumed_ns = bench.node.clock.monotonic_ns()
    assert measured(bench, gpm).began_ns == resumed_ns


@pytest.mark.parametrize("absurd", [-1.0, 250.0, 1e300])
def test_a_metric_that_cannot_be_is_left_out_alone(bench: Bench, gpm: GpmReadings, absurd: float) -> None:
    gpm.read(GPU)
    bench.node.set_faults(
        Fault(effect="answers", function=METRICS, field=2, value=absurd),
        Fault(effect="answers", function=METRICS, field=7, value=absurd),
    )

    interval = measured(bench, gpm)

    assert interval.sm_ratio is None
    assert "hmma" not in (interval.pipes or {})
    assert interval.tensor_ratio is not None


def test_a_metric_the_driver_does_not_know_fails_alone_and_is_not_asked_again(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="not_supported", function=METRICS, field=5))
    first = measured(bench, gpm)
    bench.node.set_faults()

    second = measured(bench, gpm)

    assert (first.tensor_ratio, second.tensor_ratio) == (None, None)
    assert first.sm_ratio is not None
    assert second.sm_ratio is not None


def test_a_metric_that_fails_for_a_moment_comes_back(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="error", function=METRICS, field=5, code=999))
    first = measured(bench, gpm)
    bench.node.set_faults()

    assert first.tensor_ratio is None
    assert measured(bench, gpm).tensor_ratio is not None


def test_a_failed_measurement_does_not_keep_the_old_sample(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="error", function=METRICS, code=999))
    bench.step()
    with pytest.raises(Broken):
        gpm.read(GPU)
    bench.node.set_faults()
    failed_ns = bench.node.clock.monotonic_ns()

    assert measured(bench, gpm).began_ns == failed_ns


def test_a_metric_that_tells_of_the_device_is_believed(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="error", function=METRICS, field=1, code=15))
    bench.step()

    with pytest.raises(DeviceLost):
        gpm.read(GPU)


def test_a_driver_that_knows_no_metric_at_all_is_unsupported(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    bench.node.set_faults(*(Fault(effect="not_supported", function=METRICS, field=metric) for metric in range(62)))
    measured(bench, gpm)

    with pytest.raises(Unsupported):
        gpm.read(GPU)


def test_two_samples_serve_for_ever_and_are_given_back(bench: Bench, gpm: GpmReadings) -> None:
    gpm.read(GPU)
    for _ in range(5):
        measured(bench, gpm)
    gpm.close()
    gpm.close()

    assert bench.node.face.calls["nvmlGpmSampleAlloc"] == 2
    assert bench.node.face.calls["nvmlGpmSampleFree"] == 2
    assert not bench.node.face.gpm._taken


def test_a_device_without_gpm_refuses_its_samples(a100: Bench) -> None:
    device, _ = a100.device()

    with pytest.raises(SourceError):
        GpmReadings(device, a100.node.clock).read(GPU)


def test_a_codec_is_the_mean_of_its_engines_and_one_the_board_lacks_is_absent(bench: Bench, gpm: GpmReadings) -> None:
    bench.node.set_counts(0, decoder_percent=42)
    gpm.read(GPU)
    bench.node.set_faults(Fault(effect="answers", function=METRICS, field=36, value=0.0))  # one of seven decoders

    pipes = measured(bench, gpm).pipes or {}

    assert pipes["nvdec"] == pytest.approx(6 * 0.42 / 7)
    assert (pipes["nvjpg"], pipes["nvofa"]) == (0, 0)
    assert "nvenc" not in pipes
