# SPDX-License-Identifier: Apache-2.0
"""Who a GPU is: the board's own data, as sysfs and people spell it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import Broken, DeviceLost
from gpufeed.model.gpu import GpuIdentity
from gpufeed.simulate.faults import Fault
from gpufeed.sources.nvml.architecture import architecture_name, sm_count
from gpufeed.sources.nvml.identity import read_identity, sysfs_bus_id
from nvml_bench import Bench


def identity(bench: Bench, index: int = 0) -> GpuIdentity:
    device, _ = bench.device(index)
    return read_identity(device, index, {"0000:43:00.0": 1}.get)


@pytest.mark.parametrize(("fixture", "architecture", "has_gpm"), [("bench", "hopper", True), ("a100", "ampere", False)])
def test_an_identity_is_that_of_the_board(
    fixture: str, architecture: str, has_gpm: bool, request: pytest.FixtureRequest
) -> None:
    bench: Bench = request.getfixturevalue(fixture)
    board = bench.node.face.boards[1]
    model = board.model

    found = identity(bench, 1)

    assert (found.gpu.uuid, found.serial, found.index, found.minor) == (board.uuid, board.serial, 1, 1)
    assert (found.name, found.architecture) == (model.name, architecture)
    assert (found.part_number, found.vbios, found.inforom) == (model.part_number, model.vbios, model.inforom)
    assert (found.pci_bus_id, found.pci_device_id) == (board.pci_bus_id, model.pci_device_id)
    assert found.numa_node == 1
    assert found.module_id == 2
    assert found.sm_count == model.sm_count
    assert found.power_limit_default_w == model.power_limit_w
    assert found.sm_clock_max_hz == model.sm_clock_max_mhz * 1_000_000
    assert found.memory_clock_max_hz == model.memory_clock_mhz * 1_000_000
    assert (found.pcie_generation_max, found.pcie_width_max) == (model.pcie_generation, model.pcie_width)
    assert found.nvlink_links == model.nvlink_links
    assert found.nvlink_speed_bytes_per_s == model.nvlink_link_mb_per_s * 1_000_000
    assert found.has_gpm is has_gpm


def test_what_a_board_does_not_have_is_none(bench: Bench) -> None:
    functions = ("Serial", "BoardPartNumber", "InforomImageVersion", "PciInfo_v3", "NumGpuCores", "ModuleId")
    bench.node.set_faults(*(Fault(effect="not_supported", function=f"nvmlDeviceGet{name}") for name in functions))

    found = identity(bench)

    assert (found.serial, found.part_number, found.inforom, found.module_id) == (None, None, None, None)
    assert (found.pci_bus_id, found.numa_node, found.sm_count) == (None, None, None)
    assert found.name is not None


def test_the_default_limit_comes_from_a_call_where_the_field_is_not(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="not_supported", function="nvmlDeviceGetFieldValues", field=189))

    assert identity(bench).power_limit_default_w == bench.node.face.boards[0].model.power_limit_w


def test_without_a_uuid_there_is_no_identity(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="error", function="nvmlDeviceGetUUID", code=999))

    with pytest.raises(Broken):
        identity(bench)


def test_a_gpu_lost_while_it_is_asked_is_lost(bench: Bench) -> None:
    bench.node.set_faults(Fault(effect="lost", function="nvmlDeviceGetVbiosVersion"))

    with pytest.raises(DeviceLost):
        identity(bench)


@given(
    domain=st.integers(min_value=0, max_value=0xFFFF_FFFF),
    bus=st.integers(min_value=0, max_value=255),
    device=st.integers(min_value=0, max_value=31),
)
def test_a_bus_id_is_spelt_as_sysfs_spells_it(domain: int, bus: int, device: int) -> None:
    assert sysfs_bus_id(f"{domain:08X}:{bus:02X}:{device:02X}.0") == f"{domain:04x}:{bus:02x}:{device:02x}.0"


@given(text=st.text(max_size=40))
def test_any_text_in_place_of_a_bus_id_gives_a_text(text: str) -> None:
    assert sysfs_bus_id(text) == sysfs_bus_id(sysfs_bus_id(text))


@pytest.mark.parametrize(
    ("cores", "capability", "expected"),
    [
        (16896, (9, 0), 132), (6912, (8, 0), 108), (5120, (7, 0), 80), (18176, (8, 9), 142),
        (100, (9, 0), None), (16896, (99, 0), None),
    ],
)  # fmt: skip
def test_multiprocessors_follow_from_cores(cores: int, capability: tuple[int, int], expected: int | None) -> None:
    assert sm_count(cores, capability) == expected


def test_an_architecture_newer_than_this_program_has_no_name() -> None:
    assert architecture_name(9) == "hopper"
    assert architecture_name(0xFFFF_FFFF) is None
