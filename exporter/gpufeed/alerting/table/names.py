# SPDX-License-Identifier: Apache-2.0
"""Which alerts belong together: what a cause silences, so that one cause is one alert."""

from typing import Final

from gpufeed.alerting.define import Inhibit

STARVING: Final = ("GpuStarvedByStorage", "GpuStarvedByHostCpu", "GpuStarvedByFabric", "JobHangSuspected")
"""A node's GPUs wait. Whatever names the reason silences these."""
SLOW: Final = ("StragglerGpu", "ThrottledShare")
"""A GPU is slower than it should be."""
CONSEQUENCES: Final = (*STARVING, *SLOW, "GpuHeldIdle")
"""What a fault elsewhere looks like in the signals."""

_OF_A_FAULT: Final = (
    "GpuRecoveryPending", "GpuDriverError", "XidGpuDegraded", "EccUncorrectable", "RemapPending", "PcieWidthDegraded",
    "PcieGenDegraded", "PcieReplayRate", "NvlinkDown", "NvlinkReplayOrRecovery", "NvlinkCrcRate", "FabricNotReady",
    "FabricDegraded", "GpuHwThermalSlowdown", "GpuThermalMargin", "GpuPowerBrake", "PowerLimitBelowPeers",
    "StragglerGpu", "GpuHeldIdle",
)  # fmt: skip
"""Alerts of a GPU that its loss explains. RemapFailure, SramThreshold, MemoryWornOut, XidRepeatedFatal are never
silenced: they say that the board has to be replaced, whatever else is wrong.
"""

BY_LOST_GPU: Final = (
    Inhibit(targets=("XidGpuUnusable", *_OF_A_FAULT), equal=("instance", "uuid")),
    Inhibit(targets=("GpuCountLow", *CONSEQUENCES)),
)
BY_UNUSABLE_GPU: Final = (
    Inhibit(targets=_OF_A_FAULT, equal=("instance", "uuid")),
    Inhibit(targets=CONSEQUENCES),
)
BY_BLIND_NODE: Final = (
    Inhibit(
        targets=(
            "GpuLost", "GpuCountLow", "XidGpuUnusable", "GpuRecoveryPending", "GpuDriverError", "ExporterStale",
            "AttributionBlind", *CONSEQUENCES,
        )
    ),
)  # fmt: skip
"""Nothing can be read: what is said of the node is old, or a consequence."""
