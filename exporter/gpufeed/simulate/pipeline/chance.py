# SPDX-License-Identifier: Apache-2.0
"""Sources of chance: one for each thing that varies, so that what others draw, and when, changes nothing for it."""

import math
from random import Random
from typing import Final


def source(*names: object) -> Random:
    """The same names give the same numbers, in every process."""
    return Random("/".join(str(name) for name in names))  # noqa: S311  # nothing is kept secret with these


def about_one(random: Random, deviation: float) -> float:
    """A factor of mean one: even between two bounds, never below a fifth."""
    return max(_LEAST, 1 + deviation * _WIDTH * (random.random() - 0.5))


def hardness(random: Random, deviation: float) -> float:
    """A factor of mean one whose logarithm is nearly normal: some are much harder than most."""
    normal = 2 * (random.random() + random.random() + random.random() - 1.5)
    return math.exp(deviation * (normal - deviation / 2))


_LEAST: Final = 0.2
_WIDTH: Final = math.sqrt(12)
"""Of an even distribution, over its standard deviation."""
