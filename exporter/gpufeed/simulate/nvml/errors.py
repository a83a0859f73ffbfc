# SPDX-License-Identifier: Apache-2.0
"""ECC, retired pages, remapped rows: as fields and as calls. Which there are depends on the generation."""

import ctypes
from typing import Any, Final

import pynvml

from gpufeed.simulate.nvml.field import AMPERE, UINT, Field, where, whole
from gpufeed.simulate.nvml.library import (
    ARGUMENT_VERSION_MISMATCH,
    NOT_SUPPORTED,
    UINT_P,
    ULONGLONG_P,
    Gpu,
    Status,
    Table,
)

TABLE: Final = Table()

_UINT: Final = ctypes.c_uint
_TURING: Final = 6
_DEVICE: Final = 2
_SRAM: Final = 7
_SRAM_STATUS_V1: Final = 0x0100_0068


def _ecc(of: Field) -> Field:
    return where(lambda model: model.has_ecc, of)


def _device(total: str) -> Field:
    """What of a total was in device memory."""
    return Field(kind=3, value=lambda gpu, _scope: gpu.moment.whole(total) - gpu.moment.whole(f"{total}_sram"))


def _of_volta(of: Field) -> Field:
    return where(lambda model: model.has_ecc and model.architecture < _TURING, of)


_NEVER: Final = Field(kind=3, value=lambda _gpu, _scope: 0)


def _locations(first: int, life: str) -> dict[int, Field]:
    """Eleven ids: corrected and uncorrected in L1, L2, device memory, registers, texture; uncorrected in the CBU."""
    corrected, uncorrected = f"ecc_{life}_corrected", f"ecc_{life}_uncorrected"
    return {
        first: _of_volta(_NEVER),
        first + 1: _of_volta(_NEVER),
        first + 2: _of_volta(whole(f"{corrected}_sram")),  # the only such memory that errs here
        first + 3: _of_volta(whole(f"{uncorrected}_sram")),
        first + 4: _ecc(_device(corrected)),
        first + 5: _ecc(_device(uncorrected)),
        **{first + at: _of_volta(_NEVER) for at in range(6, 11)},
    }


def _remap(name: str) -> Field:
    return where(lambda model: model.repair == "rows", whole(name, UINT))


def _pages(name: str) -> Field:
    return where(lambda model: model.repair == "pages", whole(name, UINT))


ECC_FIELDS: Final = {
    1: _ecc(Field(kind=UINT, value=lambda _gpu, _scope: 1)),
    2: _ecc(Field(kind=UINT, value=lambda _gpu, _scope: 1)),
    3: _ecc(whole("ecc_volatile_corrected")),
    4: _ecc(whole("ecc_volatile_uncorrected")),
    5: _ecc(whole("ecc_aggregate_corrected")),
    6: _ecc(whole("ecc_aggregate_uncorrected")),
    **_locations(7, "volatile"),
    **_locations(18, "aggregate"),
    29: _pages("retired_single_bit"),
    30: _pages("retired_double_bit"),
    31: _pages("retired_pending"),
    142: _remap("remapped_correctable"),
    143: _remap("remapped_uncorrectable"),
    144: _remap("remap_pending"),
    145: _remap("remap_failed"),
}


@TABLE.device("nvmlDeviceGetEccMode", UINT_P, UINT_P)
def _ecc_mode(gpu: Gpu, current: Any, pending: Any) -> None:
    if not gpu.board.model.has_ecc:
        raise Status(NOT_SUPPORTED)
    current[0] = pending[0] = 1


@TABLE.device("nvmlDeviceGetMemoryErrorCounter", _UINT, _UINT, _UINT, ULONGLONG_P)
def _memory_errors(gpu: Gpu, kind: int, life: int, location: int, out: Any) -> None:
    model = gpu.board.model
    if not model.has_ecc or location not in (_DEVICE, _SRAM) or model.architecture < _TURING:
        raise Status(NOT_SUPPORTED)
    total = f"ecc_{('volatile', 'aggregate')[life]}_{('corrected', 'uncorrected')[kind]}"
    sram = gpu.moment.whole(f"{total}_sram")
    out[0] = sram if location == _SRAM else gpu.moment.whole(total) - sram


@TABLE.device("nvmlDeviceGetSramEccErrorStatus", ctypes.POINTER(pynvml.c_nvmlEccSramErrorStatus_v1_t))
def _sram_status(gpu: Gpu, out: Any) -> None:
    status, model = out.contents, gpu.board.model
    if status.version != _SRAM_STATUS_V1:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    if not model.has_ecc or model.architecture < AMPERE:
        raise Status(NOT_SUPPORTED)
    status.aggregateCor = gpu.moment.whole("ecc_aggregate_corrected_sram")
    status.aggregateUncSecDed = gpu.moment.whole("ecc_aggregate_uncorrected_sram")
    status.volatileCor = gpu.moment.whole("ecc_volatile_corrected_sram")
    status.volatileUncSecDed = gpu.moment.whole("ecc_volatile_uncorrected_sram")
    status.bThresholdExceeded = gpu.moment.whole("sram_threshold_exceeded")


@TABLE.device("nvmlDeviceGetRowRemapperHistogram", ctypes.POINTER(pynvml.c_nvmlRowRemapperHistogramValues))
def _histogram(gpu: Gpu, out: Any) -> None:
    if gpu.board.model.repair != "rows":
        raise Status(NOT_SUPPORTED)
    for availability in ("max", "high", "partial", "low", "none"):
        setattr(out.contents, availability, gpu.moment.whole(f"remap_banks_{availability}"))
