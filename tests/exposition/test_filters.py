# SPDX-License-Identifier: Apache-2.0
"""`collect[]` and `exclude[]`: what a scrape asks for, and what it may not ask for."""

import re

import pytest

from exposition import nodes
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.filters import EVERYTHING, FilterError, parse
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.page import Exposition
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts

ENABLED = ("nvml", "block", "nfs", "pressure")


def exposition() -> Exposition:
    found = families(nodes.node(gpus=1, ports=1, mounts=2, disks=2), ServerFacts())
    return Encoder(profile="full").encode(found)


def names(page: bytes) -> set[str]:
    return set(re.findall(r"^(\w+)[{ ]", page.decode(), re.MULTILINE))


def test_no_filter_is_everything() -> None:
    assert parse([], [], ENABLED) == EVERYTHING


def test_collecting_one_collector_gives_its_rows_only() -> None:
    page = exposition().page(Format.TEXT, wanted=parse(["pressure"], [], ENABLED))
    assert names(page) == {
        "gpufeed_pressure_waiting_seconds_total",
        "gpufeed_pressure_stalled_seconds_total",
        "gpufeed_pressure_available",
    }


def test_a_family_of_several_collectors_is_split_by_row() -> None:
    page = exposition().page(Format.TEXT, wanted=parse(["nfs"], [], ENABLED)).decode()
    assert 'gpufeed_storage_reads_total{kind="nfs",target="/data1"} 10\n' in page
    assert "block" not in page
    assert page.count("# TYPE gpufeed_storage_reads_total") == 1
    assert "gpufeed_storage_busy_seconds_total" not in page


def test_excluding_leaves_the_rest() -> None:
    whole = exposition()
    page = whole.page(Format.TEXT, wanted=parse([], ["block", "nvml"], ENABLED))
    assert "gpufeed_gpu_up" not in names(page)
    assert {"gpufeed_build_info", "gpufeed_storage_reads_total", "gpufeed_gpu_xid_class_errors_total"} <= names(page)
    assert b'kind="block"' not in page


def test_parts_add_up_to_the_whole() -> None:
    whole = exposition()
    lines = set(whole.page(Format.TEXT).splitlines())
    some = set(whole.page(Format.TEXT, wanted=parse(["nvml", "nfs"], [], ENABLED)).splitlines())
    others = set(whole.page(Format.TEXT, wanted=parse([], ["nvml", "nfs"], ENABLED)).splitlines())
    assert some | others == lines
    assert all(line.startswith(b"# ") for line in some & others)


def test_self_can_always_be_asked_for() -> None:
    assert "gpufeed_build_info" in names(exposition().page(Format.TEXT, wanted=parse(["self"], [], ENABLED)))


@pytest.mark.parametrize(
    ("collect", "exclude", "said"),
    [
        (["nvml"], ["nfs"], "cannot be used together"),
        (["lustre"], [], "not a collector that is enabled: lustre; there are block, nfs, nvml, pressure, self"),
        ([], ["zzz", "aaa"], "not a collector that is enabled: aaa, zzz"),
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(collect: list[str], exclude: list[str], said: str) -> None:
    with pytest.raises(FilterError, match=said):
        parse(collect, exclude, ENABLED)


def test_only_so_many_filtered_pages_are_kept() -> None:
    whole = exposition()
    everything = whole.page(Format.TEXT)
    for place in range(100):
        enabled = [*ENABLED, f"c{place}"]
        assert whole.page(Format.TEXT, wanted=parse([], [f"c{place}"], enabled)) == everything
    assert len(whole._pages) == 16
