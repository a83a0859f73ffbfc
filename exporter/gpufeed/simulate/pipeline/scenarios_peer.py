# SPDX-License-Identifier: Apache-2.0
"""Jobs where one rank, here or elsewhere, makes all others wait; and clocks that are held down."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.scenario import Family, JudgedScenario
from gpufeed.simulate.pipeline.workload import Job, Remote, Training, Trouble
from gpufeed.simulate.pipeline.workloads import EXPOSED, IMAGES, PRETRAIN, TOKENS, together


def _troubled(
    name: str, description: str, workload: Training, *troubles: Trouble, family: Family = "peer"
) -> JudgedScenario:
    return JudgedScenario(
        name=name, family=family, description=description, jobs=(Job(workload=workload),), troubles=troubles
    )


_STEPPING: Final = Training(input=TOKENS, works=EXPOSED, spread=0.005)

PEER_SCENARIOS: Final = (
    _troubled(
        "straggler_compute", "One GPU computes at two thirds of the others' speed, and no clock shows it.", _STEPPING,
        Trouble(kind="rank_slow", factor=0.66, gpu=2, from_s=60.0),
    ),
    _troubled(
        "straggler_thermal", "One GPU is hot and slow; the others wait for it.", _STEPPING,
        Trouble(kind="clock", factor=0.45, gpu=5, reason="hw_thermal", from_s=60.0),
    ),
    _troubled(
        "straggler_data", "One rank's files are on a slow target: it waits for data, the others for it.",
        together(IMAGES), Trouble(kind="late_input", factor=0.022, gpu=1, from_s=60.0),
    ),
    _troubled(
        "straggler_remote", "A rank on another node takes half as long again.",
        replace(_STEPPING, remote=Remote(slowness=1.5)),
    ),
    _troubled(
        "hung_collective", "After two minutes a rank on another node never comes again.",
        replace(_STEPPING, remote=Remote(hangs_at_s=120.0)),
    ),
    _troubled(
        "hung_rank", "After two minutes one rank does nothing any more; the others spin.", _STEPPING,
        Trouble(kind="hang", gpu=3, from_s=120.0),
    ),
)  # fmt: skip

CLOCK_SCENARIOS: Final = (
    _troubled(
        "thermal_slowdown", "Cooling has failed: the hardware holds all clocks at two fifths.", PRETRAIN,
        Trouble(kind="clock", factor=0.4, reason="hw_thermal", from_s=60.0), family="clock",
    ),
    _troubled(
        "power_brake", "The rack's supply asks for less, twice.", PRETRAIN,
        Trouble(kind="clock", factor=0.5, reason="hw_power_brake", from_s=60.0, until_s=180.0),
        Trouble(kind="clock", factor=0.5, reason="hw_power_brake", from_s=300.0, until_s=420.0), family="clock",
    ),
    _troubled(
        "power_cap_deep", "A limit so low that clocks fall to half.", PRETRAIN,
        Trouble(kind="clock", factor=0.5, reason="sw_power_cap"), family="clock",
    ),
)  # fmt: skip
