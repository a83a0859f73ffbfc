# SPDX-License-Identifier: Apache-2.0
"""What reads cost: measured by the right clock, robust to hiccups; and what the governor makes of it."""

import msgspec

from gpufeed.model.desired import ProbeConfig, SimulatedNode
from gpufeed.model.ids import GroupName
from gpufeed.probe.cost import limit_ratio
from gpufeed.probe.meter import Meter

FAST = GroupName("nvml.fast")


def test_a_read_that_calls_the_driver_costs_its_whole_time() -> None:
    meter = Meter([FAST])
    for call in range(1, 20):
        meter.add(FAST, wall_ns=900, cpu_ns=100, nvml_calls=call)
    assert meter.read_cost_ns(FAST) == 900


def test_any_other_read_costs_its_processor_time() -> None:
    meter = Meter([FAST])
    for _ in range(20):
        meter.add(FAST, wall_ns=900, cpu_ns=100, nvml_calls=0)
    assert meter.read_cost_ns(FAST) == 100


def test_the_first_reads_do_not_count() -> None:
    meter = Meter([FAST])
    for wall_ns in (50_000, 40_000):
        meter.add(FAST, wall_ns=wall_ns, cpu_ns=wall_ns, nvml_calls=0)
    assert meter.read_cost_ns(FAST) == 0
    meter.add(FAST, wall_ns=10, cpu_ns=10, nvml_calls=0)
    assert meter.read_cost_ns(FAST) == 10


def test_a_read_that_hung_is_no_cost() -> None:
    meter = Meter([FAST])
    for number in range(20):
        meter.add(FAST, wall_ns=60_000_000_000 if number == 15 else 500, cpu_ns=1, nvml_calls=number + 1)
    assert meter.read_cost_ns(FAST) == 500


def test_a_simulated_driver_is_not_held_to_the_limit() -> None:
    config = ProbeConfig(runtime_dir="/nowhere", cost_limit_ratio=0.03)
    assert limit_ratio(config) == 0.03
    assert limit_ratio(msgspec.structs.replace(config, simulated=SimulatedNode(truth_path="/truth"))) == 1.0
