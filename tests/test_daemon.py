# SPDX-License-Identifier: Apache-2.0
"""The parts of the daemon, each by itself, with a fake clock where time matters."""

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpufeed.config.load import parse
from gpufeed.config.schema import Config
from gpufeed.daemon.facts import Facts
from gpufeed.daemon.loop import new_event_loop
from gpufeed.daemon.places import Places
from gpufeed.daemon.reloading import Reloading
from gpufeed.daemon.saving import Keeper, Saving
from gpufeed.daemon.scrapes import Scrapes
from gpufeed.errors import ConfigError
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.frame import FrameTime
from gpufeed.model.state import NodeState
from gpufeed.simulate.clock import SteppedClock
from gpufeed.web.endpoints import RequestError, ScrapeRequest

SECOND = 1_000_000_000


def state_at(monotonic_ns: int) -> NodeState:
    return NodeState(time=FrameTime(monotonic_ns, monotonic_ns, 0))


def config_of(text: str) -> Config:
    return parse(text.encode(), "x")


def test_nothing_can_be_handed_to_a_default_executor() -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner, pytest.raises(RuntimeError, match="ServerLane"):
        runner.run(asyncio.to_thread(print))


def test_that_descriptors_ran_out_is_a_line_a_minute_and_not_one_a_second(caplog: pytest.LogCaptureFixture) -> None:
    loop = new_event_loop()
    for number in (errno.EMFILE, errno.ENFILE, errno.EMFILE):
        loop.call_exception_handler({"message": "socket.accept()", "exception": OSError(number, os.strerror(number))})
    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be taken: Too many open files; is RLIMIT_NOFILE high enough?"
    ]
    loop.call_exception_handler({"message": "something else", "exception": ValueError("x")})
    assert "something else" in caplog.text
    loop.close()


@dataclass
class Shelf:
    loaded: list[str] = field(default_factory=list)
    saved: dict[str, bytes] = field(default_factory=dict)

    def load(self, name: str) -> None:
        self.loaded.append(name)

    def save(self, name: str, data: bytes) -> None:
        self.saved[name] = data


def test_nothing_is_saved_over_a_state_that_has_not_come_back_yet() -> None:
    clock, shelf, restored = SteppedClock(), Shelf(), list[bytes | None]()
    saving = Saving({"node": Keeper(lambda: b"new", restored.append)}, clock)
    saving.begin(shelf)
    assert shelf.loaded == ["node"]
    saving.save()
    assert shelf.saved == {}
    saving.on_blob("node", b"old")
    saving.on_blob("node", b"again")
    assert restored == [b"old"]
    saving.save()
    assert shelf.saved == {"node": b"new"}


def test_state_is_saved_once_a_minute() -> None:
    clock, shelf = SteppedClock(), Shelf()
    saving = Saving({"node": Keeper(lambda: b"x", lambda _: None)}, clock)
    saving.begin(shelf)
    saving.on_blob("node", None)
    clock.advance(59 * SECOND)
    saving.on_state(state_at(clock.monotonic_ns()))
    assert shelf.saved == {}
    clock.advance(SECOND)
    saving.on_state(state_at(clock.monotonic_ns()))
    assert shelf.saved == {"node": b"x"}


def test_what_a_crash_must_not_lose_is_saved_within_seconds_and_then_each_minute_again() -> None:
    clock, shelf = SteppedClock(), Shelf()
    saving = Saving({"node": Keeper(lambda: b"x", lambda _: None)}, clock)
    saving.begin(shelf)
    saving.on_blob("node", None)
    saving.hasten()
    clock.advance(4 * SECOND)
    saving.on_state(state_at(clock.monotonic_ns()))
    assert shelf.saved == {}
    clock.advance(SECOND)
    saving.on_state(state_at(clock.monotonic_ns()))
    assert shelf.saved.pop("node") == b"x"
    clock.advance(30 * SECOND)
    saving.on_state(state_at(clock.monotonic_ns()))
    assert shelf.saved == {}


def test_an_outage_of_saving_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = SteppedClock()
    saving = Saving({}, clock)
    with caplog.at_level("INFO"):
        for error in ("disk full", "disk full", "", ""):
            saving.on_saved("node", error)
            clock.advance(60 * SECOND)
    assert [one.getMessage() for one in caplog.records] == [
        "state cannot be kept over a restart",
        "state is kept over a restart again",
    ]


