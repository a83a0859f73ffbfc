# SPDX-License-Identifier: Apache-2.0
"""What the server knows of itself: its build, its configuration, its process."""

import os
import platform
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import gpufeed
from gpufeed.alerting.define import Severity
from gpufeed.clock import Clock
from gpufeed.config.fingerprint import config_hash
from gpufeed.config.schema import Config
from gpufeed.exposition.server_facts import ProcessFacts, ReceiverFacts, ServerFacts
from gpufeed.units import NS_PER_S, seconds

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_OWN: Final = Path("/proc/self")
_START_TIME_FIELD: Final = 19  # of what follows the command in /proc/PID/stat; proc_pid_stat(5) numbers it 22


@dataclass(slots=True)
class Facts:
    """The facts that change one by one; `now` puts them together."""

    clock: Clock
    build: str
    is_simulated: bool
    probe_restarts: int = 0
    is_in_maintenance: bool = False
    alerts: Mapping[tuple[str, Severity, str], int] = field(default_factory=dict)
    receivers: tuple[ReceiverFacts, ...] = ()
    _kept: ServerFacts = field(default_factory=ServerFacts)
    _start_wall_s: float = 0.0

    def __post_init__(self) -> None:
        """What stays as it is."""
        self._kept = ServerFacts(
            version=gpufeed.__version__,
            revision=self.build.partition("+")[2] or "unknown",
            python=platform.python_version(),
            is_simulated=self.is_simulated,
        )
        self._start_wall_s = _start_wall_s(self.clock)

    def use(self, config: Config, rules_hash: str) -> None:
        """A configuration came into force."""
        self._kept = replace(
            self._kept,
            config_hash=config_hash(config),
            rules_hash=rules_hash,
            fast_period_s=config.sampling.fast_period.seconds,
            is_reload_successful=True,
            reload_success_wall_s=self.clock.wall_ns() / NS_PER_S,
        )

    def note_failed_reload(self) -> None:
        """A configuration was refused."""
        self._kept = replace(self._kept, is_reload_successful=False)

    def note_scrape(self, duration_s: float) -> None:
        """A scrape was answered."""
        self._kept = replace(self._kept, scrape_durations=self._kept.with_scrape(duration_s))

    def now(self, *, with_process: bool = False) -> ServerFacts:
        """All of them; those of the process only where asked for, because they are read."""
        return replace(
            self._kept,
            probe_restarts=self.probe_restarts,
            is_in_maintenance=self.is_in_maintenance,
            alerts={(name, severity, state): count for (name, severity, state), count in self.alerts.items()},
            receivers=self.receivers,
            process=_process(self._start_wall_s) if with_process else None,
        )


def _process(start_wall_s: float) -> ProcessFacts:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    virtual_pages, resident_pages, *_ = (_OWN / "statm").read_text(encoding="ascii").split()
    return ProcessFacts(
        cpu_s=usage.ru_utime + usage.ru_stime,
        resident_bytes=int(resident_pages) * _PAGE_BYTES,
        virtual_bytes=int(virtual_pages) * _PAGE_BYTES,
        start_wall_s=start_wall_s,
        open_fds=sum(1 for _ in (_OWN / "fd").iterdir()) - 1,  # less the one that lists them
        max_fds=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _start_wall_s(clock: Clock) -> float:
    fields = (_OWN / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    since_boot_s = int(fields[_START_TIME_FIELD]) / _TICKS_PER_S
    return clock.wall_ns() / NS_PER_S - (seconds(clock.boottime_ns()) - since_boot_s)
