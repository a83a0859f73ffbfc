# SPDX-License-Identifier: Apache-2.0
"""Ways to split a board into MIG instances, as operators split them."""

from typing import Final, NamedTuple

SLICES: Final = 7
MEMORY_SLICES: Final = 8
EMPTY_BYTES: Final = 13 * 1024 * 1024
"""What an instance shows as used that nobody uses."""


class MigDevice(NamedTuple):
    """A compute instance of a GPU instance, and the share of the board that the GPU instance has."""

    place: int  # of nvmlDeviceGetMigDeviceHandleByIndex
    gi: int
    ci: int
    slices: int  # of SLICES
    memory_slices: int  # of MEMORY_SLICES


LAYOUTS: Final[dict[str, tuple[MigDevice, ...]]] = {
    "off": (),
    "empty": (),
    "7x1g": tuple(MigDevice(place, 7 + place, 0, 1, 1) for place in range(7)),
    "mixed": (
        MigDevice(0, 2, 0, 3, 4),
        MigDevice(2, 5, 0, 2, 2),  # place 1 is a hole
        MigDevice(5, 9, 0, 1, 1),
    ),
    "shared": (
        MigDevice(0, 1, 0, 4, 4),  # two compute instances within one GPU instance
        MigDevice(1, 1, 1, 4, 4),
        MigDevice(4, 6, 0, 3, 4),
    ),
}
"""In the first instance runs what the board's activity says; the others are empty."""

NUMBERS: Final = tuple(LAYOUTS)
"""A layout's number in the truth; 0 is no MIG."""
