# SPDX-License-Identifier: Apache-2.0
"""NVML as a source: one lane that opens it, and one lane a GPU that the first finds."""

from typing import Final

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.sources.contract import Group, LanePlan, Source
from gpufeed.sources.nvml import gpu_reader, init_reader
from gpufeed.sources.nvml.quarantined import quarantined
from gpufeed.units import NS_PER_S

INIT_LANE: Final = LaneId("nvml-init")

_INIT_LATE_AFTER_NS: Final = 15 * NS_PER_S
_INIT_STUCK_AFTER_NS: Final = 60 * NS_PER_S
"""Without persistence mode a node of eight GPUs takes half a minute to wake up."""

_PROCESSES_PERIOD_NS: Final = 2 * NS_PER_S
"""Jobs are found by these lists; ten seconds would be late, the fast period too dear."""

_GPU_GROUPS: Final[tuple[tuple[GroupName, CollectorName], ...]] = (
    (gpu_reader.FAST, "nvml"),
    (gpu_reader.XID, "xid"),
    (gpu_reader.GPM, "gpm"),
    (gpu_reader.NVLINK, "nvlink"),
    (gpu_reader.PROCESSES, "nvml"),
    (gpu_reader.SLOW, "nvml"),
    (gpu_reader.LINKS, "nvlink"),
    (gpu_reader.RARE, "nvml"),
)
"""In the order of reading where several are due."""


class NvmlSource:
    """GPUs through NVML."""

    name = "nvml"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """The init lane, if anything is to be read of a GPU. Opens nothing."""
        gpu_groups = tuple(
            Group(name=name, collector=collector, period_ns=_period_ns(config, name))
            for name, collector in _GPU_GROUPS
            if config.options(collector).enabled
        )
        if not gpu_groups:
            return ()
        if config.driver_crashes:
            return (quarantined(INIT_LANE, _group(config, init_reader.DRIVER, "nvml"), config.driver_crashes),)
        return (
            LanePlan(
                lane=INIT_LANE,
                groups=(
                    _group(config, init_reader.DRIVER, "nvml"),
                    _group(config, init_reader.RELEASE, "self"),
                ),
                open=init_reader.open_init,
                spec=init_reader.InitSpec(gpu_groups=gpu_groups),
                late_after_ns=_INIT_LATE_AFTER_NS,
                stuck_after_ns=_INIT_STUCK_AFTER_NS,
            ),
        )


NVML: Final[Source] = NvmlSource()


def _group(config: ProbeConfig, name: GroupName, collector: CollectorName) -> Group:
    return Group(name=name, collector=collector, period_ns=config.period_ns(name))


def _period_ns(config: ProbeConfig, name: GroupName) -> int:
    if name == gpu_reader.PROCESSES and name not in config.periods_ns:
        return min(_PROCESSES_PERIOD_NS, config.slow_period_ns)
    return config.period_ns(name)
