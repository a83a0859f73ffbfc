# SPDX-License-Identifier: Apache-2.0
"""Conditions on the links of a GPU: PCIe, NVLink, and the fabric that NVLink forms."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Inhibit, Matcher, Select
from gpufeed.alerting.table.examples import GPU, MINUTE_S, fires, gpu_check, gpu_in_use, planned, series, silent


def _check(name: str) -> Select:
    return Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", name),))


def _nvlink_errors(kind: str, values: str) -> ExampleSeries:
    return series("nvlink_errors_total", values, **GPU, type=kind)


def _replays(values: str) -> ExampleSeries:
    return series("gpu_pcie_replays_total", values, **GPU)


PCIE_WIDTH_DEGRADED: Final = Condition(
    name="PcieWidthDegraded",
    series=_check("pcie_width"),
    comparison=">=",
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="pcie",
    action="investigate",
    summary="The PCIe link of GPU {gpu} has lost lanes",
    description="For 10 minutes the PCIe link of GPU {gpu} ({uuid}) has had fewer lanes than GPU and slot can use, "
    "and than its neighbours have. Input and RDMA are half as fast, or less.",
    examples=(
        fires("eight of sixteen lanes", "ticket", gpu_check("pcie_width", "0x4 1x30"), at_s=1200),
        silent("all lanes", gpu_check("pcie_width", "0x40"), at_s=1200),
        planned("the link trains anew after a reset", gpu_check("pcie_width", "0x4 1x1 0x30"), at_s=360),
    ),
)

PCIE_GEN_DEGRADED: Final = Condition(
    name="PcieGenDegraded",
    series=_check("pcie_generation"),
    comparison=">=",
    threshold=1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="pcie",
    action="investigate",
    summary="The PCIe link of GPU {gpu} is slow while it works",
    description="For 15 minutes the PCIe link of GPU {gpu} ({uuid}) has run at a lower generation than GPU and slot "
    "can use, although the GPU is busy.",
    examples=(
        fires("generation 3 of 5 under a job", "ticket", gpu_check("pcie_generation", "0x4 1x30"), at_s=1500),
        silent("the GPU is idle and its link rests: no verdict", gpu_check("pcie_generation", "0x4 _x30"), at_s=1500),
        planned("the link trains anew after a reset", gpu_check("pcie_generation", "0x4 1x1 0x30"), at_s=360),
    ),
)

PCIE_REPLAY_RATE: Final = Condition(
    name="PcieReplayRate",
    series=Select(metric="gpufeed_gpu_pcie_replays_total"),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=0.5,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="pcie",
    action="investigate",
    summary="The PCIe link of GPU {gpu} repeats {value:number} packets a second",
    description="GPU {gpu} ({uuid}) had {value:number} PCIe packets a second sent again over 10 minutes. "
    "A sound link of sixteen lanes stays below 0.13 (generation 3) to 0.5 (generation 5).",
    examples=(
        fires("two a second", "ticket", _replays("0+120x60"), at_s=1800),
        silent("one every four seconds", _replays("0+15x60"), at_s=1800),
        planned("a burst of 200 when the link trains anew after a reset", _replays("0x9 200x60"), at_s=900),
    ),
)

NVLINK_DOWN: Final = Condition(
    name="NvlinkDown",
    series=_check("nvlink"),
    comparison=">=",
    threshold=1,
    for_s=2 * MINUTE_S,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="nvlink",
    action="gpu_reset",
    summary="NVLink links of GPU {gpu} are down",
    description="For 2 minutes GPU {gpu} ({uuid}) has had NVLink links that are not up. "
    "Collectives go another way, slowly, or fail.",
    inhibits=(
        Inhibit(targets=("NvlinkReplayOrRecovery", "NvlinkCrcRate", "FabricDegraded"), equal=("instance", "uuid")),
        Inhibit(targets=("JobHangSuspected", "StragglerGpu")),
    ),
    examples=(
        fires("a link fails under a job", "page", gpu_check("nvlink", "0x4 1x20"), gpu_in_use("1x30"), at_s=600),
        fires("a link fails, nobody uses it", "ticket", gpu_check("nvlink", "0x4 1x20"), gpu_in_use("0x30"), at_s=600),
        silent("a link is back within a minute", gpu_check("nvlink", "0x4 1 0x20"), gpu_in_use("1x30"), at_s=480),
        planned(
            "the fabric manager restarts on a drained node: four minutes",
            gpu_check("nvlink", "0x4 2x4 0x30"),
            gpu_in_use("0x40"),
            at_s=540,
            severity="ticket",
        ),
    ),
)

NVLINK_REPLAY_OR_RECOVERY: Final = Condition(
    name="NvlinkReplayOrRecovery",
    series=Select(
        metric="gpufeed_nvlink_errors_total", matchers=(Matcher("type", "=~", "replay|recovery"),), without=("type",)
    ),
    statistic="increase",
    window_s=15 * MINUTE_S,
    threshold=0,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="nvlink",
    action="gpu_reset",
    summary="NVLink of GPU {gpu} replayed or recovered {value:number} times",
    description="Links of GPU {gpu} ({uuid}) sent data again or trained anew about {value:number} times in 15 minutes. "
    "Sound links never do.",
    examples=(
        fires("three replays", "ticket", _nvlink_errors("replay", "0x9 3x60"), at_s=1200),
        silent("replays of yesterday", _nvlink_errors("replay", "3x60"), at_s=1200),
        planned(
            "a reset sets the counters to zero",
            _nvlink_errors("recovery", "3x9 stale _x2 0x60"),
            at_s=1200,
        ),
    ),
)

NVLINK_CRC_RATE: Final = Condition(
    name="NvlinkCrcRate",
    series=Select(metric="gpufeed_nvlink_errors_total", matchers=(Matcher("type", "=~", "crc.*"),), without=("type",)),
    statistic="rate",
    window_s=5 * MINUTE_S,
    comparison=">=",
    threshold=100,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="nvlink",
    action="gpu_reset",
    summary="NVLink of GPU {gpu} counts {value:number} CRC errors a second",
    description="Links of GPU {gpu} ({uuid}) count {value:number} CRC errors a second: a connector, a cable, a board.",
    examples=(
        fires("200 a second", "ticket", _nvlink_errors("crc_flit", "0+12000x30"), at_s=1200),
        silent("ten a second", _nvlink_errors("crc_flit", "0+600x30"), at_s=1200),
        planned("a burst of 6000 at a reset", _nvlink_errors("crc", "0x9 6000x30"), at_s=660),
    ),
)

FABRIC_NOT_READY: Final = Condition(
    name="FabricNotReady",
    series=_check("fabric"),
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="nvlink",
    action="investigate",
    summary="GPU {gpu} has not joined its NVLink fabric",
    description="For 10 minutes GPU {gpu} ({uuid}) has not joined its NVLink fabric: CUDA does not start on it.",
    inhibits=(Inhibit(targets=("FabricDegraded",), equal=("instance", "uuid")),),
    examples=(
        fires("the fabric manager does not run", "ticket", gpu_check("fabric", "2x40"), at_s=1200),
        silent("joined", gpu_check("fabric", "0x40"), at_s=1200),
        planned("a boot, or the fabric manager restarts: five minutes", gpu_check("fabric", "2x5 0x40"), at_s=480),
    ),
)

FABRIC_DEGRADED: Final = Condition(
    name="FabricDegraded",
    series=_check("fabric"),
    comparison=">=",
    threshold=1,
    for_s=10 * MINUTE_S,
    severity="ticket",
    layer="nvlink",
    action="drain",
    summary="The NVLink fabric of GPU {gpu} is not well",
    description="For 10 minutes the driver has said that the NVLink fabric of GPU {gpu} ({uuid}) is degraded. "
    "gpufeed_gpu_fabric_health (profile full) says how.",
    examples=(
        fires("an unhealthy route", "ticket", gpu_check("fabric", "0x4 1x40"), at_s=1200),
        silent("well", gpu_check("fabric", "0x40"), at_s=1200),
        planned("a route recovers after a switch tray was changed", gpu_check("fabric", "0x4 1x5 0x40"), at_s=480),
    ),
)

CONDITIONS: Final = (
    PCIE_WIDTH_DEGRADED,
    PCIE_GEN_DEGRADED,
    PCIE_REPLAY_RATE,
    NVLINK_DOWN,
    NVLINK_REPLAY_OR_RECOVERY,
    NVLINK_CRC_RATE,
    FABRIC_NOT_READY,
    FABRIC_DEGRADED,
)
