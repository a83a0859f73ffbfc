# SPDX-License-Identifier: Apache-2.0
"""What the server knows of itself, beside the state folded from frames."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufeed.catalogue.self import SCRAPE_DURATION_SECONDS
from gpufeed.exposition.family import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """The server process as the kernel accounts it."""

    cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    start_wall_s: float
    open_fds: int
    max_fds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverFacts:
    """How one receiver of alerts fares."""

    receiver: str
    sends: Mapping[str, int]  # by outcome
    waiting: int
    dropped: int
    clock_offset_s: float | None  # the receiver's clock less ours; None: it has not told


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """One moment of the server."""

    version: str = "unknown"
    revision: str = "unknown"
    python: str = "unknown"
    is_simulated: bool = False
    is_in_maintenance: bool = False
    config_hash: str = ""  # empty: not known, and then not exported
    rules_hash: str = ""
    is_reload_successful: bool = True
    reload_success_wall_s: float | None = None
    fast_period_s: float = 0.5  # as configured
    probe_restarts: int = 0
    alerts: Mapping[tuple[str, str, str], int] = field(default_factory=dict)  # (alertname, severity, state) → how many
    scrape_durations: Histogram = field(default_factory=lambda: Histogram.empty(SCRAPE_DURATION_SECONDS.buckets))
    process: ProcessFacts | None = None
    receivers: tuple[ReceiverFacts, ...] = ()

    def with_scrape(self, duration_s: float) -> Histogram:
        """The scrape durations with one more."""
        return self.scrape_durations.observe(duration_s, SCRAPE_DURATION_SECONDS.buckets)
