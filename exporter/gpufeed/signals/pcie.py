# SPDX-License-Identifier: Apache-2.0
"""What a PCIe link can carry, in bytes per second and direction."""

from typing import Final

from gpufeed.model.gpu import GpuIdentity

LANE_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Of one lane, after line coding, by generation (PCI Express Base Specification)."""
ACHIEVABLE: Final = 0.88
"""Share of it that a copy from the host reaches: packet headers and flow control take the rest."""
UNKNOWN_GENERATION: Final = 6
UNKNOWN_WIDTH: Final = 16


def link_bytes_per_s(generation: int | None, width: int | None) -> float | None:
    """The rate of a link of `width` lanes, or None where either is not known."""
    lane = LANE_BYTES_PER_S.get(generation or 0)
    return None if lane is None or not width or width < 0 else lane * width


def link_ceiling(identity: GpuIdentity | None) -> float:
    """The most that can cross the link of this GPU; of the fastest there is where it is not known."""
    if identity is not None:
        known = link_bytes_per_s(identity.pcie_generation_max, identity.pcie_width_max)
        if known is not None:
            return known
    return LANE_BYTES_PER_S[UNKNOWN_GENERATION] * UNKNOWN_WIDTH
