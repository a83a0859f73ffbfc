# SPDX-License-Identifier: Apache-2.0
"""Sources of chance: one for each thing that varies, so that what others draw, and when, changes nothing for it."""

from random import Random


def source(*names: object) -> Random:
    """The same names give the same numbers, in every process."""
    return Random("/".join(str(name) for name in names))  # noqa: S311  # nothing is kept secret with these
