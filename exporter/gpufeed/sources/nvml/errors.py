# SPDX-License-Identifier: Apache-2.0
"""Error counts of a GPU that one batch of fields gives: ECC, PCIe, retired pages, remapped rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.model.gpu_errors import GpuErrors
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.field_batch import FieldValues
from gpufeed.sources.nvml.field_ids import Field

ECC_VOLATILE: Final[Mapping[str, Field]] = MappingProxyType({"corrected": Field(3), "uncorrected": Field(4)})
"""Since the driver was loaded. Not by device while MIG is on."""

ECC_AGGREGATE: Final[Mapping[str, Field]] = MappingProxyType({"corrected": Field(5), "uncorrected": Field(6)})
"""Of the life of the board."""

RETIRED_PAGES: Final[Mapping[str, Field]] = MappingProxyType({"correctable": Field(29), "uncorrectable": Field(30)})
"""By what made them be retired: several single-bit errors, or one of two bits. Before Ampere."""

REMAPPED_ROWS: Final[Mapping[str, Field]] = MappingProxyType({"correctable": Field(142), "uncorrectable": Field(143)})
"""Ampere and newer; not with MIG instances."""

PCIE_ERRORS: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "l0_to_recovery": Field(169),
        "correctable": Field(173),
        "naks_received": Field(174),
        "receiver": Field(175),
        "bad_tlp": Field(176),
        "naks_sent": Field(177),
        "bad_dllp": Field(178),
        "non_fatal": Field(179),
        "fatal": Field(180),
        "unsupported_request": Field(181),
        "lcrc": Field(182),
        "lane": Field(183),
    }
)

_RETIRED_PENDING: Final = Field(31)
_REMAP_PENDING: Final = Field(144)
_REMAP_FAILED: Final = Field(145)

FIELDS: Final = (
    *ECC_VOLATILE.values(),
    *ECC_AGGREGATE.values(),
    *RETIRED_PAGES.values(),
    _RETIRED_PENDING,
    *REMAPPED_ROWS.values(),
    _REMAP_PENDING,
    _REMAP_FAILED,
    *PCIE_ERRORS.values(),
)
"""What to ask for."""


def errors_of(gpu: GpuKey, values: FieldValues) -> GpuErrors | None:
    """What the fields say; None where they say nothing."""
    sample = GpuErrors(
        gpu=gpu,
        ecc_volatile=counts(ECC_VOLATILE, values),
        ecc_aggregate=counts(ECC_AGGREGATE, values),
        pcie_errors=counts(PCIE_ERRORS, values),
        remapped_rows=counts(REMAPPED_ROWS, values),
        row_remap_pending=_flag(values, _REMAP_PENDING),
        row_remap_failed=_flag(values, _REMAP_FAILED),
        retired_pages=counts(RETIRED_PAGES, values),
        retired_pages_pending=_flag(values, _RETIRED_PENDING),
    )
    return None if sample == GpuErrors(gpu=gpu) else sample


def counts(fields: Mapping[str, Field], values: FieldValues) -> dict[str, int] | None:
    """Counts by name, of the fields that answered; None where none did."""
    counted = {
        name: number
        for name, field in fields.items()
        if field in values and (number := quantities.count(values[field])) is not None
    }
    return counted or None


def _flag(values: FieldValues, field: Field) -> bool | None:
    raw = values.get(field)
    return None if raw is None or raw not in (0, 1) else bool(raw)
