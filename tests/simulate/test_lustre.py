# SPDX-License-Identifier: Apache-2.0
"""A simulated node whose data set lies on Lustre: what is read of it, and where its GPUs' time goes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufeed.clock import read_frame_time
from gpufeed.model.frame import Frame
from gpufeed.model.storage import StorageCounters
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.layout import LAYOUTS
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S

HOST = tuple(source for source in BUILTIN if source.name != "nvml")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SteppedNode]:
    simulated = SteppedNode("storage_starved", gpus=2, root=tmp_path / "node", clock=SteppedClock())
    simulated.layout = LAYOUTS["lustre"]
    with simulated as entered:
        yield entered


def storage(frame: Frame, kind: str) -> dict[str, StorageCounters]:
    return {
        sample.storage.target: sample
        for reading in frame.readings
        for sample in reading.samples
        if isinstance(sample, StorageCounters) and sample.storage.kind == kind
    }


def test_what_jobs_read_is_counted_by_lustre_and_by_no_other(node: SteppedNode, tmp_path: Path) -> None:
    probe = InlineProbe(node.config(), HOST, node.clock)
    node.advance(20 * NS_PER_S)
    frame = probe.tick()
    probe.close()
    lustre = storage(frame, "lustre")["scratch"]
    osc = list((tmp_path / "node/sys/kernel/debug/lustre/osc").glob("*/stats"))
    lines = [line.split() for file in osc for line in file.read_text(encoding="ascii").splitlines()]
    assert lustre.read_bytes == sum(int(words[6]) for words in lines if words[0] == "read_bytes") > 0
    assert lustre.application_read_bytes == pytest.approx(1.1 * lustre.read_bytes, rel=1e-6)
    assert lustre.reads is not None
    assert lustre.read_s is not None
    assert lustre.read_s > 0
    assert {sample.read_bytes for sample in storage(frame, "nfs").values()} == {0}


def test_waiting_for_lustre_is_waiting_for_storage(node: SteppedNode) -> None:
    probe = InlineProbe(node.config(), BUILTIN, node.clock, node.is_blocked)
    fold = initial(Settings(), read_frame_time(node.clock))
    for _ in range(60):
        node.advance(NS_PER_S // 2)
        fold = step(fold, probe.tick())
    probe.close()
    truth_ns = node.truth_ns(0)
    for attribution in fold.state.attributions.values():
        told_ns = {tuple(pair): spent_ns for pair, spent_ns in attribution.state_ns.items()}
        for pair, spent_ns in truth_ns.items():
            assert told_ns[pair] == pytest.approx(spent_ns, abs=4 * NS_PER_S)


def test_gds_beside_it_counts_nothing_and_says_so(node: SteppedNode) -> None:
    probe = InlineProbe(node.config(), HOST, node.clock)
    node.advance(NS_PER_S)
    frame = probe.tick()
    probe.close()
    assert storage(frame, "gds")["node"].read_bytes is None
    assert {status.state for status in frame.inputs if status.input == "gds"} == {"unsupported"}


@pytest.mark.parametrize("path", ["kernel/debug/lustre/llite/scratch-ff4a1c2d3e5f6071/stats"])
def test_statistics_that_fail_mid_way_leave_the_others(node: SteppedNode, path: str) -> None:
    probe = InlineProbe(node.config(), HOST, node.clock)
    node.advance(NS_PER_S)
    assert storage(probe.tick(), "lustre")
    node.pin(f"sys/{path}", None)
    node.advance(NS_PER_S)
    frame = probe.tick()
    assert (storage(frame, "lustre"), len(storage(frame, "nfs"))) == ({}, 2)
    assert {failure.collector for failure in frame.failures} == {"lustre"}
    node.unpin(f"sys/{path}")
    node.advance(10 * NS_PER_S)
    assert storage(probe.tick(), "lustre")
    probe.close()
