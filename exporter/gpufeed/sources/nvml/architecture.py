# SPDX-License-Identifier: Apache-2.0
"""What NVML gives as a number of its own about the chip: generation names, streaming multiprocessors."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {2: "kepler", 3: "maxwell", 4: "pascal", 5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper",
     10: "blackwell", 13: "rubin"}
)  # fmt: skip
"""nvmlDeviceArchitecture_t. Unknown numbers stay unknown: they do not order by age."""

_CORES_PER_SM: Final[Mapping[tuple[int, int], int]] = MappingProxyType(
    {
        (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128,
        (9, 0): 128, (10, 0): 128, (10, 3): 128, (12, 0): 128, (12, 1): 128,
    }
)  # fmt: skip
"""FP32 cores of one streaming multiprocessor by compute capability (CUDA C++ Programming Guide)."""


def architecture_name(number: int) -> str | None:
    """Lower-case name of an nvmlDeviceArchitecture_t."""
    return _NAMES.get(number)


def sm_count(cores: int, capability: tuple[int, int]) -> int | None:
    """Streaming multiprocessors of a whole board; None for a chip of unknown make-up. NVML counts only cores."""
    per_sm = _CORES_PER_SM.get(capability)
    if not per_sm or cores % per_sm:
        return None
    return cores // per_sm
