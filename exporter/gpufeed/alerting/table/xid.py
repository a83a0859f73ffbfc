# SPDX-License-Identifier: Apache-2.0
"""Conditions on XIDs: by what they leave behind, not by number."""

from typing import Final

from gpufeed.alerting.define import Condition, ExampleSeries, Matcher, Select
from gpufeed.alerting.table.examples import GPU, HOUR_S, fires, gpu_check, gpu_in_use, planned, series, silent
from gpufeed.alerting.table.names import BY_UNUSABLE_GPU


def _fatal(values: str) -> ExampleSeries:
    return series("gpu_xid_class_errors_total", values, **GPU, **{"class": "unusable"})


XID_GPU_UNUSABLE: Final = Condition(
    name="XidGpuUnusable",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "xid"),)),
    threshold=1,
    severity="page",
    severity_idle="ticket",
    in_use="gpu",
    layer="gpu",
    action="gpu_reset",
    summary="An XID has left GPU {gpu} unusable",
    description="GPU {gpu} ({uuid}) reported an XID after which it does no more work. "
    "It counts as unusable until it is reset, the node reboots or somebody acknowledges it.",
    inhibits=BY_UNUSABLE_GPU,
    is_event=True,
    examples=(
        fires("a job's GPU reports a fatal XID", "page", gpu_check("xid", "0x4 2x10"), gpu_in_use("1x20"), at_s=300),
        fires("an idle GPU reports a fatal XID", "ticket", gpu_check("xid", "0x4 2x10"), gpu_in_use("0x20"), at_s=300),
        silent(
            "a contained error leaves the GPU degraded only",
            gpu_check("xid", "0x4 1x10"),
            gpu_in_use("1x20"),
            at_s=600,
        ),
        planned(
            "the node reboots after its GPU was drained for a latched XID",
            gpu_check("xid", "2x4 stale _x4 0x10"),
            gpu_in_use("0x4 stale _x4 0x10"),
            at_s=600,
        ),
    ),
)

XID_GPU_DEGRADED: Final = Condition(
    name="XidGpuDegraded",
    series=Select(metric="gpufeed_gpu_health", matchers=(Matcher("check", "=", "xid"),)),
    comparison=">=",
    threshold=1,
    severity="ticket",
    layer="gpu",
    action="gpu_reset",
    summary="An XID has left GPU {gpu} in need of a reset",
    description="GPU {gpu} ({uuid}) reported an XID that it works on after: a contained memory error, a link error, "
    "a worn part. It counts as degraded until it is reset, the node reboots or somebody acknowledges it.",
    examples=(
        fires("a contained memory error (XID 94)", "ticket", gpu_check("xid", "0x4 1x20"), at_s=600),
        silent("the application's own fault (XID 13, 31, 43)", gpu_check("xid", "0x20"), at_s=600),
        planned("the reset of the drained GPU clears it", gpu_check("xid", "0x4 1x4 stale _x2 0x20"), at_s=900),
    ),
)

XID_REPEATED_FATAL: Final = Condition(
    name="XidRepeatedFatal",
    series=Select(
        metric="gpufeed_gpu_xid_class_errors_total", matchers=(Matcher("class", "=", "unusable"),), without=("class",)
    ),
    statistic="increase",
    window_s=24 * HOUR_S,
    comparison=">=",
    threshold=5,
    severity="ticket",
    layer="gpu",
    action="replace",
    summary="GPU {gpu} reported {value:number} fatal XIDs in a day",
    description="GPU {gpu} ({uuid}) reported {value:number} XIDs in 24 hours after each of which it needed a reset. "
    "Resets do not help it any more.",
    examples=(
        fires("one every two hours", "ticket", _fatal("0x59 1x119 2x119 3x119 4x119 5x119 6x300"), at_s=50_400),
        silent("two in a day", _fatal("0x59 1x119 2x800"), at_s=50_400),
        planned("one, and the GPU is reset for it", _fatal("0x59 1x60 0x800"), at_s=50_400),
    ),
)

CONDITIONS: Final = (XID_GPU_UNUSABLE, XID_GPU_DEGRADED, XID_REPEATED_FATAL)
