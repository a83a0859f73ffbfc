# SPDX-License-Identifier: Apache-2.0
"""Conditions on the memory of a GPU: errors, repairs, and spares that run out."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Inhibit, Matcher, Select
from gpufeed.alerting.table.examples import GPU, MINUTE_S, fires, gpu_check, planned, series, silent


def _flag(name: str, values: str) -> ExampleSeries:
    return series(name, values, **GPU)


def _uncorrected(values: str) -> ExampleSeries:
    return series("gpu_ecc_volatile_errors_total", values, **GPU, type="uncorrected")


REMAP_PENDING: Final = Condition(
    name="RemapPending",
    series=Select(metric="gpufeed_gpu_row_remap_pending"),
    threshold=0,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="gpu",
    action="gpu_reset",
    summary="GPU {gpu} waits for a reset to repair its memory",
    description="A row of the memory of GPU {gpu} ({uuid}) is replaced with the next reset. "
    "Until then the bad row is only kept out of use.",
    examples=(
        fires("pending since an error in the night", "ticket", _flag("gpu_row_remap_pending", "0x4 1x40"), at_s=1800),
        silent("nothing pending", _flag("gpu_row_remap_pending", "0x40"), at_s=1800),
        planned("drained and reset within ten minutes", _flag("gpu_row_remap_pending", "0x4 1x9 0x40"), at_s=1200),
    ),
)

REMAP_FAILURE: Final = Condition(
    name="RemapFailure",
    series=Select(metric="gpufeed_gpu_row_remap_failed"),
    threshold=0,
    severity="ticket",
    layer="gpu",
    action="replace",
    summary="GPU {gpu} could not repair its memory",
    description="A row of the memory of GPU {gpu} ({uuid}) had to be replaced and no spare was left. "
    "The board meets the criterion for an RMA.",
    inhibits=(Inhibit(targets=("RemapPending",), equal=("instance", "uuid")),),
    examples=(
        fires("the flag is set", "ticket", _flag("gpu_row_remap_failed", "0x4 1x20"), at_s=600),
        silent("the flag is clear", _flag("gpu_row_remap_failed", "0x20"), at_s=600),
        planned("the board was replaced", _flag("gpu_row_remap_failed", "1x4 stale _x4 0x20"), at_s=900),
    ),
)

MEMORY_WORN_OUT: Final = Condition(
    name="MemoryWornOut",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "memory_wear"),)),
    comparison=">=",
    threshold=1,
    severity="ticket",
    layer="gpu",
    action="replace",
    summary="GPU {gpu} has replaced more memory than a sound board does",
    description="GPU {gpu} ({uuid}) has replaced 512 rows for uncorrectable errors, or, on older boards, taken 63 "
    "pages out of use. The board is to be replaced.",
    examples=(
        fires("the 512th row", "ticket", gpu_check("memory_wear", "0x4 1x20"), at_s=600),
        silent("a few rows", gpu_check("memory_wear", "0x20"), at_s=600),
        planned("the board was replaced", gpu_check("memory_wear", "1x4 stale _x4 0x20"), at_s=900),
    ),
)

ECC_UNCORRECTABLE: Final = Condition(
    name="EccUncorrectable",
    series=Select(
        metric="gpufeed_gpu_ecc_volatile_errors_total",
        matchers=(Matcher("type", "=", "uncorrected"),),
        without=("type",),
    ),
    statistic="increase",
    window_s=15 * MINUTE_S,
    threshold=0,
    severity="ticket",
    layer="gpu",
    action="gpu_reset",
    summary="GPU {gpu} met {value:number} memory errors that it could not correct",
    description="GPU {gpu} ({uuid}) met about {value:number} memory errors in 15 minutes that it could not correct. "
    "The application that used the memory has lost data, or was ended.",
    examples=(
        fires("two errors", "ticket", _uncorrected("0x9 2x60"), at_s=900),
        silent("an error of yesterday", _uncorrected("2x60"), at_s=1800),
        planned("a driver upgrade sets the counter to zero", _uncorrected("2x9 stale _x4 0x60"), at_s=1200),
    ),
)

SRAM_THRESHOLD: Final = Condition(
    name="SramThreshold",
    series=Select(metric="gpufeed_gpu_sram_ecc_threshold_exceeded"),
    threshold=0,
    severity="ticket",
    layer="gpu",
    action="replace",
    summary="GPU {gpu} had more errors inside its chip than a sound board does",
    description="The driver's flag for errors in the on-chip memory of GPU {gpu} ({uuid}) is set: "
    "the board is to be tested and replaced.",
    examples=(
        fires("the flag is set", "ticket", _flag("gpu_sram_ecc_threshold_exceeded", "0x4 1x20"), at_s=600),
        silent("the flag is clear", _flag("gpu_sram_ecc_threshold_exceeded", "0x20"), at_s=600),
        planned("the board was replaced", _flag("gpu_sram_ecc_threshold_exceeded", "1x4 stale _x4 0x20"), at_s=900),
    ),
)

CONDITIONS: Final = (REMAP_PENDING, REMAP_FAILURE, MEMORY_WORN_OUT, ECC_UNCORRECTABLE, SRAM_THRESHOLD)
