# SPDX-License-Identifier: Apache-2.0
"""Network storage of real nodes, where captures of it are at hand: GPUFEED_CAPTURES names their directory.

Expected values are taken from the files here, by other means than the parsers'.
"""

import os
import re
from pathlib import Path

import pytest

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.storage import StorageCounters
from gpufeed.parse.mmpmon import parse_mmpmon
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.builtin import BUILTIN

STORAGE = tuple(source for source in BUILTIN if source.name in {"lustre", "ceph", "gds", "fuse", "weka", "beegfs"})
FOLDER = os.environ.get("GPUFEED_CAPTURES")


def captured(pattern: str) -> list[Path]:
    return sorted(Path(FOLDER).glob(pattern)) if FOLDER else []


pytestmark = pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")


def read_all(root: Path, runtime: Path) -> list[StorageCounters]:
    config = ProbeConfig(procfs=str(root / "proc"), sysfs=str(root / "sys"), rootfs=str(root), runtime_dir=str(runtime))
    probe = InlineProbe(config, STORAGE, SteppedClock())
    frame = probe.tick()
    probe.close()
    assert not [log.text for log in probe.logs() if "Traceback" in log.text]
    assert not frame.failures
    return [sample for one in frame.readings for sample in one.samples if isinstance(sample, StorageCounters)]


def third(text: str, name: str) -> int:
    """The third number behind the unit, or zero where the counter has no line."""
    found = re.search(rf"^{name} .*\] \d+ \d+ (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("stats", captured("lustre/**/llite/*/stats"), ids=lambda path: path.parent.name)
def test_a_captured_lustre_client_says_what_its_file_says(stats: Path, tmp_path: Path) -> None:
    root = Path(FOLDER or "") / Path(*stats.relative_to(FOLDER or "").parts[:2])
    (sample,) = read_all(root, tmp_path)
    text = stats.read_text(encoding="ascii")
    assert sample.storage.target == stats.parent.name.rpartition("-")[0]
    assert sample.application_read_bytes == third(text, "read_bytes")
    for name, value in (("read", sample.read_bytes), ("write", sample.write_bytes)):
        assert value == (third(text, f"osc_{name}") if "osc_" in text else third(text, f"{name}_bytes"))
    assert (sample.operations or {})["open"] == int(re.search(r"^open +(\d+)", text, re.MULTILINE)[1])  # type: ignore[index] # all have one


@pytest.mark.parametrize("metrics", captured("ceph/**/metrics"), ids=lambda path: path.parent.name)
def test_a_captured_ceph_client_says_what_its_file_says(metrics: Path, tmp_path: Path) -> None:
    root = metrics.parents[5]
    (sample,) = read_all(root, tmp_path)
    sizes = metrics.read_text(encoding="ascii").partition("avg_sz")[2]
    written = next(line.split() for line in sizes.splitlines() if line.startswith("write"))
    assert (sample.writes, sample.write_bytes) == (int(written[1]), int(written[5]))


@pytest.mark.parametrize("stats", captured("nvidia-fs/**/stats"), ids=lambda path: path.parents[3].name)
def test_a_captured_gds_driver_without_statistics_has_no_bytes(stats: Path, tmp_path: Path) -> None:
    (sample,) = read_all(stats.parents[3], tmp_path)
    is_counting = "readMiB" in stats.read_text(encoding="ascii")
    assert (sample.read_bytes is not None) == is_counting
    assert sample.errors is not None


@pytest.mark.parametrize("answer", captured("mmpmon/**/*.txt"), ids=lambda path: path.parent.name)
def test_a_captured_answer_of_mmpmon_is_read(answer: Path) -> None:
    text = answer.read_text(encoding="ascii")
    parsed = parse_mmpmon(text.encode())
    assert [row.read_bytes for row in parsed.rows] == list(map(int, re.findall(r"_br_ (\d+)", text)))
    assert [row.name for row in parsed.rows] == re.findall(r"_fs_ (\S+)", text)
    assert not parsed.rejects
