# SPDX-License-Identifier: Apache-2.0
"""Every source that ships with gpufeed, in one explicit list. Adding one is a line here."""

from typing import Final

from gpufeed.sources.beegfs import BeegfsSource
from gpufeed.sources.block import BlockSource
from gpufeed.sources.ceph import CephSource
from gpufeed.sources.contract import Source
from gpufeed.sources.ethernet import EthernetSource
from gpufeed.sources.fuse import FuseSource
from gpufeed.sources.gds import GdsSource
from gpufeed.sources.gpfs import GpfsSource
from gpufeed.sources.host import HostSource
from gpufeed.sources.infiniband import InfinibandSource
from gpufeed.sources.job_files import JobFilesSource
from gpufeed.sources.job_usage import JobUsageSource
from gpufeed.sources.jobs import JobsSource
from gpufeed.sources.kernel_log import KernelLogSource
from gpufeed.sources.lustre import LustreSource
from gpufeed.sources.nfs import NfsSource
from gpufeed.sources.nvml.source import NVML
from gpufeed.sources.owners import OwnersSource
from gpufeed.sources.pci import PciSource
from gpufeed.sources.pressure import PressureSource
from gpufeed.sources.reports import ReportsSource
from gpufeed.sources.schedulers import SchedulersSource
from gpufeed.sources.weka import WekaSource

BUILTIN: Final[tuple[Source, ...]] = (
    NVML,
    PciSource(),
    KernelLogSource(),
    InfinibandSource(),
    EthernetSource(),
    BlockSource(),
    NfsSource(),
    LustreSource(),
    GpfsSource(),
    BeegfsSource(),
    CephSource(),
    WekaSource(),
    FuseSource(),
    GdsSource(),
    PressureSource(),
    HostSource(),
    JobsSource(),
    OwnersSource(),
    SchedulersSource(),
    JobUsageSource(),
    JobFilesSource(),
    ReportsSource(),
)
