# SPDX-License-Identifier: Apache-2.0
"""Parts of well-known workloads, with numbers from public benchmarks where there are any (an H100, one GPU's share).

Storage benchmarks publish sizes of records and seconds of computing per batch: 3D U-Net 7 × 146.6 MB in 0.323 s,
ResNet-50 400 × 114 660 B in 0.224 s, CosmoFlow 2.83 MB in 3.5 ms.
"""

from types import MappingProxyType
from typing import Final

from gpufeed.simulate.activity import Activity, HostShare
from gpufeed.simulate.pipeline.workload import Collective, Work

CONVOLUTIONS: Final = Activity(
    truth=("busy", "tensor"),
    graphics=1.0,
    sm=0.9,
    occupancy=0.45,
    tensor=0.42,
    dram=0.5,
    power=0.85,
    clock=0.95,
    temperature_c=62.0,
    reasons=MappingProxyType({"sw_power_cap": 0.3}),
    host=HostShare(trainer_cpu=0.6),
)

GRADIENTS_50MB: Final = Collective(nvlink_bytes=90e6, overlap=0.7)
"""Of 25 million parameters in two bytes, around a ring: nearly twice the size."""

RESNET_WORKS: Final = (Work(seconds=0.224, activity=CONVOLUTIONS, collective=GRADIENTS_50MB),)
