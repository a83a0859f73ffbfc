# SPDX-License-Identifier: Apache-2.0
"""Jobs that are fed, however they look: whatever starvation is found here beyond their truth is false."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.workload import Checkpoint, Input, Job, Neighbour, Storage, Training, Trouble, Work
from gpufeed.simulate.pipeline.workloads import (
    COSMO_FILES,
    COSMOFLOW,
    IMAGES,
    MEMORY_BOUND,
    PRETRAIN,
    SMALL_BATCH,
    TOKENS,
    TRANSFORMER,
    UNET,
    VOLUME_FILES,
    pretrain,
    together,
    trials,
)


def _healthy(name: str, description: str, workload: Training) -> JudgedScenario:
    return JudgedScenario(name=name, family="healthy", description=description, jobs=(Job(workload=workload),))


HEALTHY_SCENARIOS: Final = (
    _healthy("compute_bound", "An image classifier on all GPUs; loaders are ahead of it.", together(IMAGES)),
    _healthy("llm_overlap", "A language model whose exchanges pass behind the computing.", PRETRAIN),
    _healthy(
        "llm_fine_tuning",
        "Steps of a second, little data, gradients over NVLink alone.",
        Training(input=TOKENS, works=(replace(PRETRAIN.works[0], seconds=1.1, collective=None),), spread=0.01),
    ),
    _healthy(
        "tensor_parallel",
        "Exchanges of two milliseconds woven into computing of eight.",
        Training(
            input=TOKENS,
            works=(Work(seconds=1.0, activity=replace(TRANSFORMER, sm=0.78, tensor=0.45, nvlink=0.16), woven=0.2),),
            spread=0.005,
        ),
    ),
    _healthy(
        "unet3d",
        "Large volumes, 25 GB/s for the node, and storage that gives them.",
        Training(input=VOLUME_FILES, works=(UNET,), spread=0.006),
    ),
    _healthy("cosmoflow", "Steps of milliseconds.", Training(input=COSMO_FILES, works=(COSMOFLOW,))),
    _healthy("storage_120", "The server gives a fifth more than is asked for.", trials(Storage(of_demand=1.2))),
    _healthy(
        "storage_slow_hidden",
        "Every read takes long; enough of them are under way that no GPU waits.",
        together(replace(IMAGES, storage=Storage(of_demand=2.0, rtt_s=0.06, spread=0.5), workers=8, cores=8)),
    ),
    _healthy(
        "memory_bound",
        "Kernels bound by device memory; tensor pipes rest.",
        Training(input=TOKENS, works=(Work(seconds=0.5, activity=MEMORY_BOUND),)),
    ),
    _healthy(
        "small_batch",
        "Kernels that fill a third of the SMs, back to back.",
        Training(input=TOKENS, works=(Work(seconds=0.3, activity=SMALL_BATCH),)),
    ),
    _healthy(
        "small_kernels",
        "Graphs of small kernels: hardly a pause between them, hardly anything in them.",
        Training(
            input=TOKENS,
            works=(Work(seconds=0.3, activity=replace(SMALL_BATCH, sm=0.22, tensor=0.04), launch_gap=0.02),),
        ),
    ),
    _healthy(
        "checkpoint_async",
        "State is copied out in a moment and written while training goes on.",
        pretrain(Checkpoint(every_s=120.0, is_async=True)),
    ),
    replace(
        _healthy(
            "power_cap_70", "A site limits its boards to 70 % of their power: clocks fall by a seventh.", PRETRAIN
        ),
        troubles=(Trouble(kind="clock", factor=0.85, reason="sw_power_cap"),),
    ),
    replace(
        _healthy("busy_disk_beside", "Somebody else's build fills the local disk.", together(IMAGES)),
        neighbours=(
            Neighbour(cores=3.0, blocked=4, disk_read_bytes_per_s=1.5e9, disk_write_bytes_per_s=0.8e9, off_s=5.0),
        ),
    ),
    replace(
        _healthy(
            "busy_network_beside", "Somebody else copies from another mount through the storage network.", PRETRAIN
        ),
        neighbours=(
            Neighbour(cores=1.0, blocked=6, nfs_read_bytes_per_s=3e9, net_receive_bytes_per_s=3.2e9, off_s=15.0),
        ),
    ),
    _healthy(
        "warm_cache",
        "A data set that fits into memory and has been read: no byte comes from the server.",
        together(Input(dataset_bytes=1.0, cache_bytes=1.0)),
    ),
)
