# SPDX-License-Identifier: Apache-2.0
"""`gpufeed once`: one collection, everything this node can say, on standard output."""

import argparse
import asyncio
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from gpufeed import logs
from gpufeed.clock import SystemClock
from gpufeed.config.flags import given
from gpufeed.config.fold import settings
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config
from gpufeed.daemon.collecting import Collected, collect
from gpufeed.daemon.configuration import read
from gpufeed.daemon.facts import Facts
from gpufeed.daemon.loop import new_event_loop
from gpufeed.daemon.places import Places
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.family import Family, label_pairs
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.selection import select
from gpufeed.wire.build_id import build_id

_FORMATS: Final = {"text": Format.TEXT, "openmetrics": Format.OPENMETRICS}
EXIT_NOTHING_READ: Final = 1
_NO_CAP: Final = sys.maxsize


def run(arguments: argparse.Namespace) -> int:
    """Print what came within 10 s in `arguments.format`; what did not is named on standard error. 1: nothing."""
    flags = given(arguments)
    config = read(arguments.config_file, flags)
    is_level_asked = any(flag.key.dotted == "log.level" for flag in flags)
    logs.configure(config.log.level if is_level_asked else "warn", config.log.format)
    clock = SystemClock()
    places = Places.settle(config, os.environ)
    told = probe_config(config, str(places.runtime), None)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            collected = runner.run(collect(told, settings(config), clock))
    finally:
        places.leave()
    facts = Facts(clock=clock, build=build_id(), is_simulated=False)
    sys.stdout.write(_written(families(collected.state, facts.now()), config, arguments.format))
    sys.stdout.flush()
    for line in _not_measured(collected):
        sys.stderr.write(f"gpufeed once: {line}\n")
    return EXIT_NOTHING_READ if collected.why_nothing else 0


def _written(found: Iterable[Family], config: Config, form: str) -> str:
    drop: Sequence[str] = config.exposition.drop
    if form == "json":
        chosen = select(found, "full", drop, _NO_CAP).families
        return json.dumps([_plain(family) for family in chosen], indent=1, ensure_ascii=False) + "\n"
    encoder = Encoder(profile="full", drop=drop, max_series=_NO_CAP)
    return encoder.encode(found).page(_FORMATS[form]).decode()


def _plain(family: Family) -> dict[str, object]:
    definition = family.definition
    rows = [
        {"labels": dict(label_pairs(definition, values)), "value": value if math.isfinite(value) else None}
        for values, value in family.rows
    ]
    return {"name": definition.name, "type": definition.type, "help": definition.help, "rows": rows}


def _not_measured(collected: Collected) -> Iterable[str]:
    if collected.why_nothing:
        yield f"nothing was read: the probe is down: {collected.why_nothing}"
    for lane, call in collected.silent:
        yield f"lane {lane} did not answer within 10 s{f' (in {call})' if call else ''}"
    for _, one in sorted(collected.state.inputs.items()):
        if one.state != "available":
            scope = f" of {one.scope}" if one.scope else ""
            yield " – ".join(part for part in (f"{one.input}{scope} is {one.state}", one.reason, one.fix) if part)
