# SPDX-License-Identifier: Apache-2.0
"""A bench for the NVML source: a stepped node, a desk to read it from, and single functions put in its library."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from gpufeed.model.frame import GpuEvent, InputStatus, XidEvent
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.contract import Board, Desk, Outcome
from gpufeed.sources.nvml.binding import Nvml
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.gpu_reader import GpuReader, GpuSpec
from gpufeed.units import NS_PER_MS

T = TypeVar("T")

TICK_NS = 500 * NS_PER_MS


@dataclass
class Bench:
    """One lane's view of a node that is entered already."""

    node: SteppedNode
    board: Board = field(default_factory=lambda: Board(nvml_generation=1, nvml_is_open=True))

    def desk(self, lane: str = "gpu0") -> Desk:
        return Desk(lane=LaneId(lane), clock=self.node.clock, config=self.node.config(), board=self.board)

    def device(self, index: int = 0) -> tuple[Device, Desk]:
        desk = self.desk(f"gpu{index}")
        nvml = Nvml(desk)
        nvml.open()
        return Device(nvml, nvml.call("nvmlDeviceGetHandleByIndex", index)), desk

    def reader(self, index: int = 0) -> tuple[GpuReader, Desk]:
        desk = self.desk(f"gpu{index}")
        driver_version = self.node.face.moment().header.driver_version
        return GpuReader(GpuSpec(index=index, generation=1, driver_version=driver_version), desk), desk

    def true(self, name: str, gpu: int = 0) -> float:
        """A number of the truth by its name in the block."""
        return self.node.face.moment(gpu).value(name)

    def step(self, ticks: int = 1) -> None:
        self.node.advance(ticks * TICK_NS)

    def calls(self) -> int:
        return self.node.face.calls.total()

    def put(self, name: str, arguments: tuple[Any, ...], answer: Callable[..., int]) -> None:
        """Another C function in place of the library's, for what no fault describes."""
        function = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(answer)
        self._kept.append(function)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        setattr(self.node.face, name, ctypes.CFUNCTYPE(ctypes.c_int)(address))
        pynvml._nvmlGetFunctionPointer_cache.pop(name, None)

    _kept: list[Any] = field(default_factory=list)


def enter(path: Path, scenario: str = "healthy", model: str = "h100", gpus: int = 2, **more: Any) -> SteppedNode:
    node = SteppedNode(scenario, model, gpus, root=path, clock=SteppedClock(), **more)
    node.keeps_trees = False
    return node


def only(outcome: Outcome, kind: type[T]) -> T:
    """The one sample of a kind."""
    (found,) = (sample for sample in outcome.samples if isinstance(sample, kind))
    return found


def words(outcome: Outcome) -> dict[str, str]:
    """What was said of inputs."""
    return {status.input: status.state for status in outcome.inputs if isinstance(status, InputStatus)}


def group(name: str) -> GroupName:
    return GroupName(name)


Happening = XidEvent | GpuEvent
