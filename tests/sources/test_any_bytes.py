# SPDX-License-Identifier: Apache-2.0
"""Any bytes in any file of a node: values or one counted error, and nothing of anybody else is lost."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import AnySample, Frame
from gpufeed.model.ids import GpuUuid, LaneId
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.units import NS_PER_S

HOST = tuple(source for source in BUILTIN if source.name != "nvml")
GPUS = 2
JOBS = frozenset({"jobs", "owners", "job-usage", "job-files", "schedulers"})
READ = re.compile(
    r"sys/devices/.*/(?:infiniband|net|nvme)/|ethtool/|proc/(?:\d+|self)/(?!task)|proc/[a-z]+$|proc/pressure/|"
    r"sys/fs/cgroup/|var/"
)


class Kept:
    """A node whose files stand still, read anew by every source."""

    def __init__(self, root: Path, config: ProbeConfig) -> None:
        self.root = root
        self._config = config
        self.files = sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and READ.match(str(path.relative_to(root)))
        )

    def read(self) -> tuple[Frame, list[str]]:
        probe = InlineProbe(self._config, HOST, SteppedClock())
        for index in range(GPUS):
            probe.board.gpu_pids[LaneId(f"gpu{index}")] = (GpuUuid(f"GPU-{index}"), (4000 + 10 * index,))
        frame = probe.tick()
        probe.close()
        return frame, [log.text for log in probe.logs()]


@pytest.fixture(scope="module", params=["slurm", "kubernetes"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    root = tmp_path_factory.mktemp("node")
    node = SteppedNode("storage_starved", gpus=GPUS, root=root, clock=SteppedClock())
    node.layout = LAYOUTS[request.param]
    with node as simulated:
        simulated.advance(10 * NS_PER_S)
        yield Kept(root, simulated.config())


def may_lose(path: str) -> Callable[[str], bool]:
    """Lanes that read the file."""
    card = re.search(r"/infiniband/(\w+)/", path)
    if card is not None:
        return lambda lane: lane == f"ib:{card[1]}"
    if "/net/" in path or path.startswith("ethtool/"):
        return lambda lane: lane in {"net", "ethtool"} or lane.startswith("ib:")
    if re.match(r"proc/\d\d|sys/fs/cgroup/|var/", path):
        return lambda lane: lane in JOBS
    return lambda lane: lane not in JOBS and lane not in {"net", "ethtool"} and not lane.startswith("ib:")


def samples_by_lane(frame: Frame) -> dict[str, tuple[AnySample, ...]]:
    found: dict[str, tuple[AnySample, ...]] = {}
    for reading in frame.readings:
        found[reading.lane] = (*found.get(reading.lane, ()), *reading.samples)
    return found


@settings(max_examples=max(80, settings().max_examples // 5))
@given(data=st.data())
def test_any_bytes_in_any_file_lose_nothing_of_anybody_else(kept: Kept, data: st.DataObject) -> None:
    before, _ = kept.read()
    path = data.draw(st.sampled_from(kept.files))
    file = kept.root / path
    original = file.read_bytes()
    at = data.draw(st.integers(0, len(original)))
    garbage = data.draw(st.binary(max_size=60))
    file.write_bytes(data.draw(st.sampled_from([garbage, original[:at] + garbage + original[at:], original[:at]])))
    try:
        after, logs = kept.read()
    finally:
        file.write_bytes(original)
    assert [text for text in logs if "Traceback" in text] == []
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(after), type=Frame) == after
    concerned = may_lose(path)
    had, has = samples_by_lane(before), samples_by_lane(after)
    assert {lane: samples for lane, samples in had.items() if not concerned(lane)} == {
        lane: samples for lane, samples in has.items() if not concerned(lane)
    }
    assert {failure.reason for failure in after.failures} <= {"parse", "broken", "limit"}
