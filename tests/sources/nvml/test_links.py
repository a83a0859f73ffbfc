# SPDX-License-Identifier: Apache-2.0
"""Every NVLink by itself: the right way to count on each generation, and no zero from a wrong one."""

from pathlib import Path

import pytest

from gpufeed.errors import DeviceLost, SourceError
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.nvlink import NvlinkLinks
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.link_errors import LinkErrors
from gpufeed.sources.nvml.links import LinkReadings
from gpufeed.sources.nvml.nvlink import LinkStates, NvlinkReadings
from gpufeed.units import NS_PER_S
from nvml_bench import Bench, enter, group

FIELDS = "nvmlDeviceGetFieldValues"
CALL = "nvmlDeviceGetNvLinkErrorCounter"
GPU = GpuKey(GpuUuid("GPU-x"))
SLOW_NS = 10 * NS_PER_S
NAMES = {"v100": "volta", "a100": "ampere", "h100": "hopper", "b200": "blackwell"}
COUNTED = {
    "nvlink_crc_flit": 2, "nvlink_crc_data": 3, "nvlink_crc": 5, "nvlink_replay": 7, "nvlink_recovery": 11,
    "nvlink_recovery_failed": 13, "nvlink_effective": 17, "nvlink_symbol": 19,
}  # fmt: skip
BAD = 5


def without(*fields: int) -> tuple[Fault, ...]:
    return tuple(Fault(effect="not_supported", function=FIELDS, field=field) for field in fields)


def readings(bench: Bench, architecture: str | None = "hopper") -> LinkReadings:
    device, _ = bench.device()
    links = bench.node.face.boards[0].model.nvlink_links
    return LinkReadings(device, architecture, links, LinkStates(device, links, bench.node.clock, SLOW_NS))


def of(bench: Bench, model: str) -> NvlinkLinks:
    bench.node.set_counts(0, nvlink_bad_link=BAD, **COUNTED)
    return readings(bench, NAMES[model]).read(GPU)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("v100", {"crc_flit": 2, "crc_data": 3, "replay": 7, "recovery": 11}),
        ("a100", {"crc_flit": 2, "crc_data": 3, "replay": 7, "recovery": 11}),
        ("h100", {"crc": 5, "replay": 7, "recovery": 11}),
        ("b200", {"recovery": 11, "recovery_failed": 13, "effective": 17, "symbol": 19}),
    ],
)
def test_errors_are_counted_the_way_of_the_generation(tmp_path: Path, model: str, expected: dict[str, int]) -> None:
    with enter(tmp_path, model=model) as node:
        sample = of(Bench(node), model)

    bad, good = sample.links[BAD], sample.links[0]
    assert {kind: count for kind, count in (bad.errors or {}).items() if count} == expected
    assert good.errors == dict.fromkeys(bad.errors or {}, 0)
    assert {kind: count for kind, count in (sample.errors or {}).items() if count} == expected


def test_hopper_error_totals_that_succeed_with_zero_are_not_believed(bench: Bench) -> None:
    sample = of(bench, "h100")

    assert not {"crc_flit", "crc_data"} & (sample.errors or {}).keys()
    assert (sample.errors or {})["replay"] == 7


def test_kinds_that_contain_one_another_are_not_counted_twice_on_blackwell(tmp_path: Path) -> None:
    with enter(tmp_path, model="b200") as node:
        errors = of(Bench(node), "b200").errors or {}

    assert errors["recovery"] + errors["recovery_failed"] == 11 + 13


def test_an_older_driver_is_asked_link_by_link_for_what_hopper_counts(bench: Bench) -> None:
    bench.node.set_faults(*without(161, 162, 163))

    sample = of(bench, "h100")

    assert (sample.errors, sample.links[BAD].errors) == ({"crc": 5, "recovery": 11, "replay": 7},) * 2
    assert bench.node.face.calls[CALL] == 3 * 18


def test_a_board_that_counts_no_errors_has_none_rather_than_zero(bench: Bench) -> None:
    bench.node.set_faults(*without(161, 162, 163), Fault(effect="not_supported", function=CALL))
    links = readings(bench)
    said = [links.has_errors]
    sample = links.read(GPU)
    said.append(links.has_errors)

    assert (sample.errors, links.read(GPU).errors) == (None, None)
    assert said == [None, False]
    assert {link.errors for link in sample.links} == {None}
    assert bench.node.face.calls[CALL] == 3  # one refusal of each kind is enough


def test_a_generation_nobody_has_heard_of_is_asked_by_what_it_answers(tmp_path: Path) -> None:
    with enter(tmp_path, model="h100") as node:
        bench = Bench(node)
        device, _ = bench.device()
        bench.node.set_counts(0, nvlink_crc=1)
        errors = LinkErrors(device, None, 18)

        assert {field.id for field in errors.find_out()} == {161, 162, 163}


def test_each_link_has_its_share_of_bytes_its_speed_and_its_version(tmp_path: Path) -> None:
    for model, version, unit in (("h100", "4.0", 1024), ("b200", "5.0", 1), ("v100", "2.0", 1024)):
        with enter(tmp_path / model, model=model) as node:
            bench = Bench(node)
            links = readings(bench, NAMES[model])
            bench.step(4)
            sample = links.read(GPU)
            board = node.face.boards[0].model
            share = bench.true("nvlink_receive_bytes") / board.nvlink_links
        assert len(sample.links) == board.nvlink_links
        for at, link in enumerate(sample.links):
            assert (link.link, link.is_up, link.version) == (at, True, version)
            assert link.receive_bytes == int(share / unit) * unit
            assert link.speed_bytes_per_s == board.nvlink_link_mb_per_s * 1e6


