# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of a whole node: one of its files is bent, read, and put right again, over and over, under one daemon.

Held to: no exception escapes; what went wrong is a counted read error; no other file's values change; nothing on the
page is negative, not a number, or there twice; and once the file is right again, so is the page.
"""

import os
import random
import re
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from captured.pages import HOST, paths_of
from captured.second_node import everything
from captured.second_reader import Node
from captured.trees import OURS, unpack
from fuzz.mutations import mutate
from gpufeed.clock import read_frame_time
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import AnySample, Frame
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.contract import Desk, LanePlan, Outcome, Reader, Source
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S

SLOW_NS = 11 * NS_PER_S
APART = {"pressure-switched-off"}  # has the files of another case
FILES_AT_ONCE = 3
SERIES_OF_ONE_FILE = 4
_ONE_VALUE = re.compile("/(?:counters|counters_ext|hw_counters|statistics|ports/[0-9]+)/[^/]+$|/net/[^/]+/[^/]+$")
OF_JOBS = frozenset({"jobs", "owners", "job-usage", "job-files", "schedulers"})
REASONS = frozenset({"parse", "broken", "limit", "denied"})


class Seen:
    """Lanes by the files that they have looked at."""

    def __init__(self) -> None:
        self.lanes: dict[str, set[str]] = defaultdict(set)
        self._noted: set[tuple[str, str]] = set()

    def note(self, path: str, lane: str) -> None:
        if (path, lane) not in self._noted:
            self._noted.add((path, lane))
            self.lanes[os.path.realpath(path)].add(lane)


class NotingDesk(Desk):
    """Notes every path that its lane looks at."""

    seen: Seen

    @property
    def call(self) -> str:
        return ""

    @call.setter
    def call(self, path: str) -> None:
        if path:
            self.seen.note(path, str(self.lane))


@dataclass(frozen=True)
class Noting:
    """Opens a reader at a desk that notes, and so with the lanes that it finds. Equal where what it opens is."""

    opened: Any
    seen: Seen

    def __call__(self, spec: msgspec.Struct, desk: Desk) -> Reader:
        noting = NotingDesk.__new__(NotingDesk)
        noting.seen = self.seen
        for name in ("lane", "clock", "config", "board", "counts", "gpu_index", "gpu_uuid"):
            setattr(noting, name, getattr(desk, name))
        return NotedReader(self.opened(spec, noting), self.seen)

    def __hash__(self) -> int:
        return hash(self.opened)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Noting) and other.opened == self.opened


@dataclass
class NotedReader:
    reader: Reader
    seen: Seen

    def read(self, group: Any) -> Outcome:
        outcome = self.reader.read(group)
        return outcome if outcome.lanes is None else replace(outcome, lanes=noted(outcome.lanes, self.seen))

    def close(self) -> None:
        self.reader.close()


def noted(plans: tuple[LanePlan, ...], seen: Seen) -> tuple[LanePlan, ...]:
    return tuple(replace(plan, open=Noting(plan.open, seen)) for plan in plans)


@dataclass
class NotedSource:
    name: str
    source: Source
    seen: Seen

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        return noted(self.source.plan(config), self.seen)


class Bent:
    """A node of all our cases at once, and a daemon's fold over it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "node"
        for name in OURS:
            if name not in APART:
                unpack(name, self.root)
        self._seen = Seen()
        self._clock = SteppedClock()
        self._node = initial(Settings(), read_frame_time(self._clock))
        config = probe_config(Config(paths=paths_of(self.root)), str(folder), None)
        self._probe = InlineProbe(
            config, tuple(NotedSource(source.name, source, self._seen) for source in HOST), self._clock
        )
        pids = tuple(int(path.name) for path in (self.root / "proc").glob("[1-9]*") if (path / "cgroup").is_file())
        self._probe.board.gpu_pids[LaneId("gpu0")] = (GpuUuid("GPU-a"), pids)
        for _ in range(3):
            self.before, page = self.tick()
        self._metrics = tuple(f"{name}{{" for name in everything(Node(self.root)).metrics)
        self._right = self._held(page)
        real_root = os.path.realpath(self.root)
        self.files = sorted(
            path for path in self._seen.lanes if path.startswith(f"{real_root}/") and Path(path).is_file()
        )

    def tick(self) -> tuple[Frame, dict[str, float]]:
        """What is read next, and the page then."""
        self._clock.advance(SLOW_NS)
        frame = self._probe.tick()
        self._node = step(self._node, frame)
        assert [log.text for log in self._probe.logs() if "Traceback" in log.text] == []
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(frame), type=Frame) == frame
        encoder = Encoder(profile="full", drop=(), max_series=100_000)
        page = encoder.encode(families(self._node.state, ServerFacts())).page(Format.TEXT).decode()
        lines = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
        series = {key: float(value) for key, value in lines}
        assert len(series) == len(lines), "a series is there twice"
        assert [key for key, value in series.items() if not value >= 0] == []
        return frame, series

    def _held(self, page: dict[str, float]) -> dict[str, float]:
        """What has to be there again when all files are right."""
        return {key: value for key, value in page.items() if key.startswith(self._metrics)}

    def bend(self, chance: random.Random) -> int:
        """Bend a few files, read them, put them right, read them again: how many. Raises AssertionError with them."""
        paths = [Path(path) for path in chance.sample(self.files, FILES_AT_ONCE)]
        originals = [path.read_bytes() for path in paths]
        texts = [mutate(original, chance, originals) for original in originals]
        try:
            for path, text in zip(paths, texts, strict=True):
                path.write_bytes(text)
            frame, page = self.tick()
            if all(map(_ONE_VALUE.search, map(str, paths))):
                lost = self._right.items() - self._held(page).items()
                assert len(lost) <= SERIES_OF_ONE_FILE * len(paths), f"one file took others' series: {sorted(lost)}"
            self._judge(frame, set().union(*(self._seen.lanes[str(path)] for path in paths)))
            for path, original in zip(paths, originals, strict=True):
                path.write_bytes(original)
            self.tick()
            _, page = self.tick()
            now = self._held(page)
            assert {key: (now.get(key), self._right.get(key)) for key, _ in now.items() ^ self._right.items()} == {}
        except AssertionError as error:
            for path, text in zip(paths, texts, strict=True):
                error.add_note(f"{path.relative_to(os.path.realpath(self.root))} was {text[:300]!r}")
            raise
        return len(paths)

    def _judge(self, frame: Frame, lanes: set[str]) -> None:
        assert {failure.reason for failure in frame.failures} <= REASONS
        had, has = _by_lane(self.before), _by_lane(frame)
        for lane in had.keys() | has.keys():
            kind = lane.partition(":")[0]
            is_concerned = not lanes.isdisjoint({lane, kind, "infiniband" if kind == "ib" else kind})
            is_concerned |= lane in OF_JOBS and not OF_JOBS.isdisjoint(lanes)
            if not is_concerned:
                assert had.get(lane) == has.get(lane), f"{lane} never looked at this file, and reads otherwise"

    def close(self) -> None:
        self._probe.close()


def _by_lane(frame: Frame) -> dict[str, tuple[AnySample, ...]]:
    found: dict[str, tuple[AnySample, ...]] = {}
    often = (reading for reading in frame.readings if reading.period_ns <= SLOW_NS)
    for reading in sorted(often, key=lambda one: (one.lane, one.group)):
        found[reading.lane] = (*found.get(reading.lane, ()), *reading.samples)
    return found


def fuzz(seconds: float, seed: int, folder: Path) -> int:
    """For so long: how many files were bent. Raises AssertionError."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    node = Bent(folder)
    until = time.perf_counter() + seconds
    bent = 0
    try:
        while time.perf_counter() < until:
            bent += node.bend(chance)
    finally:
        node.close()
    return bent
