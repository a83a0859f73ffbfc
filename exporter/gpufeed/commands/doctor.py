# SPDX-License-Identifier: Apache-2.0
"""`gpufeed doctor`: what this node can and cannot measure, why, and what to do about it."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gpufeed import logs
from gpufeed.clock import SystemClock
from gpufeed.config.flags import given
from gpufeed.config.fold import settings
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config
from gpufeed.control_client import CommandRefusedError, DaemonUnreachableError, ask, control_socket
from gpufeed.daemon.collecting import collect
from gpufeed.daemon.configuration import read
from gpufeed.daemon.loop import new_event_loop
from gpufeed.daemon.places import Places
from gpufeed.diagnosis import diagnoses, report, verdict
from gpufeed.model.frame import InputStatus

EXIT_OK: Final = 0
EXIT_TROUBLE: Final = 1
EXIT_NOTHING: Final = 3


@dataclass(frozen=True, slots=True)
class _Told:
    """What was found, by whom, and what did not answer."""

    inputs: tuple[InputStatus, ...]
    by: str
    silent: tuple[str, ...] = ()


def run(arguments: argparse.Namespace) -> int:
    """0: all that is here can be read; 1: something is here and cannot; 3: nothing could be found out."""
    config = read(arguments.config_file, given(arguments))
    told = None if arguments.own else _of_the_daemon(config)
    told = told or _own(config)
    found = diagnoses(told.inputs)
    if arguments.json:
        told_as = {"by": told.by, "silent": told.silent, "inputs": msgspec.to_builtins(found)}
        print(json.dumps(told_as, indent=1))
    else:
        print(told.by)
        for line in report(found, is_brief=arguments.brief):
            print(line)
        for line in told.silent:
            print(f"  ✕ {line}")
        print(verdict(found))
    if not found:
        return EXIT_NOTHING
    return EXIT_TROUBLE if told.silent or any(one.is_trouble for one in found) else EXIT_OK


def _of_the_daemon(config: Config) -> _Told | None:
    """What the running daemon sees: it may be another user with other rights. None: none answers."""
    path = control_socket(config)
    try:
        answer: Any = ask(path, "inputs")
        inputs = msgspec.convert(answer["inputs"], tuple[InputStatus, ...])
        who = f"pid {int(answer['pid'])}, {_user(int(answer['uid']))}"
    except (DaemonUnreachableError, CommandRefusedError, msgspec.ValidationError, KeyError, TypeError, ValueError):
        return None
    return _Told(inputs, f"As the running daemon sees it ({who}); --own looks for itself.")


def _own(config: Config) -> _Told:
    logs.configure("error", config.log.format)
    places = Places.settle(config, os.environ)
    sys.stderr.write("gpufeed doctor: looking, up to 10 s …\n")
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            told = probe_config(config, str(places.runtime), None)
            collected = runner.run(collect(told, settings(config), SystemClock()))
    finally:
        places.leave()
    silent: Sequence[str] = [
        f"{lane} did not answer within 10 s{f', in {call}' if call else ''}" for lane, call in collected.silent
    ]
    if collected.why_nothing:
        silent = [f"nothing was read: the probe is down: {collected.why_nothing}"]
    by = f"No daemon answers; seen as {_user(os.geteuid())}. A daemon that runs as another user may see less."
    return _Told(tuple(collected.state.inputs.values()), by, tuple(silent))


def _user(uid: int) -> str:
    return "root" if uid == 0 else f"user {uid}"
