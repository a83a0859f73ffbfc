# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a running server over its control socket."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gpufeed.clock import Clock
from gpufeed.config.fold import settings
from gpufeed.config.schema import Config
from gpufeed.control import Arguments, Command, ControlError
from gpufeed.daemon.frames import Frames
from gpufeed.daemon.maintenance import DEFAULT_S, LONGEST_S, Maintenance
from gpufeed.daemon.node import NodeKeeper
from gpufeed.explain.explain import DEFAULT_WINDOW_S, MAX_WINDOW_S
from gpufeed.health.conclusion import conclude
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import NodeState
from gpufeed.units import nanoseconds
from gpufeed.web.endpoints import Endpoints
from gpufeed.web.view import view
from gpufeed.wire.supervisor import ProbeSupervisor

RELEASE_FOR_S: Final = 600.0
_LONGEST_RELEASE_S: Final = 86_400.0
_GONE: Final = frozenset({"missing", "lost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What the commands do, and to whom."""

    node: NodeKeeper
    supervisor: ProbeSupervisor
    endpoints: Endpoints
    maintenance: Maintenance
    frames: Frames
    config: Callable[[], Config]
    keep: Callable[[], None]  # what was said outlives a crash
    clock: Clock

    def by_name(self) -> Mapping[str, Command]:
        """The commands, and what they take."""
        return {
            "ping": Command(self.ping),
            "status": Command(self.status),
            "inputs": Command(self.inputs),
            "check": Command(self.check),
            "explain": Command(self.explain, ("window_s",)),
            "frames": Command(self.recorded, ("after",)),
            "reload": Command(self.reload),
            "ack": Command(self.ack, ("gpu",)),
            "forget": Command(self.forget, ("gpu",)),
            "maintain": Command(self.maintain, ("for_s",)),
            "resume_duty": Command(self.resume_duty),
            "release": Command(self.release, ("for_s",)),
            "resume": Command(self.resume),
        }

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

    async def check(self, _: Arguments) -> object:
        """The node as one level, by the checks that count."""
        counts = self.config().check
        told: Any = msgspec.to_builtins(conclude(self.node.state, counts.include, counts.exclude))
        return {**told, "maintenance": self.maintenance.is_on, "maintenance_until": self.maintenance.until_wall_s}

    async def explain(self, arguments: Arguments) -> object:
        """Where the GPUs' time went, and why."""
        window_s = _for_s(arguments.get("window_s", float(DEFAULT_WINDOW_S)), MAX_WINDOW_S, "window_s")
        told: Any = msgspec.to_builtins(self.endpoints.explain(max(1, round(window_s)), True))  # noqa: FBT003 root asks
        return told

    async def recorded(self, arguments: Arguments) -> object:
        """Frames as they come, for whoever records."""
        after = arguments.get("after")
        if after is not None and (isinstance(after, bool) or not isinstance(after, int) or after < 0):
            raise ControlError("after: expected the number of a frame")
        beside = {
            "simulated": self.endpoints.identity.is_simulated,
            "settings": msgspec.to_builtins(msgspec.msgpack.encode(settings(self.config()))),
        }
        told = self.frames.begin(self.node.state) if after is None else self.frames.since(after)
        return {**told, **beside}

    async def reload(self, _: Arguments) -> object:
        """Read the configuration again."""
        await self.endpoints.reload()
        return "reloaded"

    async def ack(self, arguments: Arguments) -> object:
        """Clear a latched fault."""
        uuid = _gpu(arguments.get("gpu"), self.node.state)
        self.node.acknowledge(uuid)
        self.keep()
        return {"uuid": uuid, "index": self.node.state.gpus[uuid].index}

    async def forget(self, arguments: Arguments) -> object:
        """Expect a GPU no longer that was taken out on purpose."""
        uuid = _gpu(arguments.get("gpu"), self.node.state)
        record = self.node.state.gpus[uuid]
        if record.condition not in _GONE:
            raise ControlError(f"GPU {record.index} ({uuid}) is in this node and would be found again")
        self.node.forget(uuid)
        self.keep()
        return {"uuid": uuid, "index": record.index}

    async def maintain(self, arguments: Arguments) -> object:
        """Send no alerts for a while."""
        for_s = _for_s(arguments.get("for_s", DEFAULT_S), LONGEST_S)
        self.maintenance.begin(nanoseconds(for_s))
        self.keep()
        return {"for_s": for_s, "until": self.maintenance.until_wall_s}

    async def resume_duty(self, _: Arguments) -> object:
        """Send alerts again."""
        was_on = self.maintenance.is_on
        self.maintenance.end()
        self.keep()
        return {"was_on": was_on}

    async def release(self, arguments: Arguments) -> object:
        """Let go of all GPUs for a while."""
        for_s = _for_s(arguments.get("for_s", RELEASE_FOR_S), _LONGEST_RELEASE_S)
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


def _for_s(asked: object, longest_s: float, name: str = "for_s") -> float:
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked <= longest_s:
        raise ControlError(f"{name}: expected seconds, more than 0 and at most {longest_s:.0f}")
    return float(asked)
