# SPDX-License-Identifier: Apache-2.0
"""Generation × driver × metric: from the simulated library to the row, the right value in the right unit or no row."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from exposition import generations
from exposition.generations import COUNTS, Labels, Row, Seen
from exposition.reading import families_of
from gpufeed.catalogue import definitions, gpm, gpu, gpu_errors, gpu_limits, nvlink
from gpufeed.clock import read_frame_time
from gpufeed.exposition.family import label_pairs
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.block import POSITION
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.nvml.source import NVML
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_MS, NS_PER_S

TICKS = 4
TICK_NS = 500 * NS_PER_MS

ELSEWHERE = {"gpufeed_gpu_info", "gpufeed_driver_info", "gpufeed_gpus_expected", "gpufeed_gpus_present",
             "gpufeed_gpu_up", "gpufeed_gpu_in_use_recently", "gpufeed_nvlink_info"}  # fmt: skip
"""Texts, and what is known without a reading."""
OF_THE_MOMENT = {"gpufeed_gpu_engine_active_ratio", "gpufeed_gpu_sm_occupancy_ratio"}
"""Of the last interval; the integrals beside them are checked."""
MOVING = ("graphics_s", "sm_s", "tensor_s", "dram_s", "energy_j", "pcie_receive_bytes", "hw_thermal_s", "seconds")
"""What the story moves on every board, so that a row of zero is not right by chance."""
COMPARED = {
    definition.name for group in (gpu, gpu_limits, gpu_errors, gpm, nvlink) for definition in definitions(group)
} - (ELSEWHERE | OF_THE_MOMENT)


def observe(model: str, driver: str, root: Path) -> tuple[dict[Row, float], Seen]:
    """What is exported of the one GPU of a node, and its truth."""
    clock = SteppedClock()
    node = initial(Settings(), read_frame_time(clock))
    simulated = SteppedNode("thermal_throttle", model, 1, root=root, clock=clock, driver_version=driver)
    simulated.keeps_trees = False
    with simulated:
        simulated.set_counts(0, **{name: count for name, count in COUNTS.items() if fits(model, name)})
        simulated.advance(NS_PER_S)
        probe = InlineProbe(simulated.config(), (NVML,), clock, simulated.is_blocked)
        first = truth(simulated)
        node = step(node, probe.tick())
        for _ in range(TICKS):
            simulated.advance(TICK_NS)
            node = step(node, probe.tick())
        seen = Seen(first=first, last=truth(simulated), board=simulated.face.boards[0].model)
        probe.close()
    rows: dict[Row, float] = {}
    for family in families_of(node.state):
        name = family.definition.name
        if name in COMPARED:
            for values, value in family.rows + family.full_rows:
                pairs = dict(label_pairs(family.definition, values))
                labels: Labels = tuple(sorted((k, v) for k, v in pairs.items() if k not in {"gpu", "uuid"}))
                rows[name.removeprefix("gpufeed_"), labels] = value
    return rows, seen


def truth(node: SteppedNode) -> Mapping[str, float]:
    moment = node.face.moment(0)
    return {**{name: moment.value(name) for name in POSITION}, "seconds": node.clock.monotonic_ns() / NS_PER_S}


def fits(model: str, name: str) -> bool:
    """Whether a number belongs to a board at all: the simulator would tell it of any."""
    return model == "gb200" or not name.startswith("c2c_")


@pytest.mark.parametrize(("model", "driver"), tuple(generations.pairs()))
def test_every_metric_has_its_true_value_or_no_row(tmp_path: Path, model: str, driver: str) -> None:
    rows, seen = observe(model, driver, tmp_path)
    assert all(seen.grown(name) > 0 for name in MOVING)

    expected = generations.expected(model, driver, seen)
    missing = sorted(expected.keys() - rows.keys())
    invented = {row: rows[row] for row in sorted(rows.keys() - expected.keys())}
    wrong = {row: (rows[row], value) for row, value in expected.items() if row in rows and differ(rows[row], value)}
    assert (missing, invented, wrong) == ([], {}, {})


def differ(measured: float, true: float) -> bool:
    # the driver tells milliwatts, millijoules and nanoseconds in whole numbers; GPM rates are floats
    return measured != pytest.approx(true, rel=1e-6, abs=1.1e-3)


def test_the_table_names_every_simulated_product() -> None:
    from gpufeed.simulate.models import MODELS

    assert set(MODELS) == generations.ALL
    assert {model for model, _ in generations.pairs()} == generations.ALL
    assert {driver for _, driver in generations.pairs()} == set(generations.DRIVERS)
