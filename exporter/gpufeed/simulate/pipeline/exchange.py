# SPDX-License-Identifier: Apache-2.0
"""Exchanges between the ranks of a job: nobody's begins before the last of them comes, and it takes all as long."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from gpufeed.simulate.activity import Activity, Cause
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.pipeline.calendar import Calendar, Gate, Process
from gpufeed.simulate.pipeline.chance import about_one
from gpufeed.simulate.pipeline.conditions import Conditions
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.stages import Speeds, Stage
from gpufeed.simulate.pipeline.track import Level, Palette
from gpufeed.simulate.pipeline.workload import Collective, Remote, TroubleKind

SHORTEST_NS: Final = 200_000
"""A part of an exchange that is shorter is left out: no sensor sees it."""
SATURATED: Final = 0.78
"""Share of the links' rate from which on nothing more goes through."""
SPINNING_CORES: Final = 1.0
CALM_WAITING: Final = 0.05
"""Share of time a port that sends at its full rate has no credit, on a network that is well."""
LOST_PACKETS_PER_S: Final = 2000.0

_SPIN: Final = Activity(
    truth=("starved", "peer"), graphics=1.0, sm=0.15, occupancy=0.03, dram=0.005, power=0.13, clock=0.95,
    temperature_c=50.0,
)  # fmt: skip
_MOVE: Final = Activity(
    truth=("communicating", "nvlink"), graphics=1.0, sm=0.18, occupancy=0.05, dram=0.12, power=0.4, clock=0.97,
    temperature_c=58.0,
)  # fmt: skip
_FABRIC_TROUBLES: Final[tuple[TroubleKind, ...]] = ("fabric_slow", "fabric_congested", "fabric_lossy")


class Leg(NamedTuple):
    """A part of an exchange: how long, and what it looks like."""

    duration_ns: int
    level: Level


class Exchanges:
    """The barrier of one job, and the links its exchanges use."""

    def __init__(
        self, gpus: Sequence[int], palette: Palette, conditions: Conditions, calendar: Calendar, speeds: Speeds
    ) -> None:
        self._gpus = gpus
        self._palette = palette
        self._conditions = conditions
        self._calendar = calendar
        self._speeds = speeds
        self._here = 0
        self._gate = Gate()
        self._legs: tuple[Leg, ...] = ()
        self._root: Cause = ("busy", "other")  # why the last rank came last
        self.remote: RemoteRanks | None = None

    def join(self, site: Site, of: Collective, computed_ns: int) -> Process:
        """One rank's part of an exchange that followed computing of this length."""
        if not self._speeds.is_free(Stage.PEER):
            yield from self._meet(site, of, computed_ns)
            legs = self._legs
        else:
            legs = self._plan(of, computed_ns)
        for leg in legs:
            site.begin(leg.level, SPINNING_CORES)
            yield leg.duration_ns

    def _meet(self, site: Site, of: Collective, computed_ns: int) -> Process:
        came_ns = self._calendar.now
        self._here += 1
        if self._here < len(self._gpus):
            site.begin(self._spin(of.engine), SPINNING_CORES)
            yield self._gate
            site.roots_ns[self._root] += self._calendar.now - came_ns
        else:
            self._root = site.excuse()
            yield from self._meet_remote(site, of)
            self._here = 0
            self._legs = self._plan(of, computed_ns)
            if self.remote is not None:
                self.remote.leaves_ns = self._calendar.now + sum(leg.duration_ns for leg in self._legs)
            self._calendar.open(self._gate)
        site.excuses.clear()

    def _meet_remote(self, site: Site, of: Collective) -> Process:
        """Ranks on other nodes take part where anything moves."""
        if self.remote is None or not (of.nvlink_bytes or of.fabric_bytes):
            return
        late_ns = self.remote.late_ns()
        if late_ns != 0:
            site.begin(self._spin(of.engine), SPINNING_CORES)
            self._root = ("starved", "peer")
            # for a rank that never comes, at a gate that nobody opens
            yield Gate() if late_ns is None else late_ns
            site.roots_ns[self._root] += late_ns or 0

    def _plan(self, of: Collective, computed_ns: int) -> tuple[Leg, ...]:
        model = self._palette.model
        near = self._conditions.lowest("nvlink_down", self._gpus)
        far = min(self._conditions.lowest(kind, self._gpus) for kind in _FABRIC_TROUBLES)
        near_s = of.nvlink_bytes / (model.nvlink_bytes_per_s * of.nvlink_reach * near)
        far_s = of.fabric_bytes / (model.nic_bytes_per_s * of.fabric_reach * far)
        near_ns, far_ns = self._speeds.ns(Stage.NVLINK, near_s), self._speeds.ns(Stage.FABRIC, far_s)
        whole_ns = near_ns + far_ns
        if not whole_ns:
            return ()
        # what passes behind the computing is at most what the computing lasts
        shown = 1 - min(of.overlap, computed_ns / whole_ns)
        legs = (Leg(int(near_ns * shown), self._near(of, near)), Leg(int(far_ns * shown), self._far(of, far)))
        return tuple(leg for leg in legs if leg.duration_ns >= SHORTEST_NS)

    def _near(self, of: Collective, left: float) -> Level:
        is_full = left < 1 or of.nvlink_reach >= SATURATED
        truth = ("starved", "nvlink") if is_full else ("communicating", "nvlink")
        known = self._palette.known("nvlink", of, left)
        return known or self._palette.make(
            replace(_engine(_MOVE, of), truth=truth, nvlink=of.nvlink_reach * left), key=("nvlink", of, left)
        )

    def _far(self, of: Collective, left: float) -> Level:
        gpu = self._gpus[0]
        is_held = self._conditions.is_there("fabric_congested", gpu)
        is_lossy = self._conditions.is_there("fabric_lossy", gpu)
        key = ("fabric", of, left, is_held, is_lossy)
        known = self._palette.known(*key)
        if known is not None:
            return known
        is_full = left < 1 or of.fabric_reach >= SATURATED
        truth: Cause = ("starved", "fabric") if is_full else ("communicating", "fabric")
        moving = replace(
            _engine(_MOVE, of),
            truth=truth,
            dram=0.05,
            power=0.3,
            fabric=of.fabric_reach * left,
            fabric_waiting=0.5 if is_held else CALM_WAITING * of.fabric_reach,
            fabric_lost=LOST_PACKETS_PER_S if is_lossy else 0.0,
        )
        return self._palette.make(_through_pcie(moving, self._palette.model), key=key)

    def _spin(self, engine: str) -> Level:
        known = self._palette.known("spin", engine)
        if known is not None:
            return known
        activity = _SPIN if engine == "sm" else without_kernel(_SPIN)
        return self._palette.make(activity, key=("spin", engine))


