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

DataSetKind = Literal["nfs", "lustre", "ceph", "fuse", "weka", "beegfs"]
"""Whatever it is, the NFS mounts are there too, and idle."""

TroubleKind = Literal["flapping", "saturated", "refusing", "vanishing", "nfs_dead", "nfs_rebooted"]
"""What goes wrong with the node's files whatever its GPUs do.

flapping, vanishing: a card is down, or gone, ten of every thirty seconds. saturated: its counters stand at their ends.
refusing: some files of several devices cannot be read. nfs_dead: the server stops answering after twenty seconds, and
nfs_rebooted: comes back another twenty seconds later.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way to build a node."""

    scheduler: SchedulerKind = "slurm"
    fabric: FabricKind = "infiniband"
    has_pressure: bool = True  # the kernel accounts pressure
    shows_processes: bool = True  # open files and variables of processes may be read
    data_set: DataSetKind = "nfs"  # what jobs read through
    trouble: TroubleKind | None = None

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
        "ceph": replace(DEFAULT, data_set="ceph", scheduler="kubernetes"),
        "fuse": replace(DEFAULT, data_set="fuse", scheduler="kubernetes"),
        "weka": replace(DEFAULT, data_set="weka"),
        "beegfs": replace(DEFAULT, data_set="beegfs"),
        "unprivileged": replace(DEFAULT, shows_processes=False),
        "flapping": replace(DEFAULT, trouble="flapping"),
        "saturated": replace(DEFAULT, trouble="saturated"),
        "refusing": replace(DEFAULT, trouble="refusing"),
        "vanishing": replace(DEFAULT, trouble="vanishing"),
        "nfs-dead": replace(DEFAULT, trouble="nfs_dead"),
        "nfs-rebooted": replace(DEFAULT, trouble="nfs_rebooted"),
    }
)
"""By name, for the command line."""
