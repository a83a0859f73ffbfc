# SPDX-License-Identifier: Apache-2.0
"""Parts of well-known workloads, with numbers from public benchmarks where there are any (an H100, one GPU's share).

Storage benchmarks publish sizes of records and seconds of computing per batch: 3D U-Net 7 × 146.6 MB in 0.323 s,
ResNet-50 400 × 114 660 B in 0.224 s, CosmoFlow 2.83 MB in 3.5 ms. Levels are typical of profiles of such kernels.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Activity, HostShare
from gpufeed.simulate.pipeline.workload import Checkpoint, Collective, Input, Storage, Training, Work

CONVOLUTIONS: Final = Activity(
    truth=("busy", "tensor"), graphics=1.0, sm=0.9, occupancy=0.45, tensor=0.42, dram=0.5, power=0.85, clock=0.95,
    temperature_c=62.0, reasons=MappingProxyType({"sw_power_cap": 0.3}), host=HostShare(trainer_cpu=0.6),
)  # fmt: skip
VOLUMES: Final = replace(CONVOLUTIONS, tensor=0.34, dram=0.62, power=0.8)
TRANSFORMER: Final = replace(
    CONVOLUTIONS, sm=0.92, tensor=0.56, dram=0.42, power=0.93, reasons=MappingProxyType({"sw_power_cap": 0.5})
)
OPTIMIZER: Final = replace(
    CONVOLUTIONS, truth=("busy", "memory"), sm=0.8, tensor=0.0, dram=0.8, power=0.6, reasons=MappingProxyType({})
)
MEMORY_BOUND: Final = replace(OPTIMIZER, tensor=0.03, dram=0.72)
SMALL_BATCH: Final = replace(
    CONVOLUTIONS, truth=("busy", "other"), sm=0.34, occupancy=0.12, tensor=0.11, dram=0.18, power=0.36,
    temperature_c=48.0, reasons=MappingProxyType({}),
)  # fmt: skip
GATHERS: Final = replace(OPTIMIZER, sm=0.65, dram=0.58, power=0.5)

RESNET: Final = Work(seconds=0.224, activity=CONVOLUTIONS)
"""A trial on one GPU: it exchanges nothing."""
RESNET_TOGETHER: Final = replace(RESNET, collective=Collective(nvlink_bytes=90e6, overlap=0.7))
"""Gradients of 25 million parameters in two bytes, around a ring: nearly twice the size."""
UNET: Final = Work(seconds=0.323, activity=VOLUMES, collective=Collective(nvlink_bytes=70e6, overlap=0.5))
COSMOFLOW: Final = Work(seconds=64 * 0.0035, activity=replace(VOLUMES, sm=0.7, tensor=0.2, power=0.55))
"""Steps of milliseconds, 64 of them at a time."""

PRETRAINING: Final = (
    Work(
        seconds=2.4,
        activity=TRANSFORMER,
        collective=Collective(nvlink_bytes=200e9, fabric_bytes=30e9, overlap=0.92),
    ),
    Work(seconds=0.1, activity=OPTIMIZER),
)
"""Sharded parameters, gathered and reduced behind the computing."""
EXPOSED: Final = (
    Work(seconds=0.6, activity=TRANSFORMER, collective=Collective(nvlink_bytes=40e9, fabric_bytes=8e9)),
    Work(seconds=0.03, activity=OPTIMIZER),
)
"""The same without overlap: everything that is exchanged shows."""
EXPERTS: Final = tuple(
    Work(
        seconds=0.12,
        activity=replace(TRANSFORMER, tensor=0.46),
        collective=Collective(nvlink_bytes=8e9, fabric_bytes=1.2e9, nvlink_reach=0.45, fabric_reach=0.5),
    )
    for _ in range(4)
)
"""Tokens go to their experts and back, all to all."""
RECOMMENDER: Final = (
    Work(
        seconds=0.08,
        activity=GATHERS,
        collective=Collective(nvlink_bytes=6e9, fabric_bytes=0.6e9, nvlink_reach=0.4, fabric_reach=0.5),
    ),
    Work(seconds=0.12, activity=replace(SMALL_BATCH, sm=0.6, tensor=0.2, truth=("busy", "tensor"))),
)

IMAGES: Final = Input()
TOKENS: Final = Input(storage=Storage(bytes_per_s=2e9), batch_bytes=4e6, cpu_s=0.02, workers=2, copy_bytes=2e6)
VOLUME_FILES: Final = Input(batch_bytes=7 * 146.6e6, spread=0.17, cpu_s=0.35, workers=6, cores=6, copy_bytes=59e6)
COSMO_FILES: Final = Input(batch_bytes=64 * 2.83e6, cpu_s=0.15, workers=4, copy_bytes=64 * 2.83e6)

PRETRAIN: Final = Training(input=TOKENS, works=PRETRAINING, spread=0.004)
TRIALS: Final = Training(input=IMAGES, works=(RESNET,))


def trials(storage: Storage) -> Training:
    """An image classifier on every GPU by itself, all reading from one server."""
    return replace(TRIALS, input=replace(IMAGES, storage=storage))


def together(of: Input) -> Training:
    """One image classifier on all GPUs, which exchange gradients after every step."""
    return Training(input=of, works=(RESNET_TOGETHER,), spread=0.006)


def pretrain(checkpoint: Checkpoint) -> Training:
    """A language model that is saved every so often."""
    return replace(PRETRAIN, checkpoint=checkpoint)
