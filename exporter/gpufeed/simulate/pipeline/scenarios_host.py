# SPDX-License-Identifier: Apache-2.0
"""Jobs whose GPUs wait for the host: its processors, its memory, its main thread."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.workload import Evaluation, Input, Job, Offload, Startup, Training, Trouble
from gpufeed.simulate.pipeline.workloads import EXPOSED, IMAGES, RESNET, TOKENS, together

_STEP_S: Final = 0.224
_SHORT_BY: Final = 0.7


def _starved(name: str, description: str, workload: Training, *troubles: Trouble) -> JudgedScenario:
    return JudgedScenario(
        name=name, family="host", description=description, jobs=(Job(workload=workload),), troubles=troubles
    )


def _decoding(workers: int, cores: int) -> Input:
    """Loaders that give 70 % of what the GPU takes."""
    return replace(IMAGES, workers=workers, cores=cores, cpu_s=min(workers, cores) * _STEP_S / _SHORT_BY)


HOST_SCENARIOS: Final = (
    _starved(
        "cpu_2_workers", "Two loaders on eight processors: more of them would do.",
        Training(input=_decoding(2, 8), works=(RESNET,)),
    ),
    _starved("cpu_4_workers", "Four loaders fill four processors.", together(_decoding(4, 4))),
    _starved(
        "cpu_8_workers", "Eight loaders fill eight processors.", Training(input=_decoding(8, 8), works=(RESNET,))
    ),
    _starved("cpu_16_workers", "Sixteen loaders crowd four processors.", together(_decoding(16, 4))),
    _starved(
        "main_thread_bound", "The main thread computes 90 ms between two steps, and nothing is under way meanwhile.",
        replace(together(IMAGES), loop_s=0.09),
    ),
    _starved(
        "launch_bound", "The main thread cannot launch kernels as fast as they end.",
        Training(input=TOKENS, works=(replace(RESNET, launch_gap=0.45),)),
    ),
    _starved(
        "memory_pressure", "Memory is short: loaders wait for pages to be taken from others and read back.",
        Training(input=replace(IMAGES, reclaim_s=1.2, cpu_s=0.1), works=(RESNET,)),
    ),
    _starved(
        "processors_taken", "For five minutes others take most of the processors that the loaders are bound to.",
        Training(input=replace(IMAGES, cpu_s=0.6), works=(RESNET,)),
        Trouble(kind="processors_taken", factor=0.45, from_s=150.0, until_s=450.0),
    ),
    _starved(
        "evaluation_pauses", "Every two minutes the model is evaluated, and scores are computed on the host.",
        replace(together(IMAGES), evaluation=Evaluation(every_s=120.0, seconds=12.0, cpu_s=15.0)),
    ),
    _starved(
        "startup_compile", "Imports, then compilation for two minutes.",
        replace(together(IMAGES), startup=Startup(import_s=15.0, compile_s=120.0)),
    ),
    _starved(
        "zero_offload", "Optimizer state is on the host: gradients down, processors update, parameters up.",
        Training(
            input=replace(TOKENS, cores=12), works=(replace(EXPOSED[0], collective=None),),
            offload=Offload(bytes=6e9, cpu_s=5.0, cores=10),
        ),
    ),
)  # fmt: skip
