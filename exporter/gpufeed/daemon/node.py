# SPDX-License-Identifier: Apache-2.0
"""The one node, replaced whole at every frame."""

from collections.abc import Callable
from dataclasses import replace

from gpufeed import step as fold
from gpufeed.clock import Clock, read_frame_time
from gpufeed.model.frame import Frame
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import NodeState
from gpufeed.signals.settings import Settings


class NodeKeeper:
    """Folds frames and tells who wants to know of each new state."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._node = fold.initial(settings, read_frame_time(clock))
        self._listeners: list[Callable[[NodeState], None]] = []

    @property
    def state(self) -> NodeState:
        """The node as of the last frame."""
        return self._node.state

    def tell(self, listener: Callable[[NodeState], None]) -> None:
        """Call `listener` after every frame."""
        self._listeners.append(listener)

    def on_frame(self, frame: Frame) -> None:
        """Fold one frame."""
        self._node = fold.step(self._node, frame)
        for listener in self._listeners:
            listener(self._node.state)

    def settle(self, settings: Settings) -> None:
        """From now on fold with these."""
        self._node = replace(self._node, memory=replace(self._node.memory, settings=settings))

    def acknowledge(self, uuid: GpuUuid) -> None:
        """Clear a GPU's latched fault."""
        self._node = fold.acknowledge(self._node, uuid)

    def forget(self, uuid: GpuUuid) -> None:
        """Expect a GPU no longer."""
        self._node = fold.forget(self._node, uuid)

    def save(self) -> bytes:
        """What has to outlive the server."""
        return fold.save(self._node)

    def restore(self, data: bytes | None) -> None:
        """Take over what an earlier server saved."""
        self._node = fold.restore(self._node, data)
