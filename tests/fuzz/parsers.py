# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of parsers: an input that reaches a line by a way not gone before is bent further."""

import hashlib
import random
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from captured.trees import OURS, unpack
from fuzz.mutations import mutate
from fuzz.targets import SEEDS, TARGETS, Target, fault

CORPUS = Path(__file__).parent / "corpus"
_PARSERS = "gpufeed/parse/"
Edge = tuple[str, int, int]


class ParserError(Exception):
    """An input that a parser takes amiss."""

    def __init__(self, name: str, data: bytes, what: str) -> None:
        super().__init__(f"{name} {what}\n  of {data[:200]!r}")
        self.name, self.data = name, data


def seeds_of(target: Target, contents: dict[str, bytes]) -> list[bytes]:
    """Contents of files of ours that the parser is for."""
    files = [data for path, data in contents.items() if path.endswith(target.files)] if target.files else []
    return [*files, *(SEEDS[name] for name in target.seeds), b""]


def contents_of_ours(folder: Path) -> dict[str, bytes]:
    """Every file of the cases in tests/captures, by its path below a folder of the case."""
    found: dict[str, bytes] = {}
    for name in OURS:
        root = unpack(name, folder / name)
        files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        found.update({str(path.relative_to(folder)): path.read_bytes() for path in files})
    return found


def kept(name: str) -> list[bytes]:
    """Inputs that were worth keeping."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def keep(name: str, data: bytes) -> Path:
    """Write an input down."""
    path = CORPUS / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class Guided:
    """One parser, and the inputs that each went a way of its own."""

    def __init__(self, name: str, seeds: list[bytes]) -> None:
        self.name = name
        self.runs = 0
        self.found: list[bytes] = []  # beyond the seeds
        self._target = TARGETS[name]
        self._edges: set[Edge] = set()
        self._inputs: list[bytes] = []
        for data in seeds:
            self._try(data)
            self._inputs.append(data)

    def bend(self, chance: random.Random, others: list[bytes]) -> None:
        """Try one more. Raises ParserError."""
        data = mutate(chance.choice(self._inputs), chance, others)
        if self._try(data):
            self._inputs.append(data)
            self.found.append(data)

    def _try(self, data: bytes) -> bool:
        """Whether it went a new way."""
        self.runs += 1
        went: set[Edge] = set()
        before = sys.gettrace()
        sys.settrace(_tracer(went))
        try:
            wrong = fault(self._target, data)
        finally:
            sys.settrace(before)
        if wrong is not None:
            raise ParserError(self.name, data, wrong)
        is_new = not went <= self._edges
        self._edges |= went
        return is_new


def _tracer(went: set[Edge]) -> Any:
    def at_call(frame: FrameType, _event: str, _argument: object) -> Any:
        file = frame.f_code.co_filename
        if _PARSERS not in file:
            return None
        last = 0

        def at_line(frame: FrameType, _event: str, _argument: object) -> Any:
            nonlocal last
            went.add((file, last, frame.f_lineno))
            last = frame.f_lineno
            return at_line

        return at_line

    return at_call


def fuzz(seconds: float, seed: int, folder: Path) -> tuple[int, dict[str, list[bytes]]]:
    """All parsers in turn, for so long: how often, and what was found. Raises ParserError."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    contents = contents_of_ours(folder)
    others = sorted(contents.values())
    guided = [Guided(name, [*seeds_of(target, contents), *kept(name)]) for name, target in TARGETS.items()]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for one in guided:
            for _ in range(20):
                one.bend(chance, others)
    return sum(one.runs for one in guided), {one.name: one.found for one in guided}
