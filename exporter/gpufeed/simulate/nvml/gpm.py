# SPDX-License-Identifier: Apache-2.0
"""GPM: samples are copies of the integrals, metrics the means between two of them. Hopper and newer."""

import ctypes
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pynvml

from gpufeed.simulate.block import Moment
from gpufeed.simulate.nvml.library import (
    ADDRESS,
    ADDRESS_P,
    ARGUMENT_VERSION_MISMATCH,
    INVALID_ARGUMENT,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    UINT,
    Gpu,
    Status,
    Table,
)

if TYPE_CHECKING:
    from gpufeed.simulate.nvml.face import Face

TABLE: Final = Table()

_SHORTEST_NS: Final = 100_000_000
_MIB: Final = 1024 * 1024
_WAITS: Final = 200
_WAIT_S: Final = 0.005
_PERCENT: Final = 100.0
_FIRST_SAMPLE: Final = 0x7F10_0000_0000

_RATES: Final[dict[int, tuple[str, float]]] = {
    1: ("graphics_s", _PERCENT),
    2: ("sm_s", _PERCENT),
    3: ("occupancy_s", _PERCENT),
    4: ("sm_s", 0.2 * _PERCENT),  # integer work goes with every kernel
    5: ("tensor_s", _PERCENT),
    6: ("tensor_s", 0.0),
    7: ("tensor_s", _PERCENT),  # all tensor work is half precision here
    9: ("tensor_s", 0.0),
    10: ("dram_s", _PERCENT),
    11: ("sm_s", 0.0),
    12: ("sm_s", 0.3 * _PERCENT),
    13: ("sm_s", 0.0),
    20: ("pcie_transmit_bytes", 1 / _MIB),
    21: ("pcie_receive_bytes", 1 / _MIB),
    60: ("nvlink_receive_bytes", 1 / _MIB),
    61: ("nvlink_transmit_bytes", 1 / _MIB),
}
"""Metric id → the integral it is the rate of, and the factor of its unit."""

_CODECS: Final[dict[int, str]] = {
    **dict.fromkeys(range(30, 37), "decoder_percent"),
    **dict.fromkeys(range(40, 47), ""),
    50: "",
}
"""Metric id → the gauge of an engine, all alike; of those without one nothing is ever asked. No board has NVENC."""

_FIRST_LINK_METRIC: Final = 62
_LAST_LINK_METRIC: Final = 97


class Taken(NamedTuple):
    """What a sample is of: a board, or one life of a GPU instance of it. Is it the one that the job runs in."""

    gpu: int
    gi: int | None = None
    life: int = 0
    is_active: bool = True


class Samples:
    """Sample buffers that are allocated, by address: None until filled."""

    def __init__(self) -> None:
        self._addresses = count(_FIRST_SAMPLE, 0x40)
        self._taken: dict[int, tuple[Taken, Moment] | None] = {}
        self.last_ns: dict[Taken, int] = {}  # what it is of → the moment of its last sample

    def allocate(self) -> int:
        """A new buffer."""
        address = next(self._addresses)
        self._taken[address] = None
        return address

    def fill(self, address: int | None, taken: Taken, moment: Moment) -> None:
        """Keep what a GPU's integrals are now. Raises Status."""
        if address not in self._taken:
            raise Status(INVALID_ARGUMENT)
        self._taken[address or 0] = (taken, moment)

    def get(self, address: int | None) -> tuple[Taken, Moment]:
        """GPU and moment of a filled buffer. Raises Status."""
        sample = self._taken.get(address or 0)
        if sample is None:
            raise Status(INVALID_ARGUMENT)
        return sample

    def free(self, address: int | None) -> None:
        """Forget a buffer. Raises Status."""
        if self._taken.pop(address or 0, ()) == ():
            raise Status(INVALID_ARGUMENT)


@TABLE.device("nvmlGpmQueryDeviceSupport", ctypes.POINTER(pynvml.c_nvmlGpmSupport_t))
def _support(gpu: Gpu, out: Any) -> None:
    if out.contents.version != pynvml.NVML_GPM_SUPPORT_VERSION:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    out.contents.isSupportedDevice = int(gpu.board.model.has_gpm)