class RemoteRanks:
    """The last of the ranks on other nodes: comes so long after the exchange before."""

    def __init__(
        self, of: Remote, computing_s: float, calendar: Calendar, random: Random, conditions: Conditions
    ) -> None:
        self.leaves_ns = 0
        self._of = of
        self._computing_s = computing_s
        self._calendar = calendar
        self._random = random
        self._conditions = conditions

    def late_ns(self) -> int | None:
        """How long it will still be; None: for ever."""
        of, now = self._of, self._calendar.now
        if of.hangs_at_s is not None and now >= of.hangs_at_s * 1e9:
            return None
        factor = of.slowness / self._conditions.factor("remote_slow", 0)
        takes_s = self._computing_s * factor * about_one(self._random, of.spread)
        return max(0, self.leaves_ns + int(takes_s * 1e9) - now)


def with_hidden(activity: Activity, of: Collective, seconds: float, model: GpuModel) -> Activity:
    """Computing for so long, with the part of an exchange behind it that can be there."""
    if not of.overlap or not seconds:
        return activity
    near = of.overlap * of.nvlink_bytes / seconds / model.nvlink_bytes_per_s
    far = min(of.fabric_reach, of.overlap * of.fabric_bytes / seconds / model.nic_bytes_per_s)
    moving = replace(activity, nvlink=min(near, of.nvlink_reach), fabric=far, fabric_waiting=CALM_WAITING * far)
    return _through_pcie(moving, model)


def without_kernel(activity: Activity) -> Activity:
    """The same, done by copy engines or by nobody."""
    return replace(activity, graphics=0.0, sm=0.0, occupancy=0.0)


def _through_pcie(activity: Activity, model: GpuModel) -> Activity:
    """The network card reads and writes device memory through PCIe."""
    share = min(1.0, activity.fabric * model.nic_bytes_per_s / model.pcie_bytes_per_s)
    return replace(activity, pcie_receive=share, pcie_transmit=share)


def _engine(activity: Activity, of: Collective) -> Activity:
    return activity if of.engine == "sm" else without_kernel(replace(activity, power=0.22))
