# SPDX-License-Identifier: Apache-2.0
"""How a simulated node is built and run, apart from what its GPUs do: who starts jobs, which network it is on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

SchedulerKind = Literal["slurm", "slurm_v1", "slurm_sluid", "kubernetes", "none"]
"""slurm_v1: under version 1 of cgroups. slurm_sluid: since 26.05, with names of jobs that are no numbers."""

FabricKind = Literal["infiniband", "omnipath", "roce", "roce_bnxt", "roce_irdma", "efa"]
"""roce: of the same cards as infiniband, on Ethernet."""

DataSetKind = Literal["nfs", "lustre"]
"""lustre: the NFS mounts are there too, and idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to build a node."""

    scheduler: SchedulerKind = "slurm"
    fabric: FabricKind = "infiniband"
    has_pressure: bool = True  # the kernel accounts pressure
    shows_processes: bool = True  # open files and variables of processes may be read
    data_set: DataSetKind = "nfs"  # what jobs read through

    @property
    def has_unified_cgroups(self) -> bool:
        """Version 2 of cgroups."""
        return self.scheduler != "slurm_v1"


DEFAULT: Final = Layout()

LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        "slurm": DEFAULT,
        "slurm-v1": replace(DEFAULT, scheduler="slurm_v1"),
        "slurm-sluid": replace(DEFAULT, scheduler="slurm_sluid"),
        "kubernetes": replace(DEFAULT, scheduler="kubernetes"),
        "bare": replace(DEFAULT, scheduler="none"),
        "roce": replace(DEFAULT, fabric="roce"),
        "roce-bnxt": replace(DEFAULT, fabric="roce_bnxt"),
        "roce-irdma": replace(DEFAULT, fabric="roce_irdma"),
        "omnipath": replace(DEFAULT, fabric="omnipath"),
        "efa": replace(DEFAULT, fabric="efa", scheduler="kubernetes"),
        "no-pressure": replace(DEFAULT, has_pressure=False),
        "lustre": replace(DEFAULT, data_set="lustre"),
        "unprivileged": replace(DEFAULT, shows_processes=False),
    }
)
"""By name, for the command line."""
