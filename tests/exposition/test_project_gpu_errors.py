# SPDX-License-Identifier: Apache-2.0
"""Errors, limits, the fabric and single links as families: what is not known has no row, zero has one."""

from dataclasses import replace

import msgspec
import pytest

from exposition import nodes
from exposition.reading import family_of, rows_of
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.gpu_errors import GpuC2c, GpuErrorDetail, GpuErrors
from gpufeed.model.nvlink import NvlinkLink, NvlinkLinks
from gpufeed.model.sample import Sample
from gpufeed.model.state import NodeState

G0 = {"gpu": "0", "uuid": nodes.uuid(0)}
KEY = nodes.key(0)


def having(*samples: Sample) -> NodeState:
    bare = NodeState(time=nodes.TIME, gpus={nodes.uuid(0): nodes.record(0)})
    return nodes.with_samples(bare, *samples)


def test_ecc_is_told_by_life_and_kind() -> None:
    state = having(nodes.error_counts(KEY))
    assert rows_of(state, "gpufeed_gpu_ecc_volatile_errors_total") == [
        (G0 | {"type": "corrected"}, 2), (G0 | {"type": "uncorrected"}, 0),
    ]  # fmt: skip
    assert rows_of(state, "gpufeed_gpu_ecc_aggregate_errors_total") == [
        (G0 | {"type": "corrected"}, 9), (G0 | {"type": "uncorrected"}, 1),
    ]  # fmt: skip


def test_places_of_errors_are_a_family_of_their_own() -> None:
    state = having(nodes.error_detail(KEY))
    rows = rows_of(state, "gpufeed_gpu_ecc_volatile_location_errors_total")
    assert rows[0] == (G0 | {"type": "corrected", "location": "device_memory"}, 1)
    assert len(rows) == len(rows_of(state, "gpufeed_gpu_ecc_aggregate_location_errors_total")) == 4
    assert rows_of(state, "gpufeed_gpu_sram_ecc_threshold_exceeded") == [(G0, 0)]
    assert rows_of(state, "gpufeed_gpu_row_remap_banks")[0] == (G0 | {"availability": "max"}, 2559)


def test_memory_is_repaired_by_rows_or_by_pages() -> None:
    rows = having(nodes.error_counts(KEY))
    pages = having(GpuErrors(gpu=KEY, retired_pages={"correctable": 3, "uncorrectable": 0}, retired_pages_pending=True))
    assert rows_of(rows, "gpufeed_gpu_remapped_rows_total")[1] == (G0 | {"cause": "uncorrectable"}, 1)
    assert rows_of(rows, "gpufeed_gpu_row_remap_pending") == rows_of(rows, "gpufeed_gpu_row_remap_failed") == [(G0, 0)]
    assert rows_of(rows, "gpufeed_gpu_retired_pages") == rows_of(rows, "gpufeed_gpu_retired_pages_pending") == []
    assert rows_of(pages, "gpufeed_gpu_retired_pages")[0] == (G0 | {"cause": "correctable"}, 3)
    assert rows_of(pages, "gpufeed_gpu_retired_pages_pending") == [(G0, 1)]
    assert rows_of(pages, "gpufeed_gpu_remapped_rows_total") == rows_of(pages, "gpufeed_gpu_row_remap_pending") == []


def test_what_is_not_known_of_errors_has_no_row() -> None:
    state = having(GpuErrors(gpu=KEY), GpuErrorDetail(gpu=KEY), GpuSlow(gpu=KEY), NvlinkLinks(gpu=KEY, links=()))
    for name in (
        "ecc_volatile_errors_total", "ecc_aggregate_errors_total", "ecc_volatile_location_errors_total",
        "sram_ecc_threshold_exceeded", "remapped_rows_total", "row_remap_pending", "row_remap_failed",
        "row_remap_banks", "retired_pages", "retired_pages_pending", "pcie_errors_total", "fabric_state",
        "fabric_health", "c2c_links", "temperature_margin_celsius", "performance_state", "compute_mode",
        "encoder_utilization_ratio", "bar1_total_bytes",
    ):  # fmt: skip
        assert rows_of(state, f"gpufeed_gpu_{name}") == [], name
    assert rows_of(state, "gpufeed_nvlink_errors_total") == []


@pytest.mark.parametrize(
    ("state", "status", "word"),
    [(1, 0, "not_started"), (2, 0, "in_progress"), (3, 0, "completed"), (3, 12, "failed"), (2, 5, "in_progress"),
     (9, 0, "code_9")],
)  # fmt: skip
def test_the_state_of_the_fabric_is_the_one_row_in_force(state: int, status: int, word: str) -> None:
    told = having(GpuSlow(gpu=KEY, fabric_state=state, fabric_status=status))
    assert rows_of(told, "gpufeed_gpu_fabric_state") == [(G0 | {"state": word}, 1)]


