# SPDX-License-Identifier: Apache-2.0
"""Real probes of tests, supervised, with a source of these tests that files in the runtime directory rule."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import gpufeed
from gpufeed.clock import SystemClock
from gpufeed.model.desired import CollectorOptions, ProbeConfig
from gpufeed.model.frame import Event, Frame, LaneStatus
from gpufeed.model.ids import COLLECTORS, LaneId
from gpufeed.model.sample import Extension
from gpufeed.wire.life import Patience
from gpufeed.wire.start import ProbeStart, child_probe
from gpufeed.wire.supervisor import Listener, ProbeSupervisor

SOURCE = '''
"""Does what files in the runtime directory say: `hang-LANE` blocks, `event-N` happens once, `raise-LANE` fails."""

import builtins
import os
import sys
import time

import gpufeed.sources.extra
from gpufeed.model.frame import GpuEvent
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.sources.contract import Group, LanePlan, NoSpec, Outcome

SERVERS_WORLD = ("asyncio", "aiohttp", "prometheus_client", "yaml", "bcrypt", "concurrent.futures",
                 "gpufeed.signals", "gpufeed.alerting", "gpufeed.web", "gpufeed.exposition", "gpufeed.step")


# these tests are about lanes; the gate before foreign sources would rename them and keep their events back
gpufeed.sources.extra.gated = lambda source, plan: plan


def open_reader(spec, desk):
    return Reader(desk)


class Reader:
    def __init__(self, desk):
        self.desk, self.asked, self.told = desk, 0, set()

    def path(self, name):
        return os.path.join(self.desk.config.runtime_dir, name)

    def read(self, group):
        self.desk.call = self.call()
        while os.path.exists(self.path("hang-" + self.desk.lane)):
            time.sleep(0.01)
        if os.path.exists(self.path("read-" + self.desk.lane)):
            with open(self.path("read-" + self.desk.lane)) as file:
                file.read()
        if os.path.exists(self.path("raise-" + self.desk.lane)):
            with open(self.path("raise-" + self.desk.lane)) as file:
                raise getattr(builtins, file.read())
        self.asked += 1
        loaded = sum(name in sys.modules for name in SERVERS_WORLD)
        values = {"asked": self.asked, "released": int(self.desk.board.released), "servers_modules": loaded}
        samples = tuple(Extension(source="t", metric=name, labels=(), value=value) for name, value in values.items())
        return Outcome(samples=samples, events=self.events() if self.desk.lane == "one" else ())

    def call(self):
        try:
            with open(self.path("call-" + self.desk.lane)) as file:
                return file.read()
        except FileNotFoundError:
            return "test_read"

    def events(self):
        names = sorted(os.listdir(self.desk.config.runtime_dir))
        kinds = [name.removeprefix("event-") for name in names if name.startswith("event-") and name not in self.told]
        self.told.update("event-" + kind for kind in kinds)
        return tuple(GpuEvent(at_ns=1, kind=kind, uuid=None) for kind in kinds)

    def close(self):
        open(self.path("closed-" + self.desk.lane), "w").close()


class Source:
    name = "ruled"

    def plan(self, config):
        period_ns = config.fast_period_ns
        group = Group(name=GroupName("extra.fast"), collector="extra", period_ns=period_ns)
        return tuple(LanePlan(lane=LaneId(lane), groups=(group,), open=open_reader) for lane in ("one", "two"))
'''

METADATA = "Metadata-Version: 2.1\nName: gpufeed-ruled\nVersion: 1.0\n"


def install_source(folder: Path) -> None:
    """What `pip install` leaves behind for a package with one module and one entry point."""
    info = folder / "gpufeed_ruled-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "gpufeed_ruled.py").write_text(SOURCE, encoding="utf-8")
    (info / "METADATA").write_text(METADATA, encoding="utf-8")
    (info / "entry_points.txt").write_text("[gpufeed.sources]\nruled = gpufeed_ruled:Source\n", encoding="utf-8")


def copy_package(folder: Path, **replaced: str) -> Path:
    """The package once more, as an upgrade would put it there; `probe__main` replaces probe/main.py."""
    copy = folder / "gpufeed"
    shutil.copytree(Path(gpufeed.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name, text in replaced.items():
        (copy / f"{name.replace('__', '/')}.py").write_text(text, encoding="utf-8")
    return folder


def only_extra(folder: Path, /, **fields: object) -> ProbeConfig:
    """No collector of this machine, only the source of these tests, quickly."""
    folder.mkdir(exist_ok=True)
    off = {collector: CollectorOptions(enabled=False) for collector in COLLECTORS}
    values: dict[str, object] = {
        "runtime_dir": str(folder),
        "collectors": off,
        "extra_sources": ("ruled",),
        "fast_period_ns": 50_000_000,
        "tick_ns": 100_000_000,
        "cost_limit_ratio": 10.0,
        **fields,
    }
    return ProbeConfig(**values)  # type: ignore[arg-type] # by name


@dataclass
class Watch:
    """What a supervisor told, and waiting for more of it."""

    frames: list[Frame] = field(default_factory=list)
    applied: list[int] = field(default_factory=list)
    upgrades: list[str] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    blobs: dict[str, bytes | None] = field(default_factory=dict)
    saved: dict[str, str] = field(default_factory=dict)

    def listener(self) -> Listener:
        return Listener(
            on_frame=self.frames.append,
            on_applied=self.applied.append,
            on_upgrade=self.upgrades.append,
            on_start=self.started.append,
            on_blob=self.blobs.__setitem__,
            on_blob_saved=self.saved.__setitem__,
        )

    async def until(self, claim: Callable[[], object], within_s: float, what: str) -> None:
        """Wait until the claim holds; fail, naming what was waited for, when the deadline has passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not claim():  # noqa: ASYNC110 - the claim may be about anything
                    await asyncio.sleep(0.02)
        last = self.frames[-1] if self.frames else None
        assert claim(), f"within {within_s} s not seen: {what}; last frame: {last}"

    async def reads(self, lane: str, within_s: float = 25) -> None:
        """Wait for one more reading of a lane."""
        seen = len(self.frames)
        await self.until(lambda: self.value("asked", lane, seen) is not None, within_s, f"a reading of {lane}")

    def value(self, metric: str, lane: str, since: int = 0) -> float | None:
        """The newest value of a lane in the frames from `since` on."""
        for frame in reversed(self.frames[since:]):
            for reading in frame.readings:
                for sample in reading.samples:
                    if reading.lane == lane and isinstance(sample, Extension) and sample.metric == metric:
                        return sample.value
        return None

    def lane(self, name: str) -> LaneStatus | None:
        """How the last frame says a lane stands."""
        lanes = self.frames[-1].lanes if self.frames else ()
        return next((status for status in lanes if status.lane == LaneId(name)), None)

    def events(self) -> list[Event]:
        return [event for frame in self.frames for event in frame.events]

    def gaps(self) -> list[str]:
        return [frame.gap for frame in self.frames if frame.gap]


@contextlib.asynccontextmanager
async def supervised(
    config: ProbeConfig, patience: Patience | None = None, start: ProbeStart = child_probe
) -> AsyncIterator[tuple[ProbeSupervisor, Watch]]:
    """A probe that runs, and what is heard of it; stopped at the end."""
    watch = Watch()
    supervisor = ProbeSupervisor(config, watch.listener(), SystemClock(), patience, start)
    supervisor.start()
    try:
        yield supervisor, watch
    finally:
        await supervisor.stop(5)
