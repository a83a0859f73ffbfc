# SPDX-License-Identifier: Apache-2.0
"""Whether somebody used a GPU, or any GPU of the node, within the last quarter of an hour.

A job that a fault has killed is gone when the alert is decided: the memory is what makes it a page.
"""

from typing import Final

from gpufeed.model.state import GpuRecord, NodeState
from gpufeed.units import NS_PER_S

REMEMBERED_NS: Final = 15 * 60 * NS_PER_S


def is_gpu_in_use(gpu: GpuRecord, now_ns: int) -> bool:
    """Whether a process held `gpu` at `now_ns` (monotonic) or in the 15 minutes before."""
    return gpu.in_use_at_ns is not None and now_ns - gpu.in_use_at_ns <= REMEMBERED_NS


def is_host_in_use(state: NodeState) -> bool:
    """Whether any GPU of the node was held in the last 15 minutes."""
    return any(is_gpu_in_use(gpu, state.time.monotonic_ns) for gpu in state.gpus.values())