def test_troubles_of_the_fabric_are_told_as_they_are() -> None:
    told = having(GpuSlow(gpu=KEY, fabric_trouble={"degraded_bandwidth": True, "route_recovery": False}))
    assert rows_of(told, "gpufeed_gpu_fabric_health") == [
        (G0 | {"aspect": "degraded_bandwidth"}, 1), (G0 | {"aspect": "route_recovery"}, 0),
    ]  # fmt: skip


def test_links_to_the_processor_are_told_where_there_are_some() -> None:
    told = having(GpuC2c(gpu=KEY, links=10, links_up=9, speed_bytes_per_s=4.4e11, errors={"crc": 0, "replay": 1}))
    assert rows_of(told, "gpufeed_gpu_c2c_links") == [(G0, 10)]
    assert rows_of(told, "gpufeed_gpu_c2c_links_up") == [(G0, 9)]
    assert rows_of(told, "gpufeed_gpu_c2c_speed_bytes_per_second") == [(G0, 4.4e11)]
    assert rows_of(told, "gpufeed_gpu_c2c_errors_total")[1] == (G0 | {"type": "replay"}, 1)


def test_limits_are_degrees_or_margins_and_never_both() -> None:
    old = msgspec.structs.replace(
        nodes.identity(0), temperature_limits_c={"slowdown": 89.0}, temperature_limit_margins_c=None
    )
    state = NodeState(time=nodes.TIME, gpus={nodes.uuid(0): replace(nodes.record(0), identity=old)})
    assert rows_of(state, "gpufeed_gpu_temperature_limit_celsius") == [(G0 | {"limit": "slowdown"}, 89)]
    assert rows_of(state, "gpufeed_gpu_temperature_limit_margin_celsius") == []
    new = having()
    assert rows_of(new, "gpufeed_gpu_temperature_limit_celsius") == []
    assert (G0 | {"limit": "shutdown"}, -8) in rows_of(new, "gpufeed_gpu_temperature_limit_margin_celsius")


def test_power_limits_and_clocks_have_a_row_each() -> None:
    state = nodes.node(gpus=1)
    assert [(labels["limit"], value) for labels, value in rows_of(state, "gpufeed_gpu_power_limit_watts")] == [
        ("enforced", 700), ("default", 700), ("min", 200), ("max", 700),
    ]  # fmt: skip
    for name in ("gpufeed_gpu_clock_hertz", "gpufeed_gpu_clock_max_hertz"):
        assert {labels["domain"] for labels, _ in rows_of(state, name)} == {"graphics", "sm", "memory", "video"}


def test_links_that_are_well_stand_in_full_alone() -> None:
    links = (
        NvlinkLink(link=0, is_up=True, errors={"crc": 0}),
        NvlinkLink(link=1, is_up=False, errors={"crc": 4}, bit_error_ratios={"symbol": 1e-12}),
        NvlinkLink(link=2),
    )
    state = having(NvlinkLinks(gpu=KEY, links=links, errors={"crc": 4}))
    up, errors = family_of(state, "gpufeed_nvlink_up"), family_of(state, "gpufeed_nvlink_link_errors_total")
    assert up is not None
    assert errors is not None
    g0 = ("0", nodes.uuid(0))
    assert (up.rows, up.full_rows) == ([((*g0, "1"), 0)], [((*g0, "0"), 1)])
    assert (errors.rows, errors.full_rows) == ([((*g0, "1", "crc"), 4)], [((*g0, "0", "crc"), 0)])
    assert rows_of(state, "gpufeed_nvlink_errors_total") == [(G0 | {"type": "crc"}, 4)]
    assert rows_of(state, "gpufeed_nvlink_bit_error_ratio") == [(G0 | {"link": "1", "type": "symbol"}, 1e-12)]
    assert rows_of(state, "gpufeed_nvlink_info") == []
    assert rows_of(state, "gpufeed_nvlink_link_receive_bytes_total") == []


def test_a_link_says_what_it_is_and_where_it_leads() -> None:
    link = NvlinkLink(link=3, version="4.0", remote_type="switch", receive_bytes=5, speed_bytes_per_s=26.562e9)
    state = having(NvlinkLinks(gpu=KEY, links=(link,)))
    assert rows_of(state, "gpufeed_nvlink_info") == [
        (G0 | {"link": "3", "version": "4.0", "remote_type": "switch", "remote_pci_bus_id": ""}, 1)
    ]
    assert rows_of(state, "gpufeed_nvlink_speed_bytes_per_second") == [(G0 | {"link": "3"}, 26.562e9)]
    assert rows_of(state, "gpufeed_nvlink_link_receive_bytes_total") == [(G0 | {"link": "3"}, 5)]
    assert rows_of(state, "gpufeed_nvlink_link_transmit_bytes_total") == []
