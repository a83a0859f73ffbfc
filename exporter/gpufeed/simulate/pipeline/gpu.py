# SPDX-License-Identifier: Apache-2.0
"""One GPU of a judged node, as the faces and sensors see it: sums since the start, and the levels of now."""

import math
from dataclasses import replace
from typing import Final

from gpufeed.simulate.activity import Activity, Cause, HostShare
from gpufeed.simulate.block import GAUGES, INTEGRALS, INTS, MAX_XIDS, Record
from gpufeed.simulate.hardware import Board
from gpufeed.simulate.levels import HOST_INTEGRALS, Levels
from gpufeed.simulate.pipeline.meter import IDLE_TRAINER
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.track import POSITION, TRACKED

UTILIZATION_WINDOW_NS: Final = 500_000_000
POWER_WINDOW_NS: Final = 1_000_000_000
CALM_CPU_WAITING: Final = 0.01
"""Share of time in which some task of any busy rank waits for a processor."""

_RECEIVE: Final = POSITION["pcie_receive_bytes"]
_TRANSMIT: Final = POSITION["pcie_transmit_bytes"]
_GRAPHICS, _DRAM, _ENERGY = POSITION["graphics_s"], POSITION["dram_s"], POSITION["energy_j"]
_WARMING_S: Final = 8.0
_FIRST_PID: Final = 4000
_NS: Final = 1e9


