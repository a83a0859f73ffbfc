# SPDX-License-Identifier: Apache-2.0
"""GPM of one GPU: what its engines did between two samples. Hopper and newer; needs no lock of the profilers.

Two samples live as long as the reader and change places. A pair must be more than 100 ms apart (nvml.h, at
nvmlGpmMetricsGet); one that is too wide is not measured but begun anew, because the first sample may be of another
life of the GPU.
"""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from gpufeed.clock import Clock
from gpufeed.errors import Unsupported
from gpufeed.model.gpu import GpmInterval
from gpufeed.model.ids import GpuKey
from gpufeed.sources.nvml import quantities
from gpufeed.sources.nvml.binding import gpm_request
from gpufeed.sources.nvml.device import Device
from gpufeed.sources.nvml.faults import SUCCESS, error_of, is_about_the_device, is_refusal
from gpufeed.units import NS_PER_MS, NS_PER_S

MIN_INTERVAL_NS: Final = 110 * NS_PER_MS
MAX_INTERVAL_NS: Final = 10 * NS_PER_S

Convert = Callable[[float], float | None]

_METRICS: Final[Mapping[int, tuple[str, Convert]]] = MappingProxyType(
    {
        1: ("graphics_ratio", quantities.ratio_of_percent),
        2: ("sm_ratio", quantities.ratio_of_percent),
        3: ("occupancy_ratio", quantities.ratio_of_percent),
        5: ("tensor_ratio", quantities.ratio_of_percent),
        10: ("dram_ratio", quantities.ratio_of_percent),
        20: ("pcie_transmit_bytes_per_s", quantities.bytes_per_s_of_mib),
        21: ("pcie_receive_bytes_per_s", quantities.bytes_per_s_of_mib),
        60: ("nvlink_receive_bytes_per_s", quantities.bytes_per_s_of_mib),  # receive stands first here
        61: ("nvlink_transmit_bytes_per_s", quantities.bytes_per_s_of_mib),
    }
)
"""nvmlGpmMetricId_t by field of GpmInterval."""

_PIPES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        "int": (4,), "dfma": (6,), "hmma": (7,), "imma": (9,), "fp64": (11,), "fp32": (12,), "fp16": (13,),
        "nvdec": tuple(range(30, 38)),
        "nvjpg": tuple(range(40, 48)),
        "nvofa": (50, 51),
        "nvenc": tuple(range(166, 170)),  # since 575
    }
)  # fmt: skip
"""Pipes by nvmlGpmMetricId_t; of a codec there are several engines, and its ratio is their mean."""

_OF_THE_BOARD: Final = frozenset({20, 21, 60, 61})
"""What its instances share: the ways to the host and to other boards."""

# nvmlGpmMetric_t: metricId, nvmlReturn, value, and three pointers to names
_ANSWER: Final = struct.Struct("<IId24x")
_METRICS_AT: Final = 24
"""Offset in nvmlGpmMetricsGet_t: behind version, number of metrics and two samples."""


class _Sampled(NamedTuple):
    sample: Any  # nvmlGpmSample_t
    at_ns: int


class GpmReadings:
    """The pair of samples of one GPU, or of one GPU instance of it."""

    def __init__(self, device: Device, clock: Clock, gpu_instance: int | None = None) -> None:
        self._device = device
        self._gpu_instance = gpu_instance
        self._clock = clock
        self._spare: list[Any] = [device.nvml.call("nvmlGpmSampleAlloc") for _ in range(2)]
        self._older: _Sampled | None = None
        self._request = gpm_request()
        every = (*_METRICS, *(metric_id for ids in _PIPES.values() for metric_id in ids))
        self._ask_for(every if gpu_instance is None else tuple(one for one in every if one not in _OF_THE_BOARD))

    def read(self, gpu: GpuKey) -> GpmInterval | None:
        """Means since the last read; None for the first, for one too early, and after too long. Raises SourceError."""
        if not self._wanted:
            raise Unsupported("nvmlGpmMetricsGet: this driver knows none of the metrics")
        older = self._older
        now_ns = self._clock.monotonic_ns()
        if older is not None and now_ns - older.at_ns < MIN_INTERVAL_NS:
            return None  # no catching up: the next read measures the longer interval
        newer = self._sample()
        if older is None or newer.at_ns - older.at_ns > MAX_INTERVAL_NS:
            self._keep(newer)
            return None
        try:
            values = self._measure(older, newer)
        finally:
            self._keep(newer)
        return _interval(gpu, older.at_ns, newer.at_ns, values)

    def close(self) -> None:
        """Free the samples. Raises SourceError."""
        samples = [*self._spare, *(() if self._older is None else (self._older.sample,))]
        self._spare, self._older = [], None
        for sample in samples:
            self._device.nvml.call("nvmlGpmSampleFree", sample)

    def _sample(self) -> _Sampled:
        sample = self._spare[-1]
        began_ns = self._clock.monotonic_ns()
        nvml, handle = self._device.nvml, self._device.handle
        if self._gpu_instance is None:
            nvml.call("nvmlGpmSampleGet", handle, sample)
        else:
            nvml.call("nvmlGpmMigSampleGet", handle, self._gpu_instance, sample)
        return _Sampled(sample, (began_ns + self._clock.monotonic_ns()) // 2)

    def _keep(self, newer: _Sampled) -> None:
        self._spare.remove(newer.sample)
        if self._older is not None:
            self._spare.append(self._older.sample)
        self._older = newer

    def _measure(self, older: _Sampled, newer: _Sampled) -> dict[int, float]:
        request = self._request
        request.sample1, request.sample2 = older.sample, newer.sample
        self._device.nvml.call("nvmlGpmMetricsGet", request)
        values: dict[int, float] = {}
        refused: set[int] = set()
        answered = memoryview(request).cast("B")[_METRICS_AT : _METRICS_AT + len(self._wanted) * _ANSWER.size]
        for metric_id, code, value in _ANSWER.iter_unpack(answered):
            if code == SUCCESS:
                values[metric_id] = value
            elif is_about_the_device(code):
                raise error_of(code, "nvmlGpmMetricsGet", f"metric {metric_id}")
            elif is_refusal(code):
                refused.add(metric_id)
        if refused:
            self._ask_for(tuple(wanted for wanted in self._wanted if wanted not in refused))
        return values

    def _ask_for(self, metric_ids: tuple[int, ...]) -> None:
        self._wanted = metric_ids
        self._request.numMetrics = len(metric_ids)
        for metric, metric_id in zip(self._request.metrics, metric_ids, strict=False):
            metric.metricId = metric_id


def _interval(gpu: GpuKey, began_ns: int, ended_ns: int, values: dict[int, float]) -> GpmInterval:
    readings = {
        name: convert(values[metric_id]) for metric_id, (name, convert) in _METRICS.items() if metric_id in values
    }
    pipes = {name: ratio for name, ids in _PIPES.items() if (ratio := _mean_ratio(values, ids)) is not None}
    return GpmInterval(gpu=gpu, began_ns=began_ns, ended_ns=ended_ns, pipes=pipes or None, **readings)


def _mean_ratio(values: dict[int, float], metric_ids: tuple[int, ...]) -> float | None:
    """Over those that answered; None if none did."""
    ratios = [quantities.ratio_of_percent(values[metric_id]) for metric_id in metric_ids if metric_id in values]
    known = [ratio for ratio in ratios if ratio is not None]
    return sum(known) / len(known) if known else None
