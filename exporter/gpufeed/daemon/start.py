# SPDX-License-Identifier: Apache-2.0
"""What a daemon is started with."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from gpufeed.clock import Clock
from gpufeed.config.schema import Config
from gpufeed.daemon.places import Places
from gpufeed.model.desired import ProbeConfig
from gpufeed.notify import Systemd
from gpufeed.web.access.door import Door


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A node that does not exist: what is read in place of the real one, and whether it still lives."""

    scenario: str
    overlay: Callable[[ProbeConfig], ProbeConfig]
    is_alive: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything is settled: nothing here can be wrong any more."""

    config: Config
    read_config: Callable[[], Config]  # for reloads; may block, raises ConfigError
    sockets: tuple[socket.socket, ...]
    places: Places
    clock: Clock
    systemd: Systemd
    simulation: Simulation | None = None
    ui_sockets: tuple[socket.socket, ...] = ()  # of the page, where it is not served beside the metrics
    door: Door | None = None  # None: anybody may ask, without TLS