class JudgedGpu:
    """One GPU, and the part of the host that feeds it."""

    def __init__(self, board: Board, site: Site) -> None:
        self.board = board
        self.site = site
        self.job = 0  # number of its job in the scenario; -1: none
        self.xids: list[int] = []
        self.recovery_action = 0
        self.is_lost = False
        self.is_port_down = False
        self.port_downs = 0
        self._temperature_c = site.track.level.activity.temperature_c

    @property
    def pid(self) -> int:
        """Of the process that holds the context; its loaders have the next ones."""
        return _FIRST_PID + 20 * self.board.index

    @property
    def truth(self) -> Cause:
        """The (state, cause) of the interval that begins now; the larger where two alternate within milliseconds."""
        return self.site.track.level.truth

    @property
    def truth_ns(self) -> dict[Cause, int]:
        """How long each (state, cause) was true since the start."""
        return self.site.track.truth_ns(self._now_ns)

    @property
    def levels(self) -> Levels:
        """Of now, on this model."""
        return self.site.track.level.of_model

    @property
    def activity(self) -> Activity:
        """Of now, with the host as it is now."""
        meter = self.site.meter
        host = HostShare(
            trainer_cpu=meter.trainer,
            loaders_running=math.ceil(meter.running) + meter.queued,
            loaders_blocked=meter.blocked + meter.swapping,
        )
        return replace(self.site.track.level.activity, host=host)

    @property
    def integrals(self) -> list[float]:
        """Sums since the start, in the order of TRACKED."""
        now_ns = self._now_ns
        sums = self.site.track.integrals(now_ns)
        sums[_RECEIVE] += self.site.copies_in.total(now_ns)
        sums[_TRANSMIT] += self.site.copies_out.total(now_ns)
        return sums

    def window(self, began_ns: int, ended_ns: int) -> list[float]:
        """What was added between two ages of the node, at most RECENT_NS ago, in the order of TRACKED."""
        added = self.site.track.window(began_ns, ended_ns)
        added[_RECEIVE] += self.site.copies_in.window(began_ns, ended_ns)
        added[_TRANSMIT] += self.site.copies_out.window(began_ns, ended_ns)
        return added

    @property
    def host(self) -> dict[str, float]:
        """Sums of the host's share since the start, by their names in HOST_INTEGRALS."""
        meter, now_ns = self.site.meter, self._now_ns
        meter.settle(now_ns)
        sums = dict.fromkeys(HOST_INTEGRALS, 0.0)
        tracked = self.site.track.integrals(now_ns)
        for at in range(len(INTEGRALS), len(TRACKED)):
            sums[TRACKED[at]] = tracked[at]
        for (kind, way), transfers in meter.transfers.items():
            size, operations, round_trip_s, queue_s = transfers.totals(now_ns)
            sums[f"{kind}_{way}_bytes"] = size
            sums[f"{kind}_{way}s"] = operations
            sums[f"{kind}_{way}_rtt_s"] = round_trip_s
            sums[f"{kind}_{way}_queue_s"] = queue_s
        sums["trainer_cpu_s"] = meter.trainer_cpu_s
        sums["loader_cpu_s"] = meter.loader_cpu_s
        sums["blocked_s"] = meter.blocked_s
        sums["io_waiting_s"], sums["io_stalled_s"] = meter.io_waiting_s, meter.io_stalled_s
        sums["cpu_waiting_s"] = meter.cpu_waiting_s + CALM_CPU_WAITING * meter.trainer_cpu_s
        sums["memory_waiting_s"], sums["memory_stalled_s"] = meter.memory_waiting_s, meter.memory_stalled_s
        return sums

    def host_total(self, name: str) -> float:
        """One sum of the host's share."""
        return self.host[name]

    def warm(self, duration_s: float) -> None:
        """The board's temperature follows what it did in the second that ends now."""
        target_c = self.site.track.level.activity.temperature_c
        self._temperature_c += (target_c - self._temperature_c) * -math.expm1(-duration_s / _WARMING_S)

    def record(self) -> Record:
        """For the block: in the order of INTEGRALS, GAUGES, INTS."""
        gauges, ints = self._gauges(), self._ints()
        return (
            *self.integrals[: len(INTEGRALS)],
            *(gauges[name] for name in GAUGES),
            *(ints.get(name, 0) for name in INTS),
        )

    @property
    def _now_ns(self) -> int:
        return self.site.calendar.now

    def _gauges(self) -> dict[str, float]:
        now_ns = self._now_ns
        ended_ns = now_ns - now_ns % UTILIZATION_WINDOW_NS
        last = self.window(max(0, ended_ns - UTILIZATION_WINDOW_NS), ended_ns)
        began_ns = max(0, now_ns - POWER_WINDOW_NS)
        instant_w = self.levels.power_w
        mean_w = self.window(began_ns, now_ns)[_ENERGY] / ((now_ns - began_ns) / _NS) if now_ns else instant_w
        return {
            "utilization_ratio": last[_GRAPHICS] / (UTILIZATION_WINDOW_NS / _NS),
            "memory_utilization_ratio": last[_DRAM] / (UTILIZATION_WINDOW_NS / _NS),
            "power_w": mean_w if self.board.model.has_power_average else instant_w,
            "power_instant_w": instant_w,
            "temperature_c": self._temperature_c,
            "memory_temperature_c": self._temperature_c + 8.0,
            "sm_clock_mhz": self.levels.sm_clock_mhz,
            "memory_clock_mhz": float(self.board.model.memory_clock_mhz),
            "memory_used_bytes": self.levels.memory_used_bytes,
        }

    def _ints(self) -> dict[str, int]:
        model, links = self.board.model, self.links_up
        is_held = self.site.track.level.activity.occupant == "held"
        recent = range(max(0, len(self.xids) - MAX_XIDS), len(self.xids))
        return {
            "lost": int(self.is_lost),
            "clock_events": self.levels.clock_events,
            "recovery_action": self.recovery_action,
            "links_up": links,
            "pcie_generation": model.pcie_generation,
            "pcie_width": self.pcie_width,
            "xids": len(self.xids),
            **{f"xid{number % MAX_XIDS}": self.xids[number] for number in recent},
            "processes": int(is_held),
            "pid0": self.pid if is_held else 0,
            "bytes0": int(self.levels.memory_used_bytes) if is_held else 0,
        }

    @property
    def links_up(self) -> int:
        """NVLinks that work."""
        left = self.site.conditions.factor("nvlink_down", self.board.index)
        return round(self.board.model.nvlink_links * left)

    @property
    def pcie_width(self) -> int:
        """Lanes of the link as it is."""
        left = self.site.conditions.factor("pcie_narrow", self.board.index)
        return max(1, round(self.board.model.pcie_width * left))

    @property
    def is_working(self) -> bool:
        """Whether its main thread is on a processor now."""
        return self.site.meter.trainer >= IDLE_TRAINER
