# SPDX-License-Identifier: Apache-2.0
"""NVLink bytes of a board: summed over links, in bytes, and never a sum over fewer links than there are."""

import ctypes
from typing import Any

import pynvml
import pytest

from gpufeed.errors import DeviceLost
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.nvlink import LinkStates, NvlinkReadings, count_links
from gpufeed.units import NS_PER_S
from nvml_bench import Bench

FIELDS = "nvmlDeviceGetFieldValues"
STATE = "nvmlDeviceGetNvLinkState"
GPU = GpuKey(GpuUuid("GPU-x"))
SLOW_NS = 10 * NS_PER_S


def without(*fields: int) -> tuple[Fault, ...]:
    return tuple(Fault(effect="not_supported", function=FIELDS, field=field) for field in fields)


def readings(bench: Bench, links: int = 18) -> NvlinkReadings:
    device, _ = bench.device()
    return NvlinkReadings(device, links, LinkStates(device, links, bench.node.clock, SLOW_NS))


@pytest.mark.parametrize("name", ["bench", "a100"])
def test_totals_are_the_bytes_of_the_node(name: str, request: pytest.FixtureRequest) -> None:
    bench: Bench = request.getfixturevalue(name)
    links = bench.node.face.boards[0].model.nvlink_links
    nvlink = readings(bench, links)
    bench.step(4)

    totals = nvlink.read(GPU)

    assert totals.receive_bytes == int(bench.true("nvlink_receive_bytes") / 1024) * 1024
    assert totals.transmit_bytes == int(bench.true("nvlink_transmit_bytes") / 1024) * 1024
    assert totals.receive_bytes > 0
    assert (totals.links, totals.links_up) == (links, links)


def test_the_sum_over_all_links_takes_one_call_a_tick(bench: Bench) -> None:
    nvlink = readings(bench)
    nvlink.read(GPU)
    calls, fields = bench.calls(), bench.node.face.field_values
    bench.step()
    nvlink.read(GPU)

    assert (bench.calls() - calls, bench.node.face.field_values - fields) == (1, 2)


def test_link_states_are_looked_at_again_when_nobody_has_for_longer_than_the_slow_period(bench: Bench) -> None:
    nvlink = readings(bench)
    nvlink.read(GPU)
    bench.node.set_faults(Fault(effect="answers", function=FIELDS, field=165, value=0.0))
    bench.step()
    before = nvlink.read(GPU).links_up
    bench.node.advance(SLOW_NS + SLOW_NS // 2)

    assert (before, nvlink.read(GPU).links_up) == (18, 0)


def test_states_that_another_group_has_read_are_not_read_again(bench: Bench) -> None:
    device, _ = bench.device()
    states = LinkStates(device, 18, bench.node.clock, SLOW_NS)
    nvlink = NvlinkReadings(device, 18, states)
    for _ in range(3):
        states.read()
        fields = bench.node.face.field_values
        assert nvlink.read(GPU).links_up == 18
        assert bench.node.face.field_values - fields == 2
        bench.node.advance(SLOW_NS)


def put_link_counters(bench: Bench, per_link: dict[int, int]) -> None:
    """A driver without the sum over all links: link n has counted (n + 1) times what is given."""

    def answer(_device: Any, count: int, values: Any) -> int:
        for entry in values[:count]:
            if entry.scopeId < 18 and entry.fieldId in per_link:
                entry.valueType, entry.value.ullVal = 3, per_link[entry.fieldId] * (entry.scopeId + 1)
            else:
                entry.nvmlReturn = 3
        return 0

    bench.put(FIELDS, (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(pynvml.c_nvmlFieldValue_t)), answer)


def test_where_there_is_no_sum_links_are_added_up(bench: Bench) -> None:
    put_link_counters(bench, {138: 10, 139: 20})

    totals = readings(bench).read(GPU)

    assert totals.transmit_bytes == 10 * 171 * 1024  # 1 + 2 + … + 18 links
    assert totals.receive_bytes == 20 * 171 * 1024


def test_links_of_the_fifth_generation_count_bytes_not_kib(bench: Bench) -> None:
    put_link_counters(bench, {202: 10, 204: 20})

    totals = readings(bench).read(GPU)

    assert (totals.transmit_bytes, totals.receive_bytes) == (10 * 171, 20 * 171)


def test_a_sum_that_lacks_a_link_is_no_sum() -> None:
    from gpufeed.sources.nvml import quantities
    from gpufeed.sources.nvml.field_ids import Field
    from gpufeed.sources.nvml.nvlink import _sum

    links = (Field(139, 0), Field(139, 1))

    assert _sum({links[0]: 1, links[1]: 2}, links, quantities.counter_bytes_of_kib) == 3072
    assert _sum({links[0]: 1}, links, quantities.counter_bytes_of_kib) is None
    assert _sum({links[0]: 1, links[1]: -1}, links, quantities.counter_bytes_of_kib) is None


def test_a_board_without_byte_counters_says_so_and_still_has_links(bench: Bench) -> None:
    bench.node.set_faults(*without(138, 139, 202, 204))

    nvlink = readings(bench)

    assert not nvlink.has_bytes
    assert nvlink.read(GPU) == NvlinkTotals(gpu=GPU, links=18, links_up=18)


def test_an_invalid_argument_means_that_there_is_no_such_link(bench: Bench) -> None:
    bench.node.set_faults(*without(91))
    device, _ = bench.device()

    assert count_links(device) == 18
    assert bench.node.face.calls[STATE] == 19


def test_links_are_asked_for_one_by_one_only_so_far(bench: Bench) -> None:
    device, _ = bench.device()

    assert device.probe_links(5) == 5


def test_a_board_without_links_has_zero_of_them(bench: Bench) -> None:
    bench.node.set_faults(*without(91), Fault(effect="not_supported", function=STATE))
    device, _ = bench.device()

    assert count_links(device) == 0


@pytest.mark.parametrize("absurd", [-1.0, 1000.0])
def test_an_absurd_number_of_links_is_no_number(bench: Bench, absurd: float) -> None:
    bench.node.set_faults(Fault(effect="answers", function=FIELDS, field=91, value=absurd))
    device, _ = bench.device()

    assert count_links(device) is None


def test_an_older_driver_is_asked_for_the_state_of_each_link(bench: Bench) -> None:
    bench.node.set_faults(*without(165))

    assert readings(bench).read(GPU).links_up == 18
    assert bench.node.face.calls[STATE] == 18


def test_states_that_cannot_be_had_are_unknown_not_down(bench: Bench) -> None:
    bench.node.set_faults(*without(165), Fault(effect="not_supported", function=STATE))

    totals = readings(bench).read(GPU)

    assert totals.links_up is None
    assert totals.receive_bytes is not None


def test_a_link_whose_state_fails_makes_the_number_unknown(bench: Bench) -> None:
    nvlink = readings(bench)
    bench.node.set_faults(Fault(effect="error", function=FIELDS, field=165, code=999))

    assert nvlink.read(GPU).links_up is None


def test_a_lost_device_goes_up(bench: Bench) -> None:
    nvlink = readings(bench)
    bench.node.set_faults(Fault(effect="lost", gpu=0))

    with pytest.raises(DeviceLost):
        nvlink.read(GPU)
