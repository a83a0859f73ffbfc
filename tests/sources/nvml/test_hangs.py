# SPDX-License-Identifier: Apache-2.0
"""Every call into the driver may never come back: the others stay fresh, the sick one is named, and it heals."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.gpu import GpuFast
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.nvml.source import NVML
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S

S: Final = NS_PER_S
SICK, WELL = 1, 0
STUCK_S: Final = 45
"""Of the condition NvmlHang."""

OFTEN: Final = (
    "nvmlDeviceGetBAR1MemoryInfo",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetTemperatureV",
    "nvmlEventSetWait_v2",
    "nvmlGpmMetricsGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmSampleGet",
)
"""Called again and again: these hang on a GPU that was well."""

AT_THE_START: Final = (
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBoardPartNumber",
    "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetCurrPcieLinkGeneration",
    "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetInforomImageVersion",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetMemoryErrorCounter",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetModuleId",
    "nvmlDeviceGetName",
    "nvmlDeviceGetNumGpuCores",
    "nvmlDeviceGetNvLinkRemoteDeviceType",
    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetPersistenceMode",
    "nvmlDeviceGetRowRemapperHistogram",
    "nvmlDeviceGetSerial",
    "nvmlDeviceGetSramEccErrorStatus",
    "nvmlDeviceGetSupportedEventTypes",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetVbiosVersion",
    "nvmlDeviceGetVirtualizationMode",
    "nvmlDeviceRegisterEvents",
    "nvmlGpmQueryDeviceSupport",
)
"""Called while a GPU is found, or rarely: these hang before anything is known of it."""

OF_ALL_GPUS: Final = (
    "nvmlEventSetCreate",
    "nvmlGpmSampleAlloc",
)
OF_THE_DRIVER: Final = (
    "nvmlDeviceGetCount_v2",
    "nvmlInitWithFlags",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
)


class Drive:
    """Two GPUs, their probe and the fold."""

    def __init__(self, root: Path, scenario: str = "mig") -> None:
        self.clock = SteppedClock()
        self.node = SteppedNode(scenario, "h100", 2, root=root, clock=self.clock)
        self.node.keeps_trees = False
        self.node.__enter__()
        self.probe = InlineProbe(self.node.config(), (NVML,), self.clock, self.node.is_blocked)
        self.fold = initial(Settings(), read_frame_time(self.clock))

    def run(self, seconds: int, tick_s: int = 1) -> NodeState:
        for _ in range(seconds // tick_s):
            self.fold = step(self.fold, self.probe.tick())
            self.node.advance(tick_s * S)
        return self.fold.state

    def uuid(self, index: int) -> GpuUuid:
        return GpuUuid(self.node.face.boards[index].uuid)


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Drive]:
    made = Drive(tmp_path)
    yield made
    made.node.set_faults()
    made.probe.close()
    made.node.__exit__(None, None, None)


def called(root: Path) -> frozenset[str]:
    found: set[str] = set()
    for scenario in ("healthy", "mig"):
        (root / scenario).mkdir()
        made = Drive(root / scenario, scenario)
        made.run(65)
        found |= made.node.face.calls.keys()
        made.probe.close()
        made.node.__exit__(None, None, None)
    return frozenset(found)


def stuck_s(state: NodeState, lane: str) -> float:
    rows = next(
        family.rows
        for family in families(state, ServerFacts())
        if family.definition.name == "gpufeed_lane_stuck_seconds"
    )
    return next(float(value) for labels, value in rows if labels[0] == lane)


def is_fresh(state: NodeState, uuid: GpuUuid) -> bool:
    return any(isinstance(key, GpuKey) and key == GpuKey(uuid) for key in state.latest(GpuFast))


def test_no_function_that_is_called_is_forgotten_here(tmp_path: Path) -> None:
    assert called(tmp_path) == {*OFTEN, *AT_THE_START, *OF_ALL_GPUS, *OF_THE_DRIVER}


@pytest.mark.parametrize("function", [*OFTEN, *AT_THE_START])
def test_a_call_that_never_comes_back_is_the_sick_gpus_alone_and_over_when_it_comes(
    function: str, drive: Drive
) -> None:
    if function in OFTEN:
        drive.run(4)
    drive.node.set_faults(Fault(effect="hang", function=function, gpu=SICK))
    drive.run(12)
    state = drive.run(STUCK_S + 5, tick_s=5)

    assert stuck_s(state, f"gpu{SICK}") > STUCK_S
    assert stuck_s(state, f"gpu{WELL}") == 0
    assert is_fresh(state, drive.uuid(WELL))
    assert not is_fresh(state, drive.uuid(SICK))
    (status,) = [status for status in state.lanes.values() if status.lane == f"gpu{SICK}"]
    assert status.call
    if drive.uuid(SICK) in state.gpus:
        assert state.gpus[drive.uuid(SICK)].condition == "hung"
        assert state.attributions[GpuKey(drive.uuid(SICK))].current == ("fault", "hung")
    assert state.attributions[GpuKey(drive.uuid(WELL))].current.state != "fault"

    drive.node.set_faults()
    state = drive.run(14)
    assert stuck_s(state, f"gpu{SICK}") == 0
    assert is_fresh(state, drive.uuid(SICK))
    assert state.gpus[drive.uuid(SICK)].condition == "ok"
    assert state.attributions[GpuKey(drive.uuid(SICK))].current.state != "fault"


@pytest.mark.parametrize("function", OF_ALL_GPUS)
def test_a_call_without_a_gpu_that_hangs_is_named_on_every_lane_that_made_it(function: str, drive: Drive) -> None:
    drive.node.set_faults(Fault(effect="hang", function=function))
    drive.run(12)
    state = drive.run(STUCK_S + 5, tick_s=5)
    assert stuck_s(state, "gpu0") > STUCK_S
    assert stuck_s(state, "gpu1") > STUCK_S
    assert stuck_s(state, "nvml-init") == 0

    drive.node.set_faults()
    state = drive.run(14)
    assert [stuck_s(state, lane) for lane in ("gpu0", "gpu1")] == [0, 0]
    assert is_fresh(state, drive.uuid(0))
    assert is_fresh(state, drive.uuid(1))


@pytest.mark.parametrize("function", OF_THE_DRIVER)
def test_a_call_about_the_driver_that_hangs_is_the_init_lanes_alone(function: str, drive: Drive) -> None:
    if function != "nvmlInitWithFlags":
        drive.run(4)
    drive.node.set_faults(Fault(effect="hang", function=function))
    drive.run(12)
    state = drive.run(STUCK_S + 70, tick_s=5)
    assert stuck_s(state, "nvml-init") > STUCK_S
    if function != "nvmlInitWithFlags":
        assert is_fresh(state, drive.uuid(WELL))
        assert is_fresh(state, drive.uuid(SICK))

    drive.node.set_faults()
    state = drive.run(14)
    assert stuck_s(state, "nvml-init") == 0
    if function != "nvmlInitWithFlags":  # an inline probe drops the lanes found by a read that it tries again
        assert is_fresh(state, drive.uuid(WELL))
