# SPDX-License-Identifier: Apache-2.0
"""`gpufeed replay`: fold a recording again, as fast as it goes, and say what the daemon would have said."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

import msgspec

from gpufeed import step as fold
from gpufeed.config.duration import Duration
from gpufeed.explain.explain import MAX_WINDOW_S, explain
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.history.states import StateHistory
from gpufeed.units import seconds
from gpufeed.wire.recording import Reader, RecordingError

NAME: Final = "replay"
EXIT_OK: Final = 0
EXIT_DAMAGED: Final = 1
EXIT_BAD_USE: Final = 2
_NO_CAP: Final = 1_000_000


def run(arguments: argparse.Namespace) -> int:
    """0; 1 for what is no recording or not a whole one (what is whole of it is told); 2 for bad use."""
    try:
        at_ns = Duration.parse(arguments.at).ns if arguments.at else None
        window_s = round(Duration.parse(arguments.window).seconds)
    except ValueError as error:
        return _failed(str(error), EXIT_BAD_USE)
    if not 1 <= window_s <= MAX_WINDOW_S:
        return _failed("--window: from 1s to 30m", EXIT_BAD_USE)
    try:
        with Path(arguments.file).open("rb") as stream:
            replay = Replay(Reader(stream))
            damage = replay.run(at_ns)
    except OSError as error:
        return _failed(f"{arguments.file}: {error.strerror or error}", EXIT_BAD_USE)
    except RecordingError as error:
        return _failed(f"{arguments.file}: {error}", EXIT_DAMAGED)
    if damage:
        span_s = seconds(replay.node.state.time.monotonic_ns - replay.reader.header.time.monotonic_ns)
        _failed(f"{arguments.file}: {damage}. Whole: {replay.count} frames, {span_s:.0f} s", EXIT_DAMAGED)
        if not replay.count:
            return EXIT_DAMAGED
    replay.tell(arguments.format, window_s)
    return EXIT_DAMAGED if damage else EXIT_OK


class Replay:
    """A recording, folded."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.node = fold.initial(reader.header.settings, reader.header.time)
        self.history = StateHistory()
        self.count = 0

    def run(self, for_ns: int | None) -> str:
        """Fold, as far as `for_ns` after its begin. Not empty: what is wrong with the rest."""
        end_ns = None if for_ns is None else self.reader.header.time.monotonic_ns + for_ns
        try:
            for frame in self.reader.frames():
                if end_ns is not None and frame.time.monotonic_ns > end_ns:
                    break
                self.node = fold.step(self.node, frame)
                self.history.append(self.node.state)
                self.count += 1
        except RecordingError as error:
            return str(error)
        return ""

    def tell(self, form: str, window_s: int) -> None:
        """Print it as an explanation or as metrics."""
        header, state = self.reader.header, self.node.state
        if form == "metrics":
            facts = ServerFacts(version=header.version, is_simulated=header.is_simulated)
            encoder = Encoder(profile="full", max_series=_NO_CAP)
            sys.stdout.write(encoder.encode(families(state, facts)).page(Format.TEXT).decode())
            return
        told = explain(
            state, self.history.slots, window_s,
            hostname="recording", is_simulated=header.is_simulated, has_job_names=True,
        )  # fmt: skip
        if form == "json":
            print(json.dumps(msgspec.to_builtins(told)))
            return
        simulated = ", of a simulated node: nothing of it exists" if header.is_simulated else ""
        print(f"{self.count} frames, recorded by gpufeed {header.version}{simulated}")
        print("\n".join(told.lines))


def _failed(why: str, code: int) -> int:
    sys.stderr.write(f"gpufeed {NAME}: {why}\n")
    return code
