# SPDX-License-Identifier: Apache-2.0
"""A served node that needs neither probe nor exposition: what is served is callables."""

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import aiohttp

from gpufeed.errors import ConfigError
from gpufeed.explain.explain import explain
from gpufeed.explain.shape import Explanation
from gpufeed.history.events import Event
from gpufeed.history.rates import Rates
from gpufeed.history.states import StateHistory
from gpufeed.model.frame import FrameTime
from gpufeed.model.state import NodeState
from gpufeed.web.endpoints import (
    Delivered,
    Endpoints,
    Firing,
    Identity,
    Options,
    RequestError,
    ScrapePage,
    ScrapeRequest,
)
from gpufeed.web.server import WebServer


@dataclass
class Node:
    """What is behind the endpoints; a test changes it as it likes."""

    state: NodeState = field(default_factory=lambda: NodeState(time=FrameTime(0, 0, 0)))
    options: Options = field(default_factory=Options)
    alerts: tuple[Firing, ...] = ()
    events: tuple[Event, ...] = ()
    receivers: tuple[Delivered, ...] = ()
    identity: Identity = field(default_factory=lambda: Identity(version="1.2.3", hostname="node1"))
    body: bytes = b"a 1\n"
    is_ready: bool = True
    reload_error: str = ""
    refusal: str = ""
    asked: list[ScrapeRequest] = field(default_factory=list)
    reloads: int = 0
    states: StateHistory = field(default_factory=StateHistory)
    rates: Rates = field(default_factory=Rates)

    def scrape(self, asked: ScrapeRequest) -> ScrapePage:
        self.asked.append(asked)
        if self.refusal:
            raise RequestError(self.refusal)
        is_gzip = "gzip" in asked.accept_encoding
        body = gzip.compress(self.body) if is_gzip else self.body
        return ScrapePage(body=body, content_type="text/plain; version=0.0.4; charset=utf-8", is_gzip=is_gzip)

    async def reload(self) -> None:
        if self.reload_error:
            raise ConfigError((self.reload_error,))
        self.reloads += 1

    def explain(self, window_s: int, has_job_names: bool) -> Explanation:
        return explain(
            self.state, self.states.slots, window_s,
            hostname=self.identity.hostname, is_simulated=False, has_job_names=has_job_names,
        )  # fmt: skip

    def allow(self, **changes: object) -> None:
        self.options = replace(self.options, **changes)  # type: ignore[arg-type] # a test names real fields

    def endpoints(self, *, has_ui: bool = True) -> Endpoints:
        return Endpoints(
            identity=self.identity,
            telemetry_path="/metrics",
            has_ui=has_ui,
            options=lambda: self.options,
            scrape=self.scrape,
            state=lambda: self.state,
            alerts=lambda: self.alerts,
            events=lambda: self.events,
            receivers=lambda: self.receivers,
            is_ready=lambda: self.is_ready,
            reload=self.reload,
            explain=self.explain,
            slots=self.states.slots,
            rates=self.rates.of,
        )


@dataclass(frozen=True)
class Served:
    url: str
    port: int
    server: WebServer
    client: aiohttp.ClientSession
    ui_url: str = ""


Serve = Callable[..., Awaitable[Served]]
Behind = Callable[[str], Awaitable[Served]]
"""Serves behind a web configuration with this text."""
