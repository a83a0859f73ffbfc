# SPDX-License-Identifier: Apache-2.0
"""Layers, stragglers, waits, and how much of the peak is used."""

from collections.abc import Iterator, Mapping

from gpufeed.catalogue import balance
from gpufeed.exposition.family import Family, Histogram, Labels, Row
from gpufeed.exposition.project_storage import target_labels
from gpufeed.exposition.rows import Labelled, family, records
from gpufeed.model.balance import Layer
from gpufeed.model.ids import GpuUuid
from gpufeed.model.state import NodeState


def families(state: NodeState) -> Iterator[Family]:
    """All of it."""
    yield from _layers(state)
    yield from _storage(state)
    yield from _gpus(state)
    stalls: list[tuple[Labels, Histogram]] = [
        ((cause,), Histogram(counts=found.counts, total=found.total_s)) for cause, found in sorted(state.stalls.items())
    ]
    yield Family(balance.GPU_STALL_SECONDS, histograms=stalls)


def _layers(state: NodeState) -> Iterator[Family]:
    layers: Labelled[Layer] = [((name,), layer) for name, layer in sorted(state.layers.items())]
    measured = [(labels, layer) for labels, layer in layers if layer.capacity is not None]
    yield family(balance.LAYER_BUSY_SECONDS_TOTAL, measured, lambda layer: layer.busy_s)
    yield family(balance.LAYER_DEMAND_BYTES_PER_SECOND, layers, lambda layer: layer.demand_bytes_per_s)
    yield family(balance.LAYER_CAPACITY_BYTES_PER_SECOND, measured, _capacity)
    yield family(balance.LAYER_HEADROOM_RATIO, layers, lambda layer: layer.headroom_ratio)
    yield family(balance.LAYER_GPUS_SUPPORTABLE, layers, lambda layer: layer.gpus_supportable)
    origins = [((*labels, layer.capacity.origin), 1.0) for labels, layer in layers if layer.capacity is not None]
    yield Family(balance.LAYER_CAPACITY_ORIGIN_INFO, origins)


def _capacity(layer: Layer) -> float | None:
    return layer.capacity.bytes_per_s if layer.capacity is not None else None


def _storage(state: NodeState) -> Iterator[Family]:
    known = [
        ((*target_labels(target), direction), capacity)
        for (target, direction), capacity in sorted(state.storage_capacity.items())
    ]
    yield Family(
        balance.STORAGE_CAPACITY_BYTES_PER_SECOND, [(labels, capacity.bytes_per_s) for labels, capacity in known]
    )
    yield Family(balance.STORAGE_CAPACITY_ORIGIN_INFO, [((*labels, capacity.origin), 1) for labels, capacity in known])


def _gpus(state: NodeState) -> Iterator[Family]:
    gpus = [(labels, record.uuid) for labels, record in records(state)]
    scores = {uuid: straggler.score for uuid, straggler in state.stragglers.items()}
    yield family(balance.GPU_STRAGGLER_SCORE, gpus, scores.get)
    yield family(balance.GPU_TENSOR_INTENSITY_RATIO, gpus, state.tensor_intensity.get)
    yield Family(balance.GPU_PEAK_FLOPS_PER_SECOND, [row for gpu in gpus for row in _peaks(*gpu, state.peak_flops)])


def _peaks(labels: Labels, uuid: GpuUuid, peaks: Mapping[GpuUuid, Mapping[str, float]]) -> Iterator[Row]:
    for dtype, value in peaks.get(uuid, {}).items():
        yield (*labels, dtype), value
