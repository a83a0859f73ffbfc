# SPDX-License-Identifier: Apache-2.0
"""How far each bar of the standard was off when it was last looked at: until it is met, it may not get worse.

`held.toml` has a number for every bar that is missed. A bar that has none is held to the standard, and so is one that
has been met since and was taken out. Numbers only fall: `--lower` writes those that were found where they are better.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.accuracy.summary import Bar

FILE: Final = Path(__file__).with_name("held.toml")
SLACK: Final = 0.1
"""Of a number: a change of the simulator moves all of them a little, and is no change of the product."""
_HEAD: Final = """\
# What `make accuracy` found of the bars in standard.toml that are not met yet. CI fails where one gets worse, by more
# than a tenth, or where a bar that is not here is missed. Written by `make accuracy JUDGE="--hold --lower"`, which only
# ever lowers a number, or takes it out. The aim is a file without numbers.
"""


@dataclass(frozen=True, slots=True)
class Held:
    """By the name of the bar."""

    found: Mapping[str, float]

    @classmethod
    def load(cls, path: Path = FILE) -> "Held":
        """From the file beside this one."""
        return cls(tomllib.loads(path.read_text(encoding="utf-8"))["missed"])

    def most(self, bar: Bar) -> float:
        """What is allowed for now: never less than the standard."""
        return max(bar.most, (1 + SLACK) * self.found.get(bar.name, 0.0))

    def allows(self, bar: Bar) -> bool:
        """Whether it is met, or no worse than it was."""
        return bar.found <= self.most(bar)

    def lowered(self, bars: Iterable[Bar]) -> "Held":
        """With what was found where that is better; bars that were not looked at stay as they were."""
        found = dict(self.found)
        for bar in bars:
            if bar.is_met:
                found.pop(bar.name, None)
            elif bar.name in found:
                found[bar.name] = min(found[bar.name], bar.found)
        return Held(found)

    def write(self, path: Path = FILE) -> None:
        """As a file that `load` reads."""
        lines = [f'"{name}" = {found:.4f}' for name, found in self.found.items()]
        path.write_text("\n".join([_HEAD, "[missed]", *lines, ""]), encoding="utf-8")
