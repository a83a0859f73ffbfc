# SPDX-License-Identifier: Apache-2.0
"""Checks of a storage target."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from gpufeed.health.finding import OK, Finding
from gpufeed.health.latches import Latches
from gpufeed.model.ids import StorageKey
from gpufeed.model.state import NodeState
from gpufeed.model.storage import StorageCounters
from gpufeed.units import NS_PER_S

StorageCheck = Callable[[StorageKey, NodeState, Latches], Finding | None]

REMEMBERED_NS: Final = 15 * 60 * NS_PER_S


def growing(counter: str, text: str, storage: StorageKey, state: NodeState, latches: Latches) -> Finding | None:
    """A counter of failures has grown within the last quarter of an hour."""
    growth = latches.baselines.storage_errors.get(storage, {}).get(counter)
    if growth is None or storage not in state.latest(StorageCounters):
        return None
    if growth.grown_at_ns is None or state.time.monotonic_ns - growth.grown_at_ns > REMEMBERED_NS:
        return OK
    return Finding(1, f"{storage.kind} {storage.target} {text} in the last 15 minutes", "investigate")


STORAGE_CHECKS: Final[Mapping[str, StorageCheck]] = MappingProxyType(
    {
        "timeouts": partial(growing, "timeouts", "timed out"),
        "errors": partial(growing, "errors", "reported errors"),
    }
)
