# SPDX-License-Identifier: Apache-2.0
"""Storage, fabric and host as the page and the API show them: what flows now, of what could."""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from gpufeed.history.rates import Watched
from gpufeed.model.fabric import IbCounters, IbPort
from gpufeed.model.host import Pressure
from gpufeed.model.state import NodeState
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.web.shape import PortView, PressureView, StorageView

Rates = Callable[[type[Watched], Hashable], Mapping[str, float]]

_ACTIVE: Final = 4
_LEVELS: Final = ("ok", "degraded", "failed")


def storage(state: NodeState, rates: Rates) -> tuple[StorageView, ...]:
    """Every storage target, file systems before disks, the busiest first."""
    infos = state.latest(StorageInfo)
    found = []
    for subject, held in state.latest(StorageCounters).items():
        key, rate, info = held.sample.storage, rates(StorageCounters, subject), infos.get(subject)
        reads = rate.get("reads", 0.0)
        found.append(
            StorageView(
                kind=key.kind,
                target=key.target,
                source=info.sample.source if info is not None else None,
                read_bytes_per_second=rate.get("read_bytes"),
                write_bytes_per_second=rate.get("write_bytes"),
                read_latency_seconds=rate["read_s"] / reads if reads > 0 and "read_s" in rate else None,
                busy=min(rate["busy_s"], 1.0) if "busy_s" in rate else None,
                health=_health(state, key),
            )
        )
    return tuple(sorted(found, key=lambda one: (one.kind == "block", one.kind, one.target)))


def fabric(state: NodeState, rates: Rates) -> tuple[PortView, ...]:
    """Every port of the cluster's interconnect."""
    found = []
    for subject, held in state.latest(IbPort).items():
        port, rate = held.sample, rates(IbCounters, subject)
        busier = max(rate.values(), default=None)
        found.append(
            PortView(
                device=port.port.device,
                port=port.port.port,
                link_layer=port.link_layer,
                active=port.state_id == _ACTIVE if port.state_id is not None else None,
                rate_bytes_per_second=port.rate_bytes_per_s,
                receive_bytes_per_second=rate.get("receive_bytes"),
                transmit_bytes_per_second=rate.get("transmit_bytes"),
                used=busier / port.rate_bytes_per_s if busier is not None and port.rate_bytes_per_s else None,
                health=_health(state, port.port),
            )
        )
    return tuple(sorted(found, key=lambda one: (one.device, one.port)))


def pressure(state: NodeState, rates: Rates) -> tuple[PressureView, ...]:
    """Of the whole host, not of single jobs."""
    found = []
    for subject, held in state.latest(Pressure).items():
        rate = rates(Pressure, subject)
        if not held.sample.cgroup and "waiting_s" in rate:
            stalled = min(rate["stalled_s"], 1.0) if "stalled_s" in rate else None
            found.append(PressureView(held.sample.resource, min(rate["waiting_s"], 1.0), stalled))
    return tuple(sorted(found, key=lambda one: one.resource))


def _health(state: NodeState, subject: Hashable) -> str:
    return _LEVELS[max((one.level for one in state.verdicts.values() if one.subject == subject), default=0)]
