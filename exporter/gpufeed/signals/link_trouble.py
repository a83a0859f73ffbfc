# SPDX-License-Identifier: Apache-2.0
"""Links that carry less than they should: of any GPU of the job, since a collective is as fast as its slowest link."""

from typing import Final, NamedTuple

from gpufeed.model.fabric import IbCounters, IbErrors
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey
from gpufeed.signals.affinity import PortLimits, ports_of
from gpufeed.signals.baselines import port_name
from gpufeed.signals.jobs import peers_of
from gpufeed.signals.view import View
from gpufeed.units import NS_PER_S

CONGESTED_FACTOR: Final = 3.0
"""So many times the waiting per byte that is usual at this port."""
LOST_PER_S: Final = 10.0
"""Packets that had to be sent again: a network without loss shows none, and a few of them halve a connection's rate."""
ERRORS_REACH_NS: Final = 30 * NS_PER_S
"""Error counters are read every ten seconds: the last reading stands until the next but two."""


class LinkTrouble(NamedTuple):
    """What is known to be wrong with the links of one job; by the names that features have for it."""

    is_nvlink_degraded: bool = False
    is_fabric_degraded: bool = False
    is_fabric_congested: bool = False
    is_fabric_lossy: bool = False


def trouble_of(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> LinkTrouble:
    """Of the links of this GPU and of those it works with."""
    members = (uuid, *peers_of(uuid, view))
    every = [_known(one, view, began_ns, ended_ns) for one in members]
    return LinkTrouble(
        is_nvlink_degraded=any(one.is_nvlink_degraded for one in every),
        is_fabric_degraded=any(one.is_fabric_degraded for one in every),
        is_fabric_congested=any(one.is_fabric_congested for one in every),
        is_fabric_lossy=any(one.is_fabric_lossy for one in every),
    )


def _known(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> LinkTrouble:
    found: LinkTrouble = view.once(("trouble", uuid, began_ns, ended_ns), lambda: _own(uuid, view, began_ns, ended_ns))
    return found


def _own(uuid: GpuUuid, view: View, began_ns: int, ended_ns: int) -> LinkTrouble:
    ports = ports_of(uuid, view)
    return LinkTrouble(
        is_nvlink_degraded=view.once(("nvlink", uuid), lambda: _is_nvlink_degraded(uuid, view)),
        is_fabric_degraded=any(limit.is_degraded for limit in ports),
        is_fabric_congested=any(_is_congested(limit, view, began_ns, ended_ns) for limit in ports),
        is_fabric_lossy=any(_is_lossy(limit.port, view, ended_ns) for limit in ports),
    )


def _is_nvlink_degraded(uuid: GpuUuid, view: View) -> bool:
    totals: NvlinkTotals | None = view.latest(NvlinkTotals, GpuKey(uuid))
    record = view.records.get(uuid)
    links = totals.links if totals is not None else None
    if links is None and record is not None and record.identity is not None:
        links = record.identity.nvlink_links
    up = totals.links_up if totals is not None else None
    return bool(links and up is not None and 0 < up < links)


def _is_congested(limit: PortLimits, view: View, began_ns: int, ended_ns: int) -> bool:
    means = view.mean(IbCounters, limit.port, began_ns, ended_ns)
    usual = view.baselines.usual("wait_per_byte", port_name(limit.port))
    sent, wait = means.get("transmit", 0.0), means.get("wait", 0.0)
    return usual is not None and sent > 0 and wait / sent >= CONGESTED_FACTOR * usual


def _is_lossy(port: IbPortKey, view: View, ended_ns: int) -> bool:
    line = view.line(IbErrors, port)
    if not line or ended_ns - line[-1].ended_ns > ERRORS_REACH_NS:
        return False
    return line[-1].values.get("lost", 0.0) >= LOST_PER_S
