# SPDX-License-Identifier: Apache-2.0
"""All verdicts as one level and one line."""

from collections.abc import Sequence

import pytest

from gpufeed.config.schema import Check
from gpufeed.health.conclusion import Conclusion, check_names, conclude, matches
from gpufeed.model.frame import FrameTime
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey, LaneId, StorageKey
from gpufeed.model.state import GpuRecord, NodeState, ProbeRecord, Verdict

UUID = GpuUuid("GPU-3")
DEFAULT = Check()


def verdict(subject: object, check: str, level: int, reason: str = "", action: str = "") -> Verdict:
    return Verdict(subject=subject, check=check, level=level, since_ns=0, reason=reason, action=action)  # type: ignore[arg-type] # a test names real ones


def node(*verdicts: Verdict, frames: int = 5) -> NodeState:
    record = GpuRecord(uuid=UUID, index=3, lane=LaneId("gpu3"), identity=None, condition="ok")
    return NodeState(
        time=FrameTime(0, 0, 0),
        gpus={UUID: record},
        verdicts={(one.subject, one.check): one for one in verdicts},
        probe=ProbeRecord(is_up=True, frames=frames),
    )


def told(*verdicts: Verdict, include: Sequence[str] = DEFAULT.include, exclude: Sequence[str] = ()) -> Conclusion:
    return conclude(node(*verdicts), include, exclude)


WELL = verdict(GpuKey(UUID), "xid", 0)
LOST = verdict(GpuKey(UUID), "lost", 2, "GPU 3 fell off the bus", "node_reboot")
SLOW = verdict(IbPortKey("mlx5_0", 1), "errors", 1, "12 errors", "investigate")
SERVER = verdict(StorageKey("nfs", "/data"), "timeouts", 2, "requests timed out")


def test_a_node_with_nothing_wrong_is_ok() -> None:
    assert told(WELL).line == "ok: 1 GPU, 1 checks, nothing wrong"


def test_the_worst_comes_first_with_what_to_do() -> None:
    found = told(SLOW, LOST, WELL)
    assert found.level == "failed"
    assert found.line == (
        "failed: GPU 3 fell off the bus (node reboot) [gpu.lost]; mlx5_0:1: 12 errors (investigate) [ib.errors]"
    )
    assert [one.level for one in found.troubles] == ["failed", "degraded"]


def test_more_than_three_are_counted() -> None:
    many = [verdict(IbPortKey(f"mlx5_{number}", 1), "errors", 1, "errors") for number in range(5)]
    assert told(*many).line.endswith("; and 2 more")


def test_a_slow_server_does_not_take_every_node_away() -> None:
    found = told(WELL, SERVER)
    assert (found.level, found.ignored) == ("ok", 1)
    assert told(WELL, SERVER, include=("*",)).level == "failed"


def test_a_check_can_be_left_out() -> None:
    assert told(WELL, LOST, exclude=("gpu.lost",)).level == "ok"


def test_what_is_wrong_with_gpufeed_fails_no_node() -> None:
    found = told(WELL, verdict("self", "probe", 2, "the probe is down", "investigate"))
    assert (found.level, found.line) == ("degraded", "degraded: the probe is down (investigate) [self.probe]")


def test_nothing_read_is_not_ok() -> None:
    assert conclude(node(WELL, frames=0), ("*",), ()).level == "unknown"
    assert told().level == "unknown"
    assert told(SERVER).line == "unknown: no check that counts could be made"


@pytest.mark.parametrize(
    ("pattern", "is_meant"), [("*", True), ("gpu.*", True), ("gpu.xid", True), ("gpu", False), ("ib.*", False)]
)
def test_patterns(pattern: str, is_meant: bool) -> None:
    assert matches("gpu.xid", (pattern,)) is is_meant


def test_every_default_names_a_check() -> None:
    assert all(any(matches(name, (pattern,)) for name in check_names()) for pattern in DEFAULT.include)


def test_a_gpu_that_is_not_known_is_called_by_its_uuid() -> None:
    strange = verdict(GpuKey(GpuUuid("GPU-x"), 2), "lost", 2, "gone")
    assert told(strange).line == "failed: GPU-x instance 2: gone [gpu.lost]"
