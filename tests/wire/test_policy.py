# SPDX-License-Identifier: Apache-2.0
"""Which lanes forbid a SIGKILL."""

import pytest

from gpufeed.model.frame import LaneStatus
from gpufeed.model.ids import CollectorName, LaneId
from gpufeed.wire.policy import has_driver_call


def lane(busy_since_ns: int | None, collector: CollectorName, call: str) -> LaneStatus:
    return LaneStatus(
        lane=LaneId("x"),
        collector=collector,
        busy_since_ns=busy_since_ns,
        late_after_ns=1,
        stuck_after_ns=2,
        call=call,
    )


@pytest.mark.parametrize(
    ("status", "forbidden"),
    [
        pytest.param(lane(5, "nvml", "nvmlDeviceGetPowerUsage"), True, id="inside a driver call"),
        pytest.param(lane(None, "nvml", "nvmlDeviceGetPowerUsage"), False, id="the call came back"),
        pytest.param(lane(5, "nvml", ""), True, id="a GPU lane that does not say where"),
        pytest.param(lane(5, "infiniband", "/sys/class/infiniband/mlx5_0/ports/1/rate"), False, id="a file"),
        pytest.param(lane(5, "nvml", "/sys/bus/pci/devices/0000:18:00.0/numa_node"), False, id="a GPU lane's file"),
        pytest.param(lane(5, "nvml", "a call of process 77, thread 79"), False, id="another process's call"),
    ],
)
def test_only_a_driver_call_forbids_the_kill(status: LaneStatus, forbidden: bool) -> None:
    assert has_driver_call([lane(None, "host", ""), status]) is forbidden
