# SPDX-License-Identifier: Apache-2.0
"""Engines of GPUs: integrals that the server keeps, and the means of the last interval."""

from collections.abc import Iterator

from gpufeed.catalogue import gpm
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import slice_family, without_split_boards
from gpufeed.model.gpu import GpmInterval
from gpufeed.model.state import NodeState


def families(state: NodeState) -> Iterator[Family]:
    """Engine and pipe seconds, then ratios."""
    totals = rows.slices(state, rows.fresh_totals(state, GpmInterval))
    engines = [((*key, name), value) for key, total in totals for name, value in total.engine_active_s.items()]
    yield Family(gpm.GPU_ENGINE_ACTIVE_SECONDS_TOTAL, without_split_boards(engines))
    pipes = [((*key, name), value) for key, total in totals for name, value in total.pipe_active_s.items()]
    yield Family(gpm.GPU_PIPE_ACTIVE_SECONDS_TOTAL, without_split_boards(pipes))

    intervals = rows.board_or_instances(state, GpmInterval)
    ratios = [
        ((*key, engine), ratio)
        for key, interval in intervals
        for engine, ratio in _engines(interval).items()
        if ratio is not None
    ]
    yield Family(gpm.GPU_ENGINE_ACTIVE_RATIO, without_split_boards(ratios))
    yield slice_family(gpm.GPU_SM_OCCUPANCY_RATIO, intervals, lambda interval: interval.occupancy_ratio)


def _engines(interval: GpmInterval) -> dict[str, float | None]:
    return {
        "graphics": interval.graphics_ratio,
        "sm": interval.sm_ratio,
        "tensor": interval.tensor_ratio,
        "dram": interval.dram_ratio,
    }
