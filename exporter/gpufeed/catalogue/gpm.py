# SPDX-License-Identifier: Apache-2.0
"""How much of a GPU's engines worked: integrals and last means of GPM, the counters of the profiler."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import SLICE_LABELS, MetricDef

TITLE: Final = "GPU engines (GPM)"

GPU_ENGINE_ACTIVE_SECONDS_TOTAL = MetricDef(
    name="gpufeed_gpu_engine_active_seconds_total",
    type="counter",
    unit="seconds",
    help="Time an engine was active: rate() gives the exact mean ratio, whatever the scrape interval.",
    labels=(*SLICE_LABELS, "engine"),
    source="GPM 1, 2, 5, 10, integrated",
    profile="default",
    collector="gpm",
)

GPU_PIPE_ACTIVE_SECONDS_TOTAL = MetricDef(
    name="gpufeed_gpu_pipe_active_seconds_total",
    type="counter",
    unit="seconds",
    help="Time an arithmetic pipe or codec was active. Pipes are parts of engines: do not add them to those.",
    labels=(*SLICE_LABELS, "pipe"),
    source="GPM, integrated",
    profile="full",
    collector="gpm",
    sheds="detail",
)

_ratio = partial(MetricDef, type="gauge", unit="ratio", collector="gpm", sheds="detail")

GPU_ENGINE_ACTIVE_RATIO = _ratio(
    name="gpufeed_gpu_engine_active_ratio",
    help="Share of the last interval between two GPM samples in which an engine was active.",
    labels=(*SLICE_LABELS, "engine"),
    source="GPM 1, 2, 5, 10",
    profile="full",
)

GPU_SM_OCCUPANCY_RATIO = _ratio(
    name="gpufeed_gpu_sm_occupancy_ratio",
    help="Warps resident, as a share of what the multiprocessors can hold, in the last GPM interval.",
    labels=SLICE_LABELS,
    source="GPM 3",
    profile="default",
)
