# SPDX-License-Identifier: Apache-2.0
"""`gpufeed demo`: the same daemon over a node that does not exist, and says so wherever it is seen."""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from gpufeed.config.flags import given
from gpufeed.config.schema import Config
from gpufeed.config.web import DEFAULT_PORT, Web
from gpufeed.daemon.configuration import read
from gpufeed.daemon.main import serve
from gpufeed.daemon.start import Simulation
from gpufeed.errors import ConfigError
from gpufeed.model.desired import ProbeConfig, SimulatedNode
from gpufeed.simulate.activity import Scenario
from gpufeed.simulate.hardware import MAX_GPUS, MODELS
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.scenarios import SCENARIOS
from gpufeed.wire.spawn import Child, spawn_python

_TRUTH_MODULE: Final = "gpufeed.simulate.process"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 a private folder is made below it: the trees change five times a second
_APPEARS_WITHIN_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.02
_END_WITHIN_S: Final = 2.0


def run(arguments: argparse.Namespace) -> int:
    """Simulate and serve until a signal. Raises ConfigError; 3 where an address is taken."""
    _check(arguments)

    def read_again() -> Config:
        flags = given(arguments)
        config = read(arguments.config_file, flags)
        return config if any(flag.key.name == "listen_addresses" for flag in flags) else _on_loopback(config)

    config = read_again()
    with _folder() as root, _living_node(arguments, root) as child:
        sys.stderr.write(
            f"gpufeed demo: a simulated node with {arguments.gpus} × {arguments.model}, scenario"
            f" {arguments.scenario}. Nothing it shows exists.\n"
        )
        simulation = Simulation(
            scenario=arguments.scenario,
            overlay=lambda told: _overlaid(told, root),
            is_alive=lambda: child.poll() is None,
        )
        return serve(config, read_again, simulation)


def _on_loopback(config: Config) -> Config:
    """Where no address is set: what a demo shows is for the person at this machine, not for its network."""
    if config.web.listen_addresses != Web().listen_addresses:
        return config
    web = msgspec.structs.replace(config.web, listen_addresses=(f"127.0.0.1:{DEFAULT_PORT}",))
    return msgspec.structs.replace(config, web=web)


def _check(arguments: argparse.Namespace) -> None:
    problems = []
    stories: dict[str, Scenario | JudgedScenario] = {**SCENARIOS, **JUDGED}
    if arguments.scenario not in stories:
        problems.append(f"--scenario {arguments.scenario}: there are {', '.join(stories)}")
    if arguments.layout not in LAYOUTS:
        problems.append(f"--layout {arguments.layout}: there are {', '.join(LAYOUTS)}")
    if arguments.model not in MODELS:
        problems.append(f"--model {arguments.model}: there are {', '.join(MODELS)}")
    if not 1 <= arguments.gpus <= MAX_GPUS:
        problems.append(f"--gpus {arguments.gpus}: expected 1 to {MAX_GPUS}")
    if not problems:
        models = stories[arguments.scenario].models
        if models and arguments.model not in models:
            problems.append(f"--scenario {arguments.scenario}: is told of {', '.join(models)} only")
    if problems:
        raise ConfigError(tuple(problems))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="gpufeed-demo-", dir=parent, ignore_cleanup_errors=True) as root:
        yield Path(root)


@contextlib.contextmanager
def _living_node(arguments: argparse.Namespace, root: Path) -> Iterator[Child]:
    """The truth process; it ends when our end of its lifeline closes, however we end."""
    theirs, ours = os.pipe()
    truth = _truth_path(root)
    options = ["--root", str(root), "--truth", str(truth), "--lifeline", str(theirs)]
    options += ["--scenario", arguments.scenario, "--model", arguments.model, "--gpus", str(arguments.gpus)]
    options += ["--layout", arguments.layout]
    try:
        child = spawn_python(_TRUTH_MODULE, options, [theirs])
    finally:
        os.close(theirs)
    try:
        _wait_for(lambda: truth.exists() or child.poll() is not None, _APPEARS_WITHIN_S)
        yield child
    finally:
        os.close(ours)
        _wait_for(lambda: child.poll() is not None, _END_WITHIN_S)
        child.kill()


def _overlaid(told: ProbeConfig, root: Path) -> ProbeConfig:
    return msgspec.structs.replace(
        told,
        procfs=str(root / "proc"),
        sysfs=str(root / "sys"),
        rootfs=str(root),
        simulated=SimulatedNode(truth_path=str(_truth_path(root))),
        reports_dir=str(root / "reports"),
    )


def _truth_path(root: Path) -> Path:
    return root / "truth"


def _wait_for(claim: Callable[[], bool], within_s: float) -> None:
    for _ in range(round(within_s / _LOOK_EVERY_S)):
        if claim():
            return
        time.sleep(_LOOK_EVERY_S)