def test_a_blackwell_whose_driver_lacks_the_new_counters_counts_kib(tmp_path: Path) -> None:
    with enter(tmp_path, model="b200") as node:
        bench = Bench(node)
        bench.node.set_faults(*without(202, 204))
        device, _ = bench.device()
        states = LinkStates(device, 18, node.clock, SLOW_NS)
        together, each = NvlinkReadings(device, 18, states, "blackwell"), readings(bench, "blackwell")
        bench.step(4)

        totals, sample = together.read(GPU), each.read(GPU)
        true = bench.true("nvlink_receive_bytes")

    assert totals.receive_bytes == int(true / 1024) * 1024
    assert sample.links[3].receive_bytes == int(true / 18 / 1024) * 1024


def test_blackwell_totals_come_from_its_own_counters(tmp_path: Path) -> None:
    with enter(tmp_path, model="b200") as node:
        bench = Bench(node)
        device, _ = bench.device()
        nvlink = NvlinkReadings(device, 18, LinkStates(device, 18, node.clock, SLOW_NS), "blackwell")
        bench.step(4)
        fields = node.face.field_values
        totals = nvlink.read(GPU)
        asked = node.face.field_values - fields
        true = bench.true("nvlink_transmit_bytes")

    assert totals.transmit_bytes == 18 * int(true / 18)
    assert asked == 36 + 18  # states are read here, as nobody else did


def test_a_packed_bit_error_ratio_is_unpacked(tmp_path: Path) -> None:
    with enter(tmp_path, model="b200") as node:
        bench = Bench(node)
        node.set_counts(0, nvlink_effective_ber=0x3 << 8 | 12, nvlink_symbol_ber=15)
        ratios = readings(bench, "blackwell").read(GPU).links[0].bit_error_ratios

    assert ratios == {"effective": 3e-12, "symbol": 0.0}


def test_hopper_has_no_bit_error_ratios(bench: Bench) -> None:
    assert {link.bit_error_ratios for link in readings(bench).read(GPU).links} == {None}


@pytest.mark.parametrize(
    ("model", "kind", "bus_id"),
    [("v100", "gpu", "0000:43:00.0"), ("a100", "switch", "0000:c4:00.0"), ("h100", "switch", None)],
)
def test_the_other_end_is_asked_for_once(tmp_path: Path, model: str, kind: str, bus_id: str | None) -> None:
    with enter(tmp_path, model=model) as node:
        bench = Bench(node)
        links = readings(bench, NAMES[model])
        first = links.read(GPU).links[0]
        before = bench.calls()
        links.read(GPU)
        calls = bench.calls() - before

    assert (first.remote_type, first.remote_pci_bus_id) == (kind, bus_id)
    assert calls == 2


def test_a_link_that_is_down_leads_nowhere_and_the_sum_keeps_what_it_had(bench: Bench) -> None:
    bench.node.set_counts(0, nvlink_bad_link=17, nvlink_replay=4)
    links = readings(bench)
    links.read(GPU)
    bench.node.set_counts(0, links_up=17)
    bench.node.set_faults(Fault(effect="error", function=FIELDS, field=161, code=999))

    sample = links.read(GPU)

    assert [link.is_up for link in sample.links] == [True] * 17 + [False]
    assert sample.links[17].remote_type is None
    assert "replay" not in (sample.links[17].errors or {})
    assert (sample.errors or {})["replay"] == 4


def test_what_a_link_refused_while_it_was_down_is_asked_again_when_it_comes_up(bench: Bench) -> None:
    bench.node.set_counts(0, links_up=17, nvlink_replay=4)
    bench.node.set_faults(*without(161, 164))
    links = readings(bench)
    first = links.read(GPU)
    bench.node.set_faults()
    bench.node.set_counts(0, links_up=18)

    second = links.read(GPU)

    assert (first.errors or {}).keys() == {"crc", "recovery"}
    assert (second.errors or {})["replay"] == 4
    assert second.links[17].remote_type == "switch"
    assert second.links[17].speed_bytes_per_s == 26562e6


@pytest.mark.parametrize("code", [15, 16])
def test_a_lost_device_goes_up(bench: Bench, code: int) -> None:
    links = readings(bench)
    links.read(GPU)
    bench.node.set_faults(Fault(effect="error", gpu=0, code=code))

    with pytest.raises(SourceError) as caught:
        links.read(GPU)
    assert caught.value.reason in {"lost", "reset_required"}


def test_a_device_lost_while_the_other_end_is_asked_for_goes_up(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="lost", gpu=0, function="nvmlDeviceGetNvLinkRemoteDeviceType"))

    with pytest.raises(DeviceLost):
        readings(bench).read(GPU)


def test_an_end_that_cannot_be_had_is_not_known(bench: Bench) -> None:
    bench.node.set_faults(
        Fault(effect="not_supported", gpu=0, function="nvmlDeviceGetNvLinkRemoteDeviceType"),
        Fault(effect="not_supported", gpu=0, function="nvmlDeviceGetNvLinkRemotePciInfo_v2"),
    )

    link = readings(bench).read(GPU).links[0]

    assert (link.is_up, link.remote_type, link.remote_pci_bus_id) == (True, None, None)


def test_a_board_without_links_has_no_such_group(tmp_path: Path) -> None:
    with enter(tmp_path, model="l4") as node:
        reader, _ = Bench(node).reader()
        outcome = reader.read(group("nvlink.slow"))

    assert outcome.samples == ()
    assert {status.input: status.state for status in outcome.inputs}["nvlink"] == "unsupported"
