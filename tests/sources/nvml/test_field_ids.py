# SPDX-License-Identifier: Apache-2.0
"""Three ids moved between driver branches: the running driver's version decides."""

import pytest

from gpufeed.sources.nvml.field_ids import Field, clock_event_fields

MOVED = {"sw_thermal": Field(269), "hw_thermal": Field(270), "hw_power_brake": Field(271)}


@pytest.mark.parametrize("version", ["580.82.07", "580.95.05", "581.15", "590.44.01", "615.10"])
def test_drivers_since_580_82_have_the_three_moved_counters_at_269(version: str) -> None:
    assert MOVED.items() <= clock_event_fields(version).items()


@pytest.mark.parametrize(
    "version", ["550.54.15", "570.124.06", "575.51.03", "575.64", "580.65.06", "580.81", "", "unknown", None]
)
def test_no_driver_is_asked_for_an_id_that_means_something_else_there(version: str | None) -> None:
    asked = clock_event_fields(version)

    assert not {field.id for field in asked.values()} & {*range(251, 274)}
    assert asked["sw_power_cap"] == Field(74)
    assert not asked.keys() & MOVED.keys()
