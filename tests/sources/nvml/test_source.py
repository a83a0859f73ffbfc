# SPDX-License-Identifier: Apache-2.0
"""Which lanes and groups a configuration asks for."""

import msgspec
import pytest

from gpufeed.model.desired import CollectorOptions, ProbeConfig
from gpufeed.model.ids import COLLECTORS, CollectorName, GroupName
from gpufeed.sources.contract import Group
from gpufeed.sources.nvml.init_reader import InitSpec
from gpufeed.sources.nvml.source import NVML
from gpufeed.units import NS_PER_S

PLAIN = ProbeConfig(runtime_dir="/run/gpufeed")


def without(*names: CollectorName) -> ProbeConfig:
    return msgspec.structs.replace(PLAIN, collectors={name: CollectorOptions(enabled=False) for name in names})


def gpu_groups(config: ProbeConfig) -> dict[str, Group]:
    (plan,) = NVML.plan(config)
    assert isinstance(plan.spec, InitSpec)
    return {group.name: group for group in plan.spec.gpu_groups}


def test_one_lane_is_planned_with_the_patience_of_a_driver_that_wakes_up() -> None:
    (plan,) = NVML.plan(PLAIN)

    assert plan.lane == "nvml-init"
    assert (plan.late_after_ns, plan.stuck_after_ns) == (15 * NS_PER_S, 60 * NS_PER_S)


def test_a_gpu_is_read_in_every_group_at_its_period() -> None:
    periods = {name: group.period_ns / NS_PER_S for name, group in gpu_groups(PLAIN).items()}

    assert periods == {
        "nvml.fast": 0.5,
        "xid.events": 0.5,
        "gpm.fast": 0.5,
        "nvlink.fast": 0.5,
        "nvml.processes": 2,
        "nvml.slow": 10,
        "nvlink.slow": 10,
        "nvml.rare": 60,
    }


def test_configured_periods_are_honoured() -> None:
    config = msgspec.structs.replace(
        PLAIN, fast_period_ns=NS_PER_S, periods_ns={GroupName("nvml.processes"): 7, GroupName("gpm.fast"): 9}
    )

    groups = gpu_groups(config)

    assert groups["nvml.fast"].period_ns == NS_PER_S
    assert (groups["nvml.processes"].period_ns, groups["gpm.fast"].period_ns) == (7, 9)


@pytest.mark.parametrize("name", ["nvlink", "gpm", "xid"])
def test_a_collector_that_is_off_is_not_read(name: CollectorName) -> None:
    groups = gpu_groups(without(name))

    assert name not in {group.collector for group in groups.values()}
    assert "nvml.fast" in groups


def test_without_any_of_its_collectors_nvml_is_not_even_opened() -> None:
    assert NVML.plan(without("nvml", "nvlink", "gpm", "xid")) == ()


def test_equal_configurations_plan_equal_lanes_and_another_choice_plans_others() -> None:
    assert NVML.plan(without("gpm")) == NVML.plan(without("gpm"))
    assert NVML.plan(without("gpm")) != NVML.plan(PLAIN)


def test_every_group_belongs_to_a_collector_that_can_be_switched() -> None:
    assert {group.collector for group in gpu_groups(PLAIN).values()} <= set(COLLECTORS)
