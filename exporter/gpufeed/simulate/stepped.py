# SPDX-License-Identifier: Apache-2.0
"""A simulated node inside the process that reads it, where time passes only when told to."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from gpufeed.model.desired import ProbeConfig
from gpufeed.simulate.activity import Cause
from gpufeed.simulate.block import INTS
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import MODELS
from gpufeed.simulate.layout import Layout
from gpufeed.simulate.node import AnyScenario, DiskNode, make_truth, probe_config, scenario_named
from gpufeed.simulate.nvml.face import Face, install, uninstall

_BLOCK = "truth"


class SteppedNode:
    """Enter it, and pynvml and the trees below `root` show the node.

    Leaving raises what went wrong inside the simulated library, if anything did.
    """

    def __init__(
        self,
        scenario: str | AnyScenario,
        model: str = "h100",
        gpus: int = 8,
        *,
        root: Path,
        clock: SteppedClock,
        driver_version: str | None = None,
    ) -> None:
        told = scenario_named(scenario) if isinstance(scenario, str) else scenario
        self.clock = clock
        self.keeps_trees = True  # false before it is entered: no trees, and a node that is there sooner
        self.faults: tuple[Fault, ...] = ()
        self._root = root
        (root / "run").mkdir(parents=True, exist_ok=True)
        truth = make_truth(told, MODELS[model], gpus, driver_version)
        self._node = DiskNode(truth, root, root / _BLOCK, period_ns=0)
        self._face: Face | None = None
        self._write_block()

    def __enter__(self) -> Self:
        self._face = install(str(self._root / _BLOCK))
        self._write()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        errors = self.face.errors
        uninstall()
        self._face = None
        self._node.close()
        if errors and error is None:
            raise errors[0]

    @property
    def layout(self) -> Layout:
        """How the node is built and run; to be set before it is entered."""
        return self._node.layout

    @layout.setter
    def layout(self, layout: Layout) -> None:
        self._node.layout = layout

    @property
    def face(self) -> Face:
        """The simulated library: counts of calls, what went wrong inside it."""
        if self._face is None:
            raise RuntimeError("the node is not entered")
        return self._face

    def advance(self, duration_ns: int) -> None:
        """Time passes, on the clock too."""
        self.clock.advance(duration_ns)
        self._node.truth.advance(duration_ns)
        self._write()

    def set_faults(self, *faults: Fault) -> None:
        """Only these stand from now on, besides the scenario's own."""
        self.faults = faults
        self._write()

    def give_xid(self, gpu: int, xid: int) -> None:
        """The driver reports an error of a GPU."""
        self._node.truth.gpus[gpu].xids.append(xid)
        self._write()

    def set_counts(self, gpu: int, **counts: int) -> None:
        """Let numbers of a GPU's truth, by their names in INTS, be these from now on. Raises ValueError."""
        unknown = counts.keys() - set(INTS)
        if unknown:
            raise ValueError(f"no numbers of the truth: {', '.join(sorted(unknown))}")
        self._node.truth.gpus[gpu].counts.update(counts)
        self._write()

    def pin(self, path: str, text: str | None) -> None:
        """Let a file below the root hold `text` whatever the truth says; None: reading it fails."""
        self._node.trees.pin(path, text)

    def unpin(self, path: str) -> None:
        """Let the truth stand there again."""
        self._node.trees.unpin(path)
        self._write()

    def hide(self, path: str) -> None:
        """Let nothing be at a path below the root: a device pulled out, a process that ended between two looks."""
        self._node.trees.hide(path)

    def show(self, path: str) -> None:
        """Let it be there again."""
        self._node.trees.show(path)
        self._write()

    def config(self, **overrides: Any) -> ProbeConfig:  # noqa: ANN401  # as many types as there are fields
        """What a probe of this node is told; `overrides` are fields of ProbeConfig."""
        return msgspec.structs.replace(probe_config(self._root, self._root / _BLOCK), **overrides)

    def truth(self, gpu: int) -> Cause:
        """The (state, cause) of a GPU in the interval that begins now."""
        return self._node.truth.gpus[gpu].truth

    def truth_ns(self, gpu: int) -> dict[Cause, int]:
        """How long each (state, cause) of a GPU has been true so far."""
        return dict(self._node.truth.gpus[gpu].truth_ns)

    def is_blocked(self) -> bool:
        """Of the calls made since this was last asked, one would not have returned yet.

        It returned here all the same, with the answer it would give later: try the read again until this is false.
        """
        hung, self.face.hung = self.face.hung, set()
        return bool(hung)

    def _write(self) -> None:
        self._write_block()
        if self.keeps_trees:
            self._node.write_trees(self.clock.boottime_ns(), self.clock.wall_ns())

    def _write_block(self) -> None:
        self._node.write_block(self.clock.monotonic_ns(), self.clock.wall_ns(), self.faults)
