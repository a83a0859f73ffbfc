# SPDX-License-Identifier: Apache-2.0
"""What is written means, to a parser, exactly what prometheus_client would have written of the same families."""

import gzip
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric

from exposition import nodes
from exposition.oracle import Oracle, cleaned, parse_openmetrics, parse_text, write_openmetrics, write_text
from gpufeed.catalogue import METRICS
from gpufeed.catalogue.gpu import GPU_INFO, GPU_MEMORY_USED_BYTES, GPU_POWER_WATTS, GPU_UP
from gpufeed.catalogue.self import LANE_STUCK_SECONDS, SCRAPE_DURATION_SECONDS
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.family import Family, Histogram
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.page import Exposition
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts

SERVER = ServerFacts(version="1.2.3", config_hash="abc", alerts={("GpuLost", "page", "firing"): 1})


def meaning(parsed: Iterable[Metric]) -> list[tuple[Any, ...]]:
    """Families, types, helps and samples; NaN made comparable; our own two families about the page left out."""
    return [
        (
            metric.name,
            metric.type,
            metric.documentation,
            [(one.name, one.labels, repr(float(one.value))) for one in metric.samples],
        )
        for metric in parsed
        if metric.name not in {"gpufeed_series", "gpufeed_series_shed"}
    ]


def encode(found: Iterable[Family], drop: tuple[str, ...] = ()) -> Exposition:
    return Encoder(profile="full", max_series=100_000, drop=drop).encode(found)


def assert_means_the_same(found: list[Family]) -> None:
    exposition = encode(found)
    text = exposition.page(Format.TEXT).decode()
    assert meaning(parse_text(text)) == meaning(parse_text(write_text(Oracle(found)).decode()))
    strict = exposition.page(Format.OPENMETRICS).decode()
    theirs = write_openmetrics(Oracle(found)).decode()
    assert meaning(parse_openmetrics(strict)) == meaning(parse_openmetrics(theirs))


def samples(page: bytes) -> list[str]:
    return [line for line in page.decode().splitlines() if not line.startswith("#")]


def test_a_whole_node_means_the_same_as_what_prometheus_client_writes() -> None:
    found = [
        Family(family.definition, family.rows + family.full_rows, histograms=family.histograms)
        for family in families(nodes.node(gpus=2, ports=2, mounts=2, disks=2), SERVER)
    ]
    assert len(found) > 100
    assert_means_the_same(found)


hostile = st.text(st.characters(), max_size=40)
values = st.floats() | st.integers(min_value=-(2**63), max_value=2**64)


@given(st.dictionaries(st.tuples(hostile, hostile).map(lambda pair: tuple(map(cleaned, pair))), values, max_size=5))
def test_any_text_and_any_number_mean_the_same(rows: dict[tuple[str, ...], float]) -> None:
    assert_means_the_same([Family(GPU_POWER_WATTS, list(rows.items()))] if rows else [])


@given(hostile, values)
def test_a_label_comes_back_as_it_was_but_for_what_no_line_can_hold(label: str, value: float) -> None:
    page = encode([Family(GPU_POWER_WATTS, [((label, "GPU-0"), value)])]).page(Format.TEXT)
    [line] = [line for line in samples(page) if not line.startswith("gpufeed_series")]
    match = re.fullmatch(r'gpufeed_gpu_power_watts\{gpu="((?:[^"\\]|\\.)*)",uuid="GPU-0"\} (\S+)', line)
    assert match
    assert re.sub(r"\\(.)", r"\1", match[1]) == cleaned(label)
    assert float(match[2]) == float(value) or math.isnan(value)


@given(st.lists(st.tuples(st.tuples(hostile, hostile), values), max_size=6))
def test_no_series_is_written_twice(rows: list[tuple[tuple[str, ...], float]]) -> None:
    page = encode([Family(GPU_POWER_WATTS, [*rows, *rows]), Family(GPU_POWER_WATTS, [*rows])]).page(Format.TEXT)
    names = Counter(line.rpartition(" ")[0] for line in samples(page))
    assert set(names.values()) <= {1}
    assert page.count(b"# TYPE gpufeed_gpu_power_watts gauge\n") <= 1


def test_of_a_series_that_comes_twice_the_first_counts() -> None:
    page = encode([Family(GPU_UP, [(("0", "GPU-0"), 1), (("0", "GPU-0"), 0)])]).page(Format.TEXT)
    assert b'gpufeed_gpu_up{gpu="0",uuid="GPU-0"} 1\n' in page
    assert b'gpufeed_gpu_up{gpu="0",uuid="GPU-0"} 0\n' not in page


def test_numbers_are_spelled_as_go_spells_them() -> None:
    spelled = {math.nan: "NaN", math.inf: "+Inf", -math.inf: "-Inf", 2**64 - 1: "18446744073709551615", True: "1"}
    for value, text in spelled.items():
        page = encode([Family(GPU_UP, [(("0", "GPU-0"), value)])]).page(Format.TEXT)
        assert f'gpufeed_gpu_up{{gpu="0",uuid="GPU-0"}} {text}\n'.encode() in page


def test_long_labels_are_cut_and_stay_apart() -> None:
    ends = ("a", "b")
    page = encode([Family(GPU_UP, [(("0", "x" * 300 + end), 1) for end in ends])]).page(Format.TEXT).decode()
    cut = re.findall(r'uuid="([^"]+)"', page)
    assert [len(value) for value in cut] == [256, 256]
    assert len(set(cut)) == 2