@TABLE.library("nvmlGpmSampleAlloc", ADDRESS_P)
def _allocate(face: "Face", out: Any) -> None:
    out[0] = face.gpm.allocate()


@TABLE.library("nvmlGpmSampleFree", ADDRESS)
def _free(face: "Face", sample: int | None) -> None:
    face.gpm.free(sample)


@TABLE.device("nvmlGpmSampleGet", ADDRESS)
def _sample(gpu: Gpu, sample: int | None) -> None:
    _fill(gpu, sample, Taken(gpu.index))


@TABLE.device("nvmlGpmMigSampleGet", UINT, ADDRESS)
def _mig_sample(gpu: Gpu, gi: int, sample: int | None) -> None:
    if not any(part.gi == gi for part in gpu.parts):
        raise Status(NOT_FOUND)
    _fill(gpu, sample, Taken(gpu.index, gi, gpu.moment.whole("mig_changes"), gi == gpu.parts[0].gi))


def _fill(gpu: Gpu, sample: int | None, taken: Taken) -> None:
    if not gpu.board.model.has_gpm:
        raise Status(NOT_SUPPORTED)
    moment, waits = gpu.moment, _WAITS if gpu.moment.header.period_ns else 0
    # in real time the truth may be late on a busy machine; a driver's samples are never of the same instant
    while waits and moment.header.now_ns == gpu.face.gpm.last_ns.get(taken):
        time.sleep(_WAIT_S)
        moment, waits = gpu.face.moment(gpu.index), waits - 1
    gpu.face.gpm.last_ns[taken] = moment.header.now_ns
    gpu.face.gpm.fill(sample, taken, moment)


@TABLE.library("nvmlGpmMetricsGet", ctypes.POINTER(pynvml.c_nvmlGpmMetricsGet_t))
def _metrics(face: "Face", out: Any) -> None:
    request = out.contents
    if request.version != pynvml.NVML_GPM_METRICS_GET_VERSION:
        raise Status(ARGUMENT_VERSION_MISMATCH)
    was, older = face.gpm.get(ctypes.cast(request.sample1, ctypes.c_void_p).value)
    taken, newer = face.gpm.get(ctypes.cast(request.sample2, ctypes.c_void_p).value)
    newer_gpu = taken.gpu
    face.suffer("nvmlGpmMetricsGet", newer_gpu)
    between_ns = newer.header.now_ns - older.header.now_ns
    # in real time the truth moves in steps, and either sample may be one step older than the caller's clock
    if was != taken or between_ns <= 0 or between_ns + 2 * newer.header.period_ns < _SHORTEST_NS:
        raise Status(INVALID_ARGUMENT)
    links = face.boards[newer_gpu].model.nvlink_links
    seconds = between_ns / 1e9
    for at in range(request.numMetrics):
        metric = request.metrics[at]
        rate = _rate_of(metric.metricId, links)
        try:
            face.suffer("nvmlGpmMetricsGet", newer_gpu, metric.metricId)
        except Status as status:
            metric.nvmlReturn = status.code
            continue
        metric.nvmlReturn = NOT_SUPPORTED if rate is None else SUCCESS
        true = 0.0 if rate is None or not taken.is_active else rate(older, newer, seconds)
        metric.value = face.tell("nvmlGpmMetricsGet", newer_gpu, metric.metricId, true, metric.value)


_Rate = Callable[[Moment, Moment, float], float]


def _rate_of(metric: int, links: int) -> _Rate | None:
    if metric in _CODECS:
        return lambda _older, newer, _seconds: newer.value(_CODECS[metric]) if _CODECS[metric] else 0.0
    name, factor = _RATES.get(metric, ("", 0.0))
    if _FIRST_LINK_METRIC <= metric <= _LAST_LINK_METRIC and (metric - _FIRST_LINK_METRIC) // 2 < links:
        direction = "transmit" if (metric - _FIRST_LINK_METRIC) % 2 else "receive"
        name, factor = f"nvlink_{direction}_bytes", 1 / (_MIB * links)
    if not name:
        return None
    return lambda older, newer, seconds: (newer.value(name) - older.value(name)) / seconds * factor
