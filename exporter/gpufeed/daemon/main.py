# SPDX-License-Identifier: Apache-2.0
"""From a configuration to a running server: what can go wrong before it runs, goes wrong here."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from typing import Final

from gpufeed import logs
from gpufeed.clock import SystemClock
from gpufeed.config.kinds import parse_address
from gpufeed.config.schema import Config
from gpufeed.daemon.daemon import Daemon
from gpufeed.daemon.loop import new_event_loop
from gpufeed.daemon.places import Places
from gpufeed.daemon.start import Simulation, Start
from gpufeed.errors import ConfigError
from gpufeed.notify import Systemd, handed_over_sockets
from gpufeed.web.access.door import Door, door
from gpufeed.web.sockets import BindError, bind

EXIT_NOT_BOUND: Final = 3


def serve(config: Config, read_config: Callable[[], Config], simulation: Simulation | None = None) -> int:
    """Run a server to its end; the exit code. Raises ConfigError."""
    logs.configure(config.log.level, config.log.format)
    clock = SystemClock()
    door_ = _door(config)
    try:
        sockets = _sockets(config)
        ui_sockets = _ui_sockets(config)
    except BindError as error:
        sys.stderr.write(f"gpufeed: {error}: choose another --web.listen-address or web.ui_listen_addresses\n")
        return EXIT_NOT_BOUND
    places = Places.settle(config, os.environ)
    start = Start(
        config=config,
        read_config=read_config,
        sockets=sockets,
        places=places,
        clock=clock,
        systemd=Systemd(os.environ, clock),
        simulation=simulation,
        ui_sockets=ui_sockets,
        door=door_,
    )

    async def run() -> int:
        return await Daemon(start).run()

    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(run())
    finally:
        places.leave()


def _door(config: Config) -> Door | None:
    return door(config.web.config_file) if config.web.config_file is not None else None


def _sockets(config: Config) -> tuple[socket.socket, ...]:
    if not config.web.systemd_socket:
        return bind([parse_address(address) for address in config.web.listen_addresses])
    sockets = handed_over_sockets(os.environ)
    if not sockets:
        problem = "web.systemd_socket: systemd handed over no socket; start gpufeed by its .socket unit"
        raise ConfigError((problem,))
    for one in sockets:
        one.setblocking(False)  # noqa: FBT003 the socket module's own form
    return sockets


def _ui_sockets(config: Config) -> tuple[socket.socket, ...]:
    if not config.web.ui:
        return ()
    return bind([parse_address(address) for address in config.web.ui_listen_addresses or ()])
