# SPDX-License-Identifier: Apache-2.0
"""Samples of what goes wrong inside a GPU and wears it out. Counts are cumulative; a dict has a key per label value."""

from gpufeed.model.ids import GpuKey
from gpufeed.model.sample import Sample


class GpuErrors(Sample, frozen=True, kw_only=True, tag="gpu_errors"):
    """Error counts that one batch of fields gives, every slow period."""

    gpu: GpuKey
    ecc_volatile: dict[str, int] | None = None  # corrected, uncorrected: since the driver was loaded
    ecc_aggregate: dict[str, int] | None = None  # corrected, uncorrected: of the life of the board
    pcie_errors: dict[str, int] | None = None  # by kind, see PCIE_ERRORS of sources/nvml/field_ids.py
    remapped_rows: dict[str, int] | None = None  # correctable, uncorrectable: Ampere and newer
    row_remap_pending: bool | None = None  # becomes effective with the next reset
    row_remap_failed: bool | None = None  # no spare row is left where one was needed
    retired_pages: dict[str, int] | None = None  # correctable, uncorrectable: before Ampere
    retired_pages_pending: bool | None = None

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class GpuErrorDetail(Sample, frozen=True, kw_only=True, tag="gpu_error_detail"):
    """Where the errors were and what is left to repair them with, read rarely."""

    gpu: GpuKey
    ecc_volatile_locations: dict[str, dict[str, int]] | None = None  # corrected, uncorrected → location → count
    ecc_aggregate_locations: dict[str, dict[str, int]] | None = None
    sram_threshold_exceeded: bool | None = None  # nvmlDeviceGetSramEccErrorStatus.bThresholdExceeded: a bad board
    row_remap_banks: dict[str, int] | None = None  # max, high, partial, low, none: banks with so many spare rows

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu


class GpuC2c(Sample, frozen=True, kw_only=True, tag="gpu_c2c"):
    """The links between a GPU and the CPU on the same module (Grace). Only of boards that have some."""

    gpu: GpuKey
    links: int  # field 170
    links_up: int | None = None  # field 171 of each link
    speed_bytes_per_s: float | None = None  # field 172: of all active links together
    errors: dict[str, int] | None = None  # crc, replay, replay_back_to_back: fields 231 to 233, all links

    @property
    def subject(self) -> GpuKey:
        """The GPU."""
        return self.gpu
