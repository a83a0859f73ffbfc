# SPDX-License-Identifier: Apache-2.0
"""What the web serves, as callables that never wait for hardware."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass

from gpufeed.errors import GpufeedError
from gpufeed.explain.shape import Explanation
from gpufeed.history.events import Event
from gpufeed.history.rates import Watched
from gpufeed.history.states import Slot
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import NodeState


class RequestError(GpufeedError):
    """What was asked for does not exist; the text is for the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeRequest:
    """One scrape as it was asked for: headers as they came, filters in their order."""

    accept: str = ""
    accept_encoding: str = ""
    collect: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapePage:
    """What is sent for it."""

    body: bytes
    content_type: str
    is_gzip: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a reload may change. Asked for at every request."""

    max_requests: int = 40  # 0: no limit
    has_lifecycle: bool = False
    has_job_names: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who serves."""

    version: str
    hostname: str
    is_simulated: bool = False
    scenario: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that is pending or fires on this node."""

    name: str
    severity: str
    state: str
    text: str = ""


def _no_events() -> tuple[Event, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """How a receiver of this node's own alerts fares."""

    receiver: str
    waiting: int
    dropped: int


def _no_receivers() -> tuple[Delivered, ...]:
    return ()


def _no_slots(_: GpuKey) -> tuple[Slot, ...]:
    return ()


def _no_rates(_: type[Watched], __: Hashable) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Everything that is served."""

    identity: Identity
    telemetry_path: str
    has_ui: bool
    options: Callable[[], Options]
    scrape: Callable[[ScrapeRequest], ScrapePage]  # raises RequestError
    state: Callable[[], NodeState]
    alerts: Callable[[], tuple[Firing, ...]]
    is_ready: Callable[[], bool]
    reload: Callable[[], Awaitable[None]]  # raises ConfigError; the old configuration stays in force then
    explain: Callable[[int, bool], Explanation]  # over so many seconds; whether jobs are named
    events: Callable[[], tuple[Event, ...]] = _no_events  # what has changed lately, the newest first
    receivers: Callable[[], tuple[Delivered, ...]] = _no_receivers
    slots: Callable[[GpuKey], tuple[Slot, ...]] = _no_slots  # the recent past of a GPU, oldest first
    rates: Callable[[type[Watched], Hashable], Mapping[str, float]] = _no_rates  # what flows now, per second
