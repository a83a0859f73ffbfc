# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a running server over its control socket."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
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
    of = _Commands(node, supervisor, endpoints, clock)
    return {
        "ping": Command(of.ping),
        "status": Command(of.status),
        "inputs": Command(of.inputs),
        "reload": Command(of.reload),
        "ack": Command(of.ack, ("gpu",)),
        "release": Command(of.release, ("for_s",)),
        "resume": Command(of.resume),
    }


@dataclass(frozen=True, slots=True)
class _Commands:
    """What the commands do, and to whom."""

    node: NodeKeeper
    supervisor: ProbeSupervisor
    endpoints: Endpoints
    clock: Clock

    async def ping(self, _: Arguments) -> object:
        """Who answers."""
        return {"pid": os.getpid(), "version": self.endpoints.identity.version}

    async def status(self, _: Arguments) -> object:
        """What the page shows."""
        told: Any = msgspec.to_builtins(view(self.endpoints))
        return told

    async def inputs(self, _: Arguments) -> object:
        """What can be read and what not, and with whose rights."""
        told: Any = msgspec.to_builtins(tuple(self.node.state.inputs.values()))
        return {"pid": os.getpid(), "uid": os.geteuid(), "inputs": told}

    async def reload(self, _: Arguments) -> object:
        """Read the configuration again."""
        await self.endpoints.reload()
        return "reloaded"

    async def ack(self, arguments: Arguments) -> object:
        """Clear a latched fault."""
        uuid = _gpu(arguments.get("gpu"), self.node.state)
        self.node.acknowledge(uuid)
        return {"uuid": uuid}

    async def release(self, arguments: Arguments) -> object:
        """Let go of all GPUs for a while."""
        for_s = _release_s(arguments.get("for_s", RELEASE_FOR_S))
        self.supervisor.release(self.clock.monotonic_ns() + nanoseconds(for_s))
        return {"for_s": for_s}

    async def resume(self, _: Arguments) -> object:
        """Take them back now."""
        self.supervisor.resume()
        return "resumed"


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
