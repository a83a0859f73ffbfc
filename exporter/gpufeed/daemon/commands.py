# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a running server over its control socket."""

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gpufeed.clock import Clock
from gpufeed.control import Arguments, Command, ControlError
from gpufeed.daemon.node import NodeKeeper
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import NodeState
from gpufeed.units import nanoseconds
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.view import view
from gpufeed.wire.supervisor import ProbeSupervisor

RELEASE_FOR_S: Final = 600.0
_LONGEST_RELEASE_S: Final = 86_400.0


def commands(
    node: NodeKeeper, supervisor: ProbeSupervisor, endpoints: Endpoints, clock: Clock
) -> Mapping[str, Command]:
    """The commands by name."""

    async def ping(_: Arguments) -> object:
        return {"pid": os.getpid(), "version": endpoints.identity.version}

    async def status(_: Arguments) -> object:
        told: Any = msgspec.to_builtins(view(endpoints))
        return told

    async def reload(_: Arguments) -> object:
        await endpoints.reload()
        return "reloaded"

    async def ack(arguments: Arguments) -> object:
        uuid = _gpu(arguments.get("gpu"), node.state)
        node.acknowledge(uuid)
        return {"uuid": uuid}

    async def release(arguments: Arguments) -> object:
        for_s = _release_s(arguments.get("for_s", RELEASE_FOR_S))
        supervisor.release(clock.monotonic_ns() + nanoseconds(for_s))
        return {"for_s": for_s}

    async def resume(_: Arguments) -> object:
        supervisor.resume()
        return "resumed"

    return {
        "ping": Command(ping),
        "status": Command(status),
        "reload": Command(reload),
        "ack": Command(ack, ("gpu",)),
        "release": Command(release, ("for_s",)),
        "resume": Command(resume),
    }


def _gpu(named: object, state: NodeState) -> GpuUuid:
    """The GPU of a UUID or an index. Raises ControlError."""
    for uuid, record in state.gpus.items():
        if named == uuid or str(named) == str(record.index):
            return uuid
    in_order = sorted(state.gpus.values(), key=lambda record: record.index)
    known = ", ".join(f"{record.index} ({record.uuid})" for record in in_order)
    raise ControlError(f"no such GPU; there are {known or 'none'}")


def _release_s(asked: object) -> float:
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked <= _LONGEST_RELEASE_S:
        raise ControlError(f"for_s: expected seconds, more than 0 and at most {_LONGEST_RELEASE_S:.0f}")
    return float(asked)
