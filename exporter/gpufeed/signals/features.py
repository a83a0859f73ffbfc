# SPDX-License-Identifier: Apache-2.0
"""What one GPU did in an interval, as ratios of what it could: all that the split into states looks at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpufeed.model.fabric import IbCounters
from gpufeed.model.gpu import GpmInterval, GpuFast, GpuIdentity, GpuSlow, NvlinkTotals
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.signals.affinity import ports_of
from gpufeed.signals.footprint import UNKNOWN, Footprint, Levels
from gpufeed.signals.inventory import holds_memory, is_held
from gpufeed.signals.jobs import peers_of
from gpufeed.signals.link_trouble import trouble_of
from gpufeed.signals.pcie import ACHIEVABLE, link_bytes_per_s, link_ceiling
from gpufeed.signals.timeline import lowest, mean_of
from gpufeed.signals.view import View
from gpufeed.units import NS_PER_S

CONFLICT_MARGIN: Final = 0.3
"""Pipes that work longer than a kernel is resident by this much: one of the two readings is wrong."""
POWER_IDLE_SHARE: Final = 0.1
"""Of the limit: what an idle board draws, until its own has been learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFeatures:
    """Means over an interval. None: not known; every ratio is 0 to 1 unless said otherwise."""

    active: float  # a kernel was resident
    has_gpm: bool = False
    sm: float | None = None
    tensor: float | None = None
    dram: float | None = None
    memory_utilization: float | None = None
    power: float | None = None  # between idle and limit
    nvlink: float | None = None  # of one direction's capacity, the busier one
    fabric: float | None = None  # of the rate of the port nearest to this GPU
    has_nvlink: bool = False
    pcie_receive: float | None = None  # of what is achievable on the link as it is
    pcie_transmit: float | None = None
    pcie_bytes_per_s: float | None = None  # both directions
    thermal: float = 0.0  # share of time
    power_brake: float = 0.0
    power_cap: float = 0.0
    clock_lowest: float | None = None  # of the highest there is, in and around the interval
    clock_mean: float | None = None
    is_nvlink_degraded: bool = False
    is_fabric_degraded: bool = False
    is_fabric_congested: bool = False
    is_fabric_lossy: bool = False
    is_held: bool | None = None
    has_peers: bool = False  # another GPU of this node works for the same job
    active_around: float = 0.0  # mean over the seconds around the interval, as long as the host's evidence
    peer_active: float = 0.0  # of the most active of them
    peer_sm: float | None = None  # of the busiest of them, per its active time
    is_sharing: bool = False  # other parts of the board are held too: what the host does may be for them
    peer_entered_s: float | None = None  # see Footprint.entered_s: of the peer that has fewest
    footprint: Footprint = UNKNOWN  # of this job's computing

    @property
    def has_link_trouble(self) -> bool:
        """Whether some link of the job is known to be slower than it should be."""
        return self.is_nvlink_degraded or self.is_fabric_degraded or self.is_fabric_congested or self.is_fabric_lossy

    @property
    def traffic(self) -> float:
        """The busier of the two interconnects."""
        return max(self.nvlink or 0.0, self.fabric or 0.0)

    def per_active(self, value: float | None) -> float:
        """A share of the interval as a share of its active part."""
        return min(1.0, (value or 0.0) / self.active) if self.active > 0 else 0.0

    @property
    def is_contradictory(self) -> bool:
        """Pipes worked while no kernel was resident."""
        return max(self.tensor or 0.0, self.sm or 0.0) > self.active + CONFLICT_MARGIN


def features(
    key: GpuKey,
    view: View,
    began_ns: int,
    ended_ns: int,
    footprint: Footprint = UNKNOWN,
    peer_entered_s: float | None = None,
) -> GpuFeatures | None:
    """What is known of one GPU over an interval; None where it is not known whether a kernel was resident."""
    gpm = view.mean(GpmInterval, key, began_ns, ended_ns)
    fast = view.mean(GpuFast, key, began_ns, ended_ns)
    if (active := gpm.get("graphics", fast.get("utilization"))) is None:
        return None
    identity = identity_of(key, view)
    wide_ns = (began_ns - NS_PER_S, ended_ns + NS_PER_S)
    return GpuFeatures(
        active=active,
        has_gpm="graphics" in gpm,
        sm=gpm.get("sm"),
        tensor=gpm.get("tensor"),
        dram=gpm.get("dram"),
        memory_utilization=fast.get("memory_utilization"),
        power=_power(key, view, *wide_ns) if "graphics" not in gpm else None,
        **_nvlink(key, identity, view, gpm, (began_ns, ended_ns))._asdict(),
        fabric=_fabric(key.uuid, view, began_ns, ended_ns),
        **_pcie(key, identity, view, gpm)._asdict(),
        thermal=fast.get("thermal", 0.0),
        power_brake=fast.get("power_brake", 0.0),
        power_cap=fast.get("power_cap", 0.0),
        **clock_of(key, identity, view, *wide_ns)._asdict(),
        **trouble_of(key.uuid, view, began_ns, ended_ns)._asdict(),
        is_held=holds_memory(fast.get("memory_used"), None) or is_held(key.uuid, view.samples),
        has_peers=bool(peers_of(key.uuid, view)),
        active_around=_active(key, view, *wide_ns) or active,
        peer_active=_peer_active(key.uuid, view, began_ns, ended_ns) if active < RESIDENT_MIN else 0.0,
        peer_sm=_peer_sm(key.uuid, view, began_ns, ended_ns) if _may_wait(gpm) else None,
        peer_entered_s=peer_entered_s,
        footprint=footprint,
    )


