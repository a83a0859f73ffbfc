# SPDX-License-Identifier: Apache-2.0
"""What the files of a node say, read a second time: no parser, no name and no rule is taken from the package.

Each topic gives every series of its metrics that a page of the node must have, and so all that it may have.
"""

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Node:
    """Files below a root. A link may be one, or in a tree copied to where there are none a file with its target."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, path: str) -> str | None:
        """What a file says; None where it is missing, refuses, or says that it does not know."""
        try:
            said = self._real(path).read_bytes().decode("utf-8", "backslashreplace").strip()
        except OSError:
            return None
        return said if said and not said.lower().startswith("n/a") else None

    def raw(self, path: str) -> str:
        try:
            return self._real(path).read_bytes().decode("utf-8", "backslashreplace")
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        said = self.text(path)
        return int(said) if said is not None and re.fullmatch(r"\d+", said) else None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(entry.name for entry in self._real(path).iterdir())
        except OSError:
            return []

    def end_of_link(self, path: str) -> str | None:
        here = self.root / path
        parent = self._real(str(Path(path).parent))
        here = parent / here.name
        if here.is_symlink():
            return here.readlink().name
        kept = self._kept(here)
        return None if kept is None else kept.name

    def _real(self, path: str) -> Path:
        at = self.root
        for part in Path(path).parts:
            at = self._kept(at / part) or at / part
        return at

    @staticmethod
    def _kept(path: Path) -> Path | None:
        try:
            target = path.read_text(encoding="ascii").strip() if path.is_file() and not path.is_symlink() else ""
        except (OSError, UnicodeDecodeError):
            return None
        return Path(os.path.normpath(path.parent / target)) if re.fullmatch(r"(?:\.\.?/)+\S+", target) else None


class Page:
    """The series of one topic."""

    def __init__(self) -> None:
        self.series: Series = {}
        self.metrics: set[str] = set()

    def add(self, metric: str, value: float | None, **labels: str) -> None:
        name = f"gpufeed_{metric}"
        self.metrics.add(name)
        if value is not None:
            self.series[name, frozenset(labels.items())] = value


def differences(page: Page, found: Series) -> Iterator[str]:
    """What a page of the node has too much, too little, or otherwise."""
    ours = {key: value for key, value in found.items() if key[0] in page.metrics}
    for key in sorted(page.series.keys() | ours.keys(), key=repr):
        name = f"{key[0]}{dict(sorted(key[1]))}"
        if key not in ours:
            yield f"missing: {name} {page.series[key]}"
        elif key not in page.series:
            yield f"too much: {name} {ours[key]}"
        elif abs(ours[key] - page.series[key]) > 1e-9 * max(1.0, abs(page.series[key])):
            yield f"differs: {name} is {ours[key]}, the files say {page.series[key]}"
