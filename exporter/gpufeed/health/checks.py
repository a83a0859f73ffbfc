# SPDX-License-Identifier: Apache-2.0
"""Every check of every thing: what there is to say about the node right now."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.health.finding import Finding
from gpufeed.health.gpu import GPU_CHECKS
from gpufeed.health.host import HOST_CHECKS
from gpufeed.health.ib import IB_CHECKS
from gpufeed.health.itself import SELF_CHECKS
from gpufeed.health.latches import Latches
from gpufeed.health.storage import STORAGE_CHECKS
from gpufeed.model.fabric import IbPort
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import NodeState, Subject
from gpufeed.model.storage import StorageCounters

CHECKS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "gpufeed_gpu_health": tuple(GPU_CHECKS),
        "gpufeed_ib_health": tuple(IB_CHECKS),
        "gpufeed_storage_health": tuple(STORAGE_CHECKS),
        "gpufeed_host_health": tuple(HOST_CHECKS),
        "gpufeed_self_health": tuple(SELF_CHECKS),
    }
)
"""Values of the label `check`, by the metric that carries it."""


def findings(state: NodeState, latches: Latches) -> Iterator[tuple[Subject, str, Finding | None]]:
    """What every check says of every thing; None where it cannot know."""
    for uuid, gpu in state.gpus.items():
        for name, of_gpu in GPU_CHECKS.items():
            yield GpuKey(uuid), name, of_gpu(gpu, state, latches)
    for port in state.latest(IbPort).values():
        for name, of_port in IB_CHECKS.items():
            yield port.sample.port, name, of_port(port.sample.port, state, latches)
    for storage in state.latest(StorageCounters).values():
        for name, of_storage in STORAGE_CHECKS.items():
            yield storage.sample.storage, name, of_storage(storage.sample.storage, state, latches)
    for name, of_host in HOST_CHECKS.items():
        yield "host", name, of_host(state, latches)
    for name, of_self in SELF_CHECKS.items():
        yield "self", name, of_self(state, latches)
