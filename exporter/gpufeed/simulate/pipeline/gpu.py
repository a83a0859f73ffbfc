# SPDX-License-Identifier: Apache-2.0
"""One GPU of a judged node, as faces and sensors see it: sums since the start, and the levels of now."""

import math
from dataclasses import replace
from typing import Final

from gpufeed.simulate.activity import Activity, Cause, HostShare
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.hardware import Board
from gpufeed.simulate.levels import HOST_INTEGRALS, Levels
from gpufeed.simulate.pipeline.meter import CALM_CPU_WAITING
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.track import POSITION, TRACKED

_RECEIVE: Final = POSITION["pcie_receive_bytes"]
_TRANSMIT: Final = POSITION["pcie_transmit_bytes"]
_WARMING_S: Final = 8.0


class JudgedGpu:
    """One GPU, and the part of the host that feeds it."""

    def __init__(self, board: Board, site: Site) -> None:
        self.board = board
        self.site = site
        self.job = -1  # number of its job in the scenario; -1: none
        self.xids: list[int] = []
        self.recovery_action = 0
        self.is_lost = False
        self.is_port_down = False  # of the network card beside it
        self.port_downs = 0
        self.temperature_c = site.track.level.activity.temperature_c

    @property
    def truth(self) -> Cause:
        """The (state, cause) of the interval that begins now; the larger where two alternate within milliseconds."""
        return self.site.track.level.truth

    @property
    def truth_ns(self) -> dict[Cause, int]:
        """How long each (state, cause) was true since the start."""
        return self.site.track.truth_ns(self._now_ns)

    @property
    def roots_ns(self) -> dict[Cause, int]:
        """Time it waited for peers, up to the last time they met, by what held up the last of them."""
        return dict(self.site.roots_ns)

    @property
    def levels(self) -> Levels:
        """Of now, on this model: power, clock, memory, clock events."""
        return self.site.track.level.of_model

    @property
    def activity(self) -> Activity:
        """Of now, with the tasks of the host as they are now."""
        meter = self.site.meter
        host = HostShare(
            trainer_cpu=meter.trainer,
            loaders_running=math.ceil(meter.running) + meter.queued,
            loaders_blocked=meter.blocked + meter.swapping,
        )
        return replace(self.site.track.level.activity, host=host)

    @property
    def integrals(self) -> list[float]:
        """Sums since the start, in the order of TRACKED: `INTEGRALS` of the block, then the port's."""
        now_ns = self._now_ns
        sums = self.site.track.integrals(now_ns)
        sums[_RECEIVE] += self.site.copies_in.total(now_ns) + self._read_by_gpu(now_ns)
        sums[_TRANSMIT] += self.site.copies_out.total(now_ns)
        return sums

    def window(self, began_ns: int, ended_ns: int) -> list[float]:
        """What was added between two ages of the node, at most RECENT_NS ago, in the order of TRACKED.

        What the GPU itself reads from storage is missing here.
        """
        added = self.site.track.window(began_ns, ended_ns)
        added[_RECEIVE] += self.site.copies_in.window(began_ns, ended_ns)
        added[_TRANSMIT] += self.site.copies_out.window(began_ns, ended_ns)
        return added

    @property
    def host(self) -> dict[str, float]:
        """Sums of the host's share since the start: HOST_INTEGRALS, and more that the simple scenarios have not.

        `{kind}_{read|write|open}…` for each kind of storage in use: `_bytes`, `s` (operations), `_rtt_s`, `_queue_s`;
        `blocked_s`: seconds of tasks in uninterruptible sleep; `ib_lost_packets`.
        """
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
        """One sum of the host's share; 0 for what this rank has nothing of."""
        return self.host.get(name, 0.0)

    def warm(self, duration_s: float) -> None:
        """The board's temperature follows what it does at the end of a time that ends now."""
        target_c = self.site.track.level.activity.temperature_c
        self.temperature_c += (target_c - self.temperature_c) * -math.expm1(-duration_s / _WARMING_S)

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
    def port_bytes_per_s(self) -> float:
        """Rate of the network card's port as it is."""
        return self.board.model.nic_bytes_per_s * self.site.conditions.factor("fabric_slow", self.board.index)

    @property
    def _now_ns(self) -> int:
        return self.site.calendar.now

    def _read_by_gpu(self, now_ns: int) -> float:
        reads = self.site.meter.transfers.get(("gds", "read"))
        return reads.totals(now_ns)[0] if reads is not None else 0.0
