# SPDX-License-Identifier: Apache-2.0
"""A root with a procfs and a sysfs that a test fills file by file, and readers opened over it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gpufeed.model.desired import CollectorOptions, ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import CollectorName, GroupName, LaneId
from gpufeed.model.sample import Sample
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.contract import Board, Desk, LanePlan, Outcome, Reader, Source

S = TypeVar("S", bound=Sample)


class HostBench:
    """What a lane would have at hand, without the lane."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = SteppedClock()
        self.board = Board()
        self.options: dict[CollectorName, CollectorOptions] = {}
        self.fast_period_ns = 500_000_000
        self.extra_sources: tuple[str, ...] = ()
        self.job_users = False
        self.desks: list[Desk] = []
        for name in ("proc", "sys", "etc"):
            (root / name).mkdir()

    @property
    def config(self) -> ProbeConfig:
        return ProbeConfig(
            procfs=str(self.root / "proc"),
            sysfs=str(self.root / "sys"),
            rootfs=str(self.root),
            runtime_dir=str(self.root / "run"),
            fast_period_ns=self.fast_period_ns,
            collectors=dict(self.options),
            extra_sources=self.extra_sources,
            job_users=self.job_users,
        )

    def write(self, path: str, content: str | bytes) -> None:
        """In place, as the kernel's files change."""
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content.encode() if isinstance(content, str) else content)

    def refuse(self, path: str) -> None:
        """Let reading of the file fail, whoever reads: a directory stands in its place (EISDIR)."""
        full = self.root / path
        full.unlink(missing_ok=True)
        full.mkdir(parents=True)

    def desk(self, lane: str = "test") -> Desk:
        desk = Desk(lane=LaneId(lane), clock=self.clock, config=self.config, board=self.board)
        self.desks.append(desk)
        return desk

    def open(self, plan: LanePlan) -> Reader:
        return plan.open(plan.spec, self.desk(plan.lane))

    def only_reader(self, source: Source) -> Reader:
        """The reader of the one lane that a source plans."""
        (plan,) = source.plan(self.config)
        return self.open(plan)


def read(reader: Reader, group: str) -> Outcome:
    return reader.read(GroupName(group))


def samples_of(outcome: Outcome, kind: type[S]) -> list[S]:
    return [sample for sample in outcome.samples if isinstance(sample, kind)]


def statuses(outcome: Outcome) -> dict[tuple[str, str], InputStatus]:
    return {(status.input, status.scope): status for status in outcome.inputs}


def failing(operation: Callable[..., Any], error: OSError) -> Callable[..., Any]:
    """The system call, refused: for errors that no file of ours can be made to give."""

    def refuse(*_arguments: Any, **_named: Any) -> Any:
        raise error

    refuse.__name__ = operation.__name__
    return refuse


def open_files() -> int:
    """How many descriptors this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))
