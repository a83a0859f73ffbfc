# SPDX-License-Identifier: Apache-2.0
"""GPM means are exact, and refused where a driver refuses them."""

from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from gpufeed.simulate.stepped import SteppedNode

MS = 1_000_000
Enter = Callable[..., SteppedNode]


def device(index: int = 0) -> Any:
    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def metrics(older: Any, newer: Any, *wanted: int) -> dict[int, float | None]:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.sample1, request.sample2, request.numMetrics = older, newer, len(wanted)
    for at, metric in enumerate(wanted):
        request.metrics[at].metricId = metric
    pynvml.nvmlGpmMetricsGet(request)
    found = request.metrics[: len(wanted)]
    return {metric.metricId: None if metric.nvmlReturn else metric.value for metric in found}


def sample(handle: Any) -> Any:
    return pynvml.nvmlGpmSampleGet(handle, pynvml.nvmlGpmSampleAlloc())


def test_a_mixed_window_gives_the_exact_mean(enter: Enter) -> None:
    node = enter("storage_starved", gpus=1)
    handle = device()
    older = sample(handle)
    node.advance(400 * MS)  # 300 ms computing, 100 ms waiting
    found = metrics(older, sample(handle), 1, 2, 3, 5, 7, 9, 10, 20, 21, 60, 61, 62, 97)
    share = 0.75
    link_mib = share * 0.10 * 26562e6 / 1024**2
    assert found == pytest.approx(
        {
            1: 100 * share,
            2: 92 * share,
            3: 45 * share,
            5: 55 * share,
            7: 55 * share,
            9: 0.0,
            10: 45 * share,
            20: share * 0.01 * 63e9 / 1024**2,
            21: share * 0.02 * 63e9 / 1024**2,
            60: 18 * link_mib,
            61: 18 * link_mib,
            62: link_mib,
            97: link_mib,
        }
    )


def test_a_pure_window_gives_the_level(enter: Enter) -> None:
    node = enter("straggler_peer", gpus=2)
    handle = device(1)
    node.advance(450 * MS)
    older = sample(handle)
    node.advance(500 * MS)
    assert metrics(older, sample(handle), 1, 2, 5, 10, 61) == pytest.approx({1: 100, 2: 15, 5: 0, 10: 0.5, 61: 0})


def test_an_unknown_metric_fails_alone(enter: Enter) -> None:
    node = enter(gpus=1)
    handle = device()
    older = sample(handle)
    node.advance(110 * MS)
    assert metrics(older, sample(handle), 477, 1) == {477: None, 1: pytest.approx(100.0)}


@pytest.mark.parametrize("apart_ns", [0, 99_999_999])
def test_samples_too_close_are_refused(enter: Enter, apart_ns: int) -> None:
    node = enter(gpus=1)
    handle = device()
    older = sample(handle)
    node.advance(apart_ns)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        metrics(older, sample(handle), 1)


def test_samples_of_two_gpus_or_none_are_refused(enter: Enter) -> None:
    node = enter(gpus=2)
    older = sample(device(0))
    node.advance(200 * MS)
    for newer in (sample(device(1)), pynvml.nvmlGpmSampleAlloc(), None):
        with pytest.raises(pynvml.NVMLError_InvalidArgument):
            metrics(older, newer, 1)


def test_a_freed_sample_is_gone(enter: Enter) -> None:
    enter(gpus=1)
    freed = sample(device())
    pynvml.nvmlGpmSampleFree(freed)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlGpmSampleFree(freed)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlGpmSampleGet(device(), freed)


def test_versions_are_checked(enter: Enter) -> None:
    enter(gpus=1)
    request = pynvml.c_nvmlGpmMetricsGet_t()
    device()
    with pytest.raises(pynvml.NVMLError_ArgumentVersionMismatch):
        pynvml.nvmlGpmMetricsGet(request)


def test_an_a100_has_no_gpm_and_says_so(enter: Enter) -> None:
    enter(model="a100", gpus=1)
    handle = device()
    assert pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 0
    with pytest.raises(pynvml.NVMLError_NotSupported):
        sample(handle)


def test_an_h100_has(enter: Enter) -> None:
    enter(gpus=1)
    assert pynvml.nvmlGpmQueryDeviceSupport(device()).isSupportedDevice == 1