def levels_of(of: GpuFeatures) -> Levels:
    """What the footprint of the job is learned from."""
    return Levels(
        active=of.active,
        sm=of.sm,
        tensor=of.tensor,
        power=of.power,
        memory=of.memory_utilization,
        nvlink=of.nvlink or 0.0,
        fabric=of.fabric or 0.0,
    )


def identity_of(key: GpuKey, view: View) -> GpuIdentity | None:
    """Who the board is."""
    record = view.records.get(key.uuid)
    return record.identity if record is not None else None


class Pcie(NamedTuple):
    """By the names that features have for it."""

    pcie_receive: float | None
    pcie_transmit: float | None
    pcie_bytes_per_s: float | None


class Clock(NamedTuple):
    """Likewise."""

    clock_lowest: float | None
    clock_mean: float | None


class Nvlink(NamedTuple):
    """Likewise."""

    nvlink: float | None
    has_nvlink: bool


def _pcie(key: GpuKey, identity: GpuIdentity | None, view: View, gpm: Mapping[str, float]) -> Pcie:
    """Receive and transmit as shares of what a copy can reach, and both in bytes per second.

    A narrowed link is full sooner: what counts is the link as it is now.
    """
    slow: GpuSlow | None = view.latest(GpuSlow, key)
    link = None if slow is None else link_bytes_per_s(slow.pcie_generation, slow.pcie_width)
    ceiling = ACHIEVABLE * (link if link is not None else link_ceiling(identity))
    receive, transmit = gpm.get("pcie_receive"), gpm.get("pcie_transmit")
    copied = None if receive is None or transmit is None else receive + transmit
    return Pcie(_of(receive, ceiling), _of(transmit, ceiling), copied)


def clock_of(key: GpuKey, identity: GpuIdentity | None, view: View, began_ns: int, ended_ns: int) -> Clock:
    """The lowest and the mean clock, as shares of the highest there is."""
    most = identity.sm_clock_max_hz if identity is not None else None
    if not most:
        return Clock(None, None)
    line = view.line(GpuFast, key)
    return Clock(
        _of(lowest(line, "sm_clock", began_ns, ended_ns), most),
        _of(mean_of(line, "sm_clock", began_ns, ended_ns), most),
    )


def _power(key: GpuKey, view: View, began_ns: int, ended_ns: int) -> float | None:
    line = view.line(GpuFast, key)
    power = mean_of(line, "power", began_ns, ended_ns)
    limit = mean_of(line, "power_limit", began_ns, ended_ns)
    if power is None or limit is None or limit <= 0:
        return None
    idle = view.baselines.usual("power_idle", key.uuid) or POWER_IDLE_SHARE * limit
    return min(1.0, max(0.0, (power - idle) / (limit - idle))) if limit > idle else None


def _of(value: float | None, most: float) -> float | None:
    return None if value is None else value / most


def _nvlink(
    key: GpuKey, identity: GpuIdentity | None, view: View, gpm: Mapping[str, float], interval: tuple[int, int]
) -> Nvlink:
    """Share of capacity, and whether there are links at all."""
    totals: NvlinkTotals | None = view.latest(NvlinkTotals, key)
    links = totals.links if totals is not None else None
    if links is None and identity is not None:
        links = identity.nvlink_links
    means = view.mean(NvlinkTotals, key, *interval)
    rate = max(
        (
            value
            for value in (
                means.get("receive"),
                means.get("transmit"),
                gpm.get("nvlink_receive"),
                gpm.get("nvlink_transmit"),
            )
            if value is not None
        ),
        default=None,
    )
    speed = identity.nvlink_speed_bytes_per_s if identity is not None else None
    if rate is None or not links or not speed:
        return Nvlink(None, has_nvlink=bool(links))
    return Nvlink(min(1.0, rate / (links * speed)), has_nvlink=True)


def _fabric(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> float | None:
    """Share of the rate of the busiest of the nearest ports."""
    busiest = None
    for limit in ports_of(uuid, view):
        means = view.mean(IbCounters, limit.port, began_ns, ended_ns)
        moved = max(means.get("receive", -1.0), means.get("transmit", -1.0))
        if moved >= 0 and limit.bytes_per_s:
            busiest = max(busiest or 0.0, min(1.0, moved / limit.bytes_per_s))
    return busiest


def _may_wait(gpm: Mapping[str, float]) -> bool:
    """Whether it matters what the peers do: only for a GPU that is resident throughout and not at full work."""
    active = gpm.get("graphics", 0.0)
    return active >= RESIDENT_MIN and gpm.get("sm", 1.0) <= (1 - PEER_LEAD) * active


RESIDENT_MIN: Final = 0.95
PEER_LEAD: Final = 0.2
"""A peer whose SMs do this much more, while this GPU has a kernel all the time, is being waited for."""


def _peer_active(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> float:
    return max((_active(GpuKey(peer), view, began_ns, ended_ns) or 0.0 for peer in peers_of(uuid, view)), default=0.0)


def _active(key: GpuKey, view: View, began_ns: int, ended_ns: int) -> float | None:
    gpm = view.mean(GpmInterval, key, began_ns, ended_ns)
    return gpm.get("graphics", view.mean(GpuFast, key, began_ns, ended_ns).get("utilization"))


def _peer_sm(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> float | None:
    found = []
    for peer in peers_of(uuid, view):
        gpm = view.mean(GpmInterval, GpuKey(peer), began_ns, ended_ns)
        if gpm.get("graphics", 0.0) > 0 and "sm" in gpm:
            found.append(min(1.0, gpm["sm"] / gpm["graphics"]))
    return max(found, default=None)
