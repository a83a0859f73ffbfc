# SPDX-License-Identifier: Apache-2.0
"""Every source that ships with gpufeed, in one explicit list. Adding one is a line here."""

from typing import Final

from gpufeed.sources.block import BlockSource
from gpufeed.sources.contract import Source
from gpufeed.sources.ethernet import EthernetSource
from gpufeed.sources.host import HostSource
from gpufeed.sources.infiniband import InfinibandSource
from gpufeed.sources.jobs import JobsSource
from gpufeed.sources.nfs import NfsSource
from gpufeed.sources.nvml.source import NVML
from gpufeed.sources.pci import PciSource
from gpufeed.sources.pressure import PressureSource

BUILTIN: Final[tuple[Source, ...]] = (
    NVML,
    PciSource(),
    InfinibandSource(),
    EthernetSource(),
    BlockSource(),
    NfsSource(),
    PressureSource(),
    HostSource(),
    JobsSource(),
)
