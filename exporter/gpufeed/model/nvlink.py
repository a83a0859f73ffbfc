# SPDX-License-Identifier: Apache-2.0
"""Samples of single NVLinks; of all links of a GPU together there is `NvlinkTotals` in gpu.py."""

from msgspec import Struct

from gpufeed.model.ids import GpuKey
from gpufeed.model.sample import Sample


class NvlinkLink(Struct, frozen=True, array_like=True, kw_only=True):
    """One link of one GPU. Counts are cumulative until somebody resets them."""

    link: int
    is_up: bool | None = None  # trained: says nothing of whether peers can be reached over it
    receive_bytes: int | None = None
    transmit_bytes: int | None = None
    speed_bytes_per_s: float | None = None  # of one direction, as the driver reports it
    errors: dict[str, int] | None = None  # by kind, as this generation counts them
    bit_error_ratios: dict[str, float] | None = None  # effective, symbol: Blackwell and newer
    version: str | None = None  # of the protocol: "4.0"
    remote_type: str | None = None  # gpu, switch, cpu
    remote_pci_bus_id: str | None = None  # 0000:18:00.0; None also where the switch hides it


class NvlinkLinks(Sample, frozen=True, kw_only=True, tag="nvlink_links"):
    """Every link of one GPU, in the order of their numbers."""

    gpu: GpuKey
    links: tuple[NvlinkLink, ...]
    errors: dict[str, int] | None = None  # of all links together; a kind that one link did not answer is left out

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu
