# SPDX-License-Identifier: Apache-2.0
"""The composition root of the server: what knows whom, what starts first, what ends last."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gpufeed
from gpufeed import logs
from gpufeed.alerting import evaluator, site
from gpufeed.alerting.notifier import Notifier
from gpufeed.alerting.prometheus import fingerprint
from gpufeed.alerting.silence import Silence
from gpufeed.config.checks import remarks
from gpufeed.config.fold import settings
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config
from gpufeed.control import ControlError, ControlServer
from gpufeed.daemon.commands import RELEASE_FOR_S, Commands
from gpufeed.daemon.facts import Facts
from gpufeed.daemon.frames import Frames
from gpufeed.daemon.happened import Happened
from gpufeed.daemon.maintenance import Maintenance
from gpufeed.daemon.node import NodeKeeper
from gpufeed.daemon.recent import Recent
from gpufeed.daemon.reloading import Reloading
from gpufeed.daemon.saving import Keeper, Saving
from gpufeed.daemon.scrapes import Scrapes
from gpufeed.daemon.start import Simulation, Start
from gpufeed.errors import ConfigError
from gpufeed.explain.explain import explain
from gpufeed.explain.shape import Explanation
from gpufeed.exposition.family import Family
from gpufeed.exposition.project import families
from gpufeed.history.rates import Rates
from gpufeed.history.states import StateHistory
from gpufeed.logs import fields
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import Frame
from gpufeed.model.state import NodeState
from gpufeed.units import nanoseconds
from gpufeed.web.endpoints import Delivered, Endpoints, Identity, Options
from gpufeed.web.server import WebServer
from gpufeed.web.sockets import shown
from gpufeed.wire.build_id import build_id
from gpufeed.wire.start import ProbeStart, child_probe, unit_probe
from gpufeed.wire.supervisor import Listener, ProbeSupervisor

EXIT_OK: Final = 0
EXIT_SIMULATION_ENDED: Final = 1
PROBE_STOP_WITHIN_S: Final = 6.0
"""With what else is done at the end, below TimeoutStopSec (10 s) less 2 s."""

_WATCH_EVERY_S: Final = 1.0
_log: Final = logging.getLogger(__name__)


class Daemon:
    """One server, from start to end."""

    def __init__(self, start: Start) -> None:
        self._start = start
        config, clock = start.config, start.clock
        self._node = NodeKeeper(settings(config), clock)
        self._facts = Facts(clock=clock, build=build_id(), is_simulated=start.simulation is not None)
        self._recent = Recent(site.conditions(config.alerting), self._facts.now)
        self._states, self._rates, self._frames = StateHistory(), Rates(), Frames(clock)
        self._notifier, self._silence, self._maintenance = Notifier(clock), Silence(), Maintenance(clock)
        self._happened = Happened()
        self._scrapes = Scrapes(config, self._families, clock, self._facts.note_scrape)
        self._saving = Saving(
            {
                "node": Keeper(self._node.save, self._node.restore),
                "alerts": Keeper(lambda: self._recent.save(self._node.state), self._recent.restore),
                "events": Keeper(self._happened.save, self._happened.restore),
                "maintenance": Keeper(self._maintenance.save, self._maintenance.restore),
            },
            clock,
        )
        self._supervisor = ProbeSupervisor(
            self._probe_config(config), self._listener(), clock, start=_probe_start(config, start.simulation)
        )
        self._reloading = Reloading(config, start.read_config, self._apply)
        self._endpoints = self._make_endpoints()
        self._web = WebServer(self._endpoints, door=start.door)
        self._control = ControlServer(start.places.control_socket, self._commands().by_name())
        self._ended = asyncio.Event()
        self._exit_code = EXIT_OK
        self._is_ready = False
        self._reloads: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Serve until a signal, an upgrade, or the end of the simulated node. The exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, f"got {number.name}")
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        loop.add_signal_handler(signal.SIGUSR1, self._release)
        await self._begin()
        watching = asyncio.create_task(self._watch(), name="watch")
        pinging = asyncio.create_task(self._ping(), name="watchdog")
        await self._ended.wait()
        watching.cancel()
        await self._finish()
        pinging.cancel()
        return self._exit_code

    async def _begin(self) -> None:
        self._facts.use(self._start.config, _rules_hash(self._start.config))
        self._notifier.use(self._start.config.alerting, site.conditions(self._start.config.alerting))
        self._node.tell(self._on_state)
        self._supervisor.start()
        if self._start.places.state is not None:
            self._recent.expect()
            self._happened.expect()
            self._saving.begin(self._supervisor)
        await self._web.start(self._start.sockets, self._start.ui_sockets)
        try:
            await self._control.start()
        except ControlError as error:
            _log.warning("no control socket", extra=fields(reason=error))
        else:
            _log.info("taking commands", extra=fields(socket=self._start.places.control_socket))
        addresses = ", ".join(shown(one) for one in self._start.sockets)
        _log.info("serving", extra=fields(address=addresses, version=gpufeed.__version__))
        if self._start.ui_sockets:
            _log.info("serving the page", extra=fields(address=", ".join(map(shown, self._start.ui_sockets))))
        for remark in remarks(self._start.config):
            _log.warning("%s", remark)
        self._is_ready = True
        self._start.systemd.ready(f"Serving on {addresses}")

    async def _finish(self) -> None:
        """In this order: the port is free for a successor at once, and what was learned is kept."""
        self._start.systemd.stopping()
        self._is_ready = False
        self._web.close_listeners()
        self._saving.save()
        await self._notifier.stop()
        is_gone = await self._supervisor.stop(PROBE_STOP_WITHIN_S)
        if not is_gone:
            _log.warning("the probe cannot be ended: a call of it does not return", extra=fields(lanes=self._stuck()))
        await self._control.stop()
        await self._web.stop()
        for task in self._reloads:
            task.cancel()
        _log.info("stopped")

    def _listener(self) -> Listener:
        return Listener(
            on_frame=self._on_frame,
            on_blob=self._saving.on_blob,
            on_blob_saved=self._saving.on_saved,
            on_upgrade=lambda build: self._end(f"another version is installed: {build}"),
        )

    def _commands(self) -> Commands:
        return Commands(
            node=self._node,
            supervisor=self._supervisor,
            endpoints=self._endpoints,
            maintenance=self._maintenance,
            frames=self._frames,
            config=lambda: self._reloading.config,
            keep=self._saving.save,
            clock=self._start.clock,
        )

    def _make_endpoints(self) -> Endpoints:
        start = self._start
        simulation = start.simulation
        return Endpoints(
            identity=Identity(
                version=gpufeed.__version__,
                hostname=socket.gethostname(),
                is_simulated=simulation is not None,
                scenario=simulation.scenario if simulation is not None else "",
            ),
            telemetry_path=start.config.web.telemetry_path,
            has_ui=start.config.web.ui,
            options=self._options,
            scrape=self._scrapes.answer,
            state=lambda: self._node.state,
            alerts=self._recent.firing,
            events=self._happened.newest,
            receivers=self._receivers,
            is_ready=lambda: self._is_ready,
            reload=self._reload,
            explain=self._explain,
            slots=self._states.slots,
            rates=self._rates.of,
        )

    def _receivers(self) -> tuple[Delivered, ...]:
        return tuple(
            Delivered(receiver=one.receiver, waiting=one.waiting, dropped=one.dropped) for one in self._facts.receivers
        )

    def _explain(self, window_s: int, has_job_names: bool) -> Explanation:  # noqa: FBT001 as Endpoints has it
        return explain(
            self._node.state,
            self._states.slots,
            window_s,
            hostname=socket.gethostname(),
            is_simulated=self._start.simulation is not None,
            has_job_names=has_job_names,
        )

    def _options(self) -> Options:
        web = self._reloading.config.web
        return Options(max_requests=web.max_requests, has_lifecycle=web.enable_lifecycle, has_job_names=web.ui_jobs)

    def _families(self) -> Iterator[Family]:
        return families(self._node.state, self._facts.now(with_process=True))

    def _on_frame(self, frame: Frame) -> None:
        self._frames.on_frame(frame)
        self._node.on_frame(frame)

    def _on_state(self, state: NodeState) -> None:
        self._facts.probe_restarts = max(self._supervisor.starts - 1, 0)
        changes = self._recent.on_state(state)
        if self._happened.on_state(state, changes, self._recent.text):
            self._saving.hasten()
        is_silent = self._facts.is_in_maintenance = self._maintenance.is_on
        told = self._silence.passed(self._recent.alerts, changes, state.time.wall_ns, is_silent=is_silent)
        self._notifier.tell(*told, state.time.monotonic_ns)
        self._facts.receivers = self._notifier.facts()
        self._states.append(state)
        self._rates.append(state)
        self._facts.alerts = evaluator.counts(self._recent.alerts)
        self._saving.on_state(state)

    def _probe_config(self, config: Config) -> ProbeConfig:
        places, simulation = self._start.places, self._start.simulation
        told = probe_config(config, str(places.runtime), str(places.state) if places.state is not None else None)
        return simulation.overlay(told) if simulation is not None else told

    def _apply(self, config: Config) -> None:
        self._node.settle(settings(config))
        conditions = site.conditions(config.alerting)
        self._recent.use(conditions)
        self._notifier.use(config.alerting, conditions)
        self._scrapes.use(config)
        self._facts.use(config, _rules_hash(config))
        self._supervisor.apply(self._probe_config(config))
        logs.configure(config.log.level, config.log.format)

    async def _reload(self) -> None:
        self._start.systemd.reloading()
        try:
            await self._reloading.reload()
        except ConfigError as error:
            self._facts.note_failed_reload()
            for problem in error.problems:
                _log.error("%s", problem)
            raise
        finally:
            self._start.systemd.ready("Serving")

    def _release(self) -> None:
        """As `gpufeed release` without a duration does: for whoever can send a signal and no more."""
        self._supervisor.release(self._start.clock.monotonic_ns() + nanoseconds(RELEASE_FOR_S))
        _log.info("NVML is closed", extra=fields(seconds=RELEASE_FOR_S))

    def _on_hangup(self) -> None:
        async def reload() -> None:
            try:
                await self._reload()
            except ConfigError:
                _log.error("the configuration is wrong, the old one stays in force")

        task = asyncio.get_running_loop().create_task(reload(), name="reload")
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    def _end(self, why: str, exit_code: int = EXIT_OK) -> None:
        if not self._ended.is_set():
            _log.info("stopping", extra=fields(reason=why))
            self._exit_code = exit_code
            self._ended.set()

    async def _watch(self) -> None:
        simulation = self._start.simulation
        while simulation is not None:
            if not simulation.is_alive():
                self._end("the simulated node has ended", EXIT_SIMULATION_ENDED)
            await asyncio.sleep(_WATCH_EVERY_S)

    async def _ping(self) -> None:
        period_s = self._start.systemd.watchdog_period_s
        while period_s is not None:
            self._start.systemd.alive()
            await asyncio.sleep(period_s)

    def _stuck(self) -> str:
        state = self._node.state
        return ", ".join(name for name, lane in state.lanes.items() if lane.busy_since_ns is not None)


def _probe_start(config: Config, simulation: Simulation | None) -> ProbeStart:
    """A simulated node has a probe of its own: the unit's belongs to the real one."""
    path = config.paths.probe_socket
    return child_probe if path is None or simulation is not None else unit_probe(Path(path))


def _rules_hash(config: Config) -> str:
    return fingerprint(site.rules(config))