def test_places_are_the_configured_ones_else_those_of_systemd_else_private(tmp_path: Path) -> None:
    environment = {"RUNTIME_DIRECTORY": f"{tmp_path}/r:/other", "STATE_DIRECTORY": f"{tmp_path}/s"}
    configured = Places.settle(config_of(f"paths: {{runtime: {tmp_path}/mine, state: {tmp_path}/kept}}"), environment)
    assert (configured.runtime, configured.state) == (tmp_path / "mine", tmp_path / "kept")
    given = Places.settle(Config(), environment)
    assert (given.runtime, given.state, given.is_private) == (tmp_path / "r", tmp_path / "s", False)
    given.leave()
    assert given.runtime.exists()
    private = Places.settle(Config(), {})
    assert (private.state, private.control_socket) == (None, private.runtime / "control.sock")
    assert private.runtime.stat().st_mode & 0o777 == 0o700
    private.leave()
    assert not private.runtime.exists()


def test_a_runtime_directory_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"paths\.runtime: .*name a directory that can be written"):
        Places.settle(config_of(f"paths: {{runtime: {tmp_path}/file/run}}"), {})


async def reloaded(old: Config, read: Callable[[], Config]) -> tuple[list[Config], Config]:
    applied: list[Config] = []
    reloading = Reloading(old, read, applied.append)
    await reloading.reload()
    return applied, reloading.config


async def test_a_right_configuration_comes_into_force_whole(caplog: pytest.LogCaptureFixture) -> None:
    new = config_of("web: {max_requests: 3}")
    with caplog.at_level("INFO"):
        applied, now = await reloaded(Config(), lambda: new)
    assert applied == [new]
    assert now == new
    assert caplog.records[-1].__dict__["fields"] == {"changed": "web.max_requests"}


async def test_a_change_that_needs_a_restart_changes_nothing() -> None:
    applied: list[Config] = []
    new = config_of("web: {max_requests: 3, listen_addresses: [':1']}")
    reloading = Reloading(Config(), lambda: new, applied.append)
    with pytest.raises(ConfigError, match=r"web\.listen_addresses: changes only with a restart"):
        await reloading.reload()
    assert applied == []
    assert reloading.config == Config()


def scrapes(text: str, clock: SteppedClock) -> tuple[Scrapes, list[float], list[int]]:
    observed: list[float] = []
    asked: list[int] = []

    def found() -> object:
        asked.append(1)
        return families(state_at(clock.monotonic_ns()), ServerFacts(version="9.9"))

    return Scrapes(config_of(text), found, clock, observed.append), observed, asked  # type: ignore[arg-type]


def test_scrapes_of_one_second_share_one_encoding() -> None:
    clock = SteppedClock()
    serving, observed, asked = scrapes("", clock)
    first = serving.answer(ScrapeRequest())
    assert b'gpufeed_build_info{version="9.9"' in first.body
    assert serving.answer(ScrapeRequest()).body == first.body
    assert len(asked) == 1
    clock.advance(SECOND)
    serving.answer(ScrapeRequest())
    assert len(asked) == 2
    assert len(observed) == 3


@pytest.mark.parametrize(
    "asked",
    [
        ScrapeRequest(collect=("nfs",)),
        ScrapeRequest(exclude=("zzz",)),
        ScrapeRequest(collect=("nvml",), exclude=("host",)),
    ],
)
def test_a_filter_on_what_is_not_read_is_a_wrong_request(asked: ScrapeRequest) -> None:
    serving, _, _ = scrapes("collectors: {nfs: {enabled: false}}", SteppedClock())
    with pytest.raises(RequestError):
        serving.answer(asked)


def test_prometheus_gets_what_it_prefers() -> None:
    serving, _, _ = scrapes("", SteppedClock())
    page = serving.answer(ScrapeRequest(accept="application/openmetrics-text;version=1.0.0", accept_encoding="gzip"))
    assert page.is_gzip
    assert page.content_type.startswith("application/openmetrics-text")


def test_the_process_is_described_as_the_kernel_sees_it() -> None:
    facts = Facts(clock=SteppedClock(), build="0.1.0+abc", is_simulated=True)
    now = facts.now(with_process=True)
    assert (now.revision, now.is_simulated) == ("abc", True)
    assert now.process is not None
    assert now.process.resident_bytes > 5_000_000
    assert now.process.virtual_bytes > now.process.resident_bytes
    assert 3 <= now.process.open_fds <= now.process.max_fds
    assert facts.now().process is None
    assert os.times().user <= facts.now(with_process=True).process.cpu_s  # type: ignore[union-attr]
