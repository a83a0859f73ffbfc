# SPDX-License-Identifier: Apache-2.0
"""Jobs that exchange much, over links that are full, degraded or well; and copies over narrow ones."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.workload import Collective, Input, Job, Remote, Training, Trouble, TroubleKind, Work
from gpufeed.simulate.pipeline.workloads import EXPERTS, EXPOSED, IMAGES, RECOMMENDER, RESNET, TOKENS

_VIDEO: Final = replace(IMAGES, copy_bytes=9e9, cpu_s=0.4, workers=4)
"""Batches that are small on disk and large once they are decoded."""


def _exchanging(
    name: str, description: str, works: tuple[Work, ...], *troubles: Trouble, of: Input = TOKENS
) -> JudgedScenario:
    workload = Training(input=of, works=works, spread=0.005, remote=Remote())
    return JudgedScenario(
        name=name, family="link", description=description, jobs=(Job(workload=workload),), troubles=troubles
    )


def _all_of(collective: Collective) -> tuple[Work, ...]:
    return (replace(EXPOSED[0], collective=collective), *EXPOSED[1:])


def _on_fabric(kind: TroubleKind, factor: float) -> Trouble:
    return Trouble(kind=kind, factor=factor, from_s=60.0)


LINK_SCENARIOS: Final = (
    _exchanging("exposed_exchange", "Nothing is hidden, nothing is full: a third of every step is exchange.", EXPOSED),
    _exchanging(
        "copy_engine_exchange", "The same by copy engines: no kernel is resident while bytes move.",
        _all_of(Collective(nvlink_bytes=60e9, engine="copy")),
    ),
    _exchanging("moe_all_to_all", "Tokens to experts and back, four times a step.", EXPERTS),
    _exchanging("embedding_all_to_all", "Tables of a recommender spread over all GPUs.", RECOMMENDER),
    _exchanging(
        "nvlink_saturated", "Large messages fill NVLink for half of the time.",
        _all_of(Collective(nvlink_bytes=230e9, nvlink_reach=0.82)),
    ),
    _exchanging(
        "nvlink_one_down", "One of the links of a GPU is down: all exchanges run at its pace.",
        _all_of(Collective(nvlink_bytes=60e9)),
        Trouble(kind="nvlink_down", factor=17 / 18, gpu=3, from_s=60.0),
    ),
    _exchanging(
        "fabric_saturated", "Large messages fill the network cards.",
        _all_of(Collective(nvlink_bytes=10e9, fabric_bytes=20e9, fabric_reach=0.88)),
    ),
    _exchanging(
        "fabric_half_rate", "A port came up at half its rate.",
        _all_of(Collective(nvlink_bytes=10e9, fabric_bytes=9e9)),
        Trouble(kind="fabric_slow", factor=0.5, gpu=2, from_s=60.0),
    ),
    _exchanging(
        "fabric_congested", "Switches hold packets back: credits are waited for.",
        _all_of(Collective(nvlink_bytes=10e9, fabric_bytes=9e9)), _on_fabric("fabric_congested", 0.35),
    ),
    _exchanging(
        "roce_loss", "Packets are lost and sent again.",
        _all_of(Collective(nvlink_bytes=10e9, fabric_bytes=9e9)), _on_fabric("fabric_lossy", 0.4),
    ),
    JudgedScenario(
        name="pcie_x8", family="link", description="A link came up with half its lanes; decoded video fills it.",
        jobs=(Job(workload=Training(input=_VIDEO, works=(RESNET,))),),
        troubles=(Trouble(kind="pcie_narrow", factor=0.5),),
    ),
    JudgedScenario(
        name="pcie_gen3", family="link", description="A link came up two generations down; decoded video fills it.",
        jobs=(Job(workload=Training(input=_VIDEO, works=(RESNET,))),),
        troubles=(Trouble(kind="pcie_narrow", factor=0.25),),
    ),
)  # fmt: skip