def test_a_board_has_no_instance_labels_and_an_instance_has() -> None:
    rows = [(("0", "GPU-0", "", ""), 5), (("1", "GPU-1", "2", "0"), 6)]
    assert samples(encode([Family(GPU_MEMORY_USED_BYTES, [*rows])]).page(Format.TEXT))[:2] == [
        'gpufeed_gpu_memory_used_bytes{gpu="0",uuid="GPU-0"} 5',
        'gpufeed_gpu_memory_used_bytes{gpu="1",uuid="GPU-1",gpu_instance="2",compute_instance="0"} 6',
    ]


def test_other_labels_stand_also_when_empty() -> None:
    page = encode([Family(LANE_STUCK_SECONDS, [(("nfs", "", ""), 0.0)])]).page(Format.TEXT)
    assert b'gpufeed_lane_stuck_seconds{lane="nfs",gpu="",uuid=""} 0.0\n' in page


def test_an_info_series_is_an_info_only_where_the_format_knows_them() -> None:
    exposition = encode([Family(GPU_INFO, [(("0", "GPU-0", *([""] * 10)), 1)])])
    assert b"# TYPE gpufeed_gpu_info gauge\n" in exposition.page(Format.TEXT)
    assert b"# TYPE gpufeed_gpu info\n" in exposition.page(Format.OPENMETRICS)
    assert exposition.page(Format.OPENMETRICS).endswith(b"# EOF\n")


def test_a_histogram_counts_up_to_all_of_its_observations() -> None:
    bounds = SCRAPE_DURATION_SECONDS.buckets
    assert bounds == (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
    histogram = Histogram.empty(bounds)
    for took_s in (0.0005, 0.001, 0.01, 0.02, 9.0):
        histogram = histogram.observe(took_s, bounds)
    found = [Family(SCRAPE_DURATION_SECONDS, histograms=[((), histogram)])]
    assert samples(encode(found).page(Format.TEXT))[:9] == [
        'gpufeed_scrape_duration_seconds_bucket{le="0.001"} 2',
        'gpufeed_scrape_duration_seconds_bucket{le="0.005"} 2',
        'gpufeed_scrape_duration_seconds_bucket{le="0.025"} 4',
        'gpufeed_scrape_duration_seconds_bucket{le="0.1"} 4',
        'gpufeed_scrape_duration_seconds_bucket{le="0.5"} 4',
        'gpufeed_scrape_duration_seconds_bucket{le="2.5"} 4',
        'gpufeed_scrape_duration_seconds_bucket{le="+Inf"} 5',
        "gpufeed_scrape_duration_seconds_count 5",
        "gpufeed_scrape_duration_seconds_sum 9.0315",
    ]
    assert_means_the_same(found)


def test_help_and_type_stand_once_before_their_series_in_both_formats() -> None:
    exposition = encode(families(nodes.node(gpus=2, ports=1, mounts=2, disks=2), SERVER))
    for form in Format:
        lines = exposition.page(form).decode().splitlines()
        heads = Counter(tuple(line.split(" ")[1:3]) for line in lines if line.startswith("# ") and line != "# EOF")
        assert set(heads.values()) == {1}
        assert {word for word, _ in heads} == {"HELP", "TYPE"}


def counting(found: list[Family]) -> tuple[Callable[[], list[Family]], list[int]]:
    calls: list[int] = []

    def ask() -> list[Family]:
        calls.append(1)
        return found

    return ask, calls


def test_scrapes_of_one_second_share_their_bytes() -> None:
    ask, calls = counting([Family(GPU_UP, [(("0", "GPU-0"), 1)])])
    encoder = Encoder(profile="full")
    first = encoder.exposition(ask, 5_000_000_000)
    second = encoder.exposition(ask, 5_999_999_999)
    assert second is first
    assert second.page(Format.TEXT) is first.page(Format.TEXT)
    assert second.page(Format.TEXT, compress=True) is first.page(Format.TEXT, compress=True)
    assert len(calls) == 1
    assert encoder.exposition(ask, 6_000_000_000) is not first
    assert len(calls) == 2


def test_a_new_encoding_has_the_new_values_and_none_of_the_vanished_series() -> None:
    encoder = Encoder(profile="full")
    encoder.encode([Family(GPU_UP, [(("0", "GPU-0"), 1), (("1", "GPU-1"), 1)])])
    page = encoder.encode([Family(GPU_UP, [(("1", "GPU-1"), 0)])]).page(Format.TEXT)
    assert samples(page)[0] == 'gpufeed_gpu_up{gpu="1",uuid="GPU-1"} 0'
    assert b"GPU-0" not in page


def test_prefixes_of_series_that_went_away_are_forgotten() -> None:
    encoder = Encoder(profile="full")
    for place in range(50):
        encoder.encode([Family(GPU_UP, [((str(place), f"GPU-{place}"), 1)])])
    assert sum(len(kept) for kept in encoder._prefixes.values()) == 2  # this one and gpufeed_series


def test_gzip_holds_the_same_page() -> None:
    exposition = encode(families(nodes.node(gpus=1), SERVER))
    packed = exposition.page(Format.TEXT, compress=True)
    assert gzip.decompress(packed) == exposition.page(Format.TEXT)
    assert len(packed) < len(exposition.page(Format.TEXT)) / 4


@pytest.mark.parametrize("form", Format)
def test_nothing_at_all_is_still_a_page(form: Format) -> None:
    page = encode([], drop=("gpufeed_series",)).page(form)
    assert page == (b"# EOF\n" if form is Format.OPENMETRICS else b"")


def test_every_family_of_a_node_is_in_the_catalogue() -> None:
    page = encode(families(nodes.node(gpus=1), SERVER)).page(Format.TEXT).decode()
    assert set(re.findall(r"^# TYPE (\w+) ", page, re.MULTILINE)) <= set(METRICS)
