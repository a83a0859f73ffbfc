# SPDX-License-Identifier: Apache-2.0
"""The truth process: lets a simulated node live in real time for `gpufeed demo`, and ends with whoever started it."""

import argparse
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from gpufeed.clock import Clock, SystemClock
from gpufeed.simulate.faults import Fault, decode
from gpufeed.simulate.hardware import MAX_GPUS, MODELS
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.node import DiskNode, make_truth, scenario_named
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.scenarios import SCENARIOS

BLOCK_PERIOD_NS: Final = 40_000_000
TREES_EVERY: Final = 5
"""Trees are rewritten every so many periods of the block: 5 times a second."""

FAULTS_FILE: Final = "faults.json"
"""Below the root: a list of faults that stand besides the scenario's, read whenever it changes. Need not be there."""

_NS_PER_S: Final = 1_000_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM, the end of the lifeline, or of the parent. The block appears when everything is in place."""
    options = _parser().parse_args(arguments)
    ending = _Ending(options.lifeline)
    truth = make_truth(scenario_named(options.scenario), MODELS[options.model], options.gpus, options.driver_version)
    options.root.mkdir(parents=True, exist_ok=True)
    layout = LAYOUTS[options.layout]
    node = DiskNode(truth, options.root, options.truth, period_ns=BLOCK_PERIOD_NS, layout=layout)
    try:
        _live(node, options.root / FAULTS_FILE, SystemClock(), ending)
    finally:
        node.close()
    return 0


class _Ending:
    """Why to end: a signal, a descriptor whose other side was closed, a parent that is no longer ours."""

    def __init__(self, lifeline: int | None) -> None:
        self._lifeline = [] if lifeline is None else [lifeline]
        self._parent = os.getppid()
        self._is_asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def wait(self, duration_ns: int) -> bool:
        """Sleep, at most so long; true when it is time to end."""
        readable, _, _ = select.select(self._lifeline, [], [], max(0, duration_ns) / _NS_PER_S)
        is_cut = bool(readable) and os.read(self._lifeline[0], 64) == b""
        return is_cut or self._is_asked or os.getppid() != self._parent

    def _ask(self, _number: int, _frame: object) -> None:
        self._is_asked = True


class _FaultFile:
    """The faults of a file, as of its last change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed_ns = 0
        self.faults: tuple[Fault, ...] = ()

    def look(self) -> None:
        """Read it again if it changed. One that is being written, or is nonsense, counts for nothing."""
        try:
            changed_ns = self._path.stat().st_mtime_ns
            if changed_ns != self._changed_ns:
                self._changed_ns = changed_ns
                self.faults = decode(self._path.read_bytes())
        except FileNotFoundError:
            self.faults = ()
        except (OSError, msgspec.MsgspecError):
            self._changed_ns = 0


def _live(node: DiskNode, fault_path: Path, clock: Clock, ending: _Ending) -> None:
    faults = _FaultFile(fault_path)
    last_ns = due_ns = clock.monotonic_ns()
    turn = 0
    while True:
        now_ns = clock.monotonic_ns()
        node.truth.advance(now_ns - last_ns)
        last_ns = now_ns
        if turn % TREES_EVERY == 0:
            faults.look()
            node.write_trees(clock.boottime_ns(), clock.wall_ns())
        node.write_block(now_ns, clock.wall_ns(), faults.faults)
        turn += 1
        # what was missed, by a machine that was busy, is not caught up
        due_ns = max(due_ns + BLOCK_PERIOD_NS, now_ns)
        if ending.wait(due_ns - clock.monotonic_ns()):
            return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpufeed.simulate.process", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="directory of the trees")
    parser.add_argument("--truth", type=Path, required=True, help="file of the truth block")
    parser.add_argument("--scenario", choices=sorted({*SCENARIOS, *JUDGED}), default="healthy")
    parser.add_argument("--model", choices=sorted(MODELS), default="h100")
    parser.add_argument("--gpus", type=int, choices=range(1, MAX_GPUS + 1), default=8, metavar=f"1-{MAX_GPUS}")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="slurm", help="how the node is built and run")
    parser.add_argument("--driver-version", default=None, help="default: the scenario's")
    parser.add_argument("--lifeline", type=int, default=None, help="descriptor at whose end to end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
