# SPDX-License-Identifier: Apache-2.0
"""`gpufeed capture` of a node, unpacked: it measures what the node measured, and says nothing of whose it is."""

import json
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from captured.trees import unpack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

NODES = ("nfs", "lustre", "disks", "net", "infiniband-mlx5-and-what-comes-with-it", "pressure-with-irq")
OF_THE_MOMENT = (
    "collector_",
    "lane_",
    "probe_",
    "process_",
    "sample_age",
    "scrape_",
    "series",
    "build_info",
    "attribution_",
)


def gpufeed(command: str, root: Path, *more: str, names: tuple[str, str] = ("proc", "sys")) -> str:
    paths = (f"--path.procfs={root / names[0]}", f"--path.sysfs={root / names[1]}", f"--path.rootfs={root}")
    run = [sys.executable, "-m", "gpufeed", command, *paths, *more]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=50).stdout


def values(root: Path, names: tuple[str, str]) -> Counter[tuple[str, float]]:
    """Every value with its name; labels may have been replaced."""
    families = json.loads(gpufeed("once", root, "--format=json", names=names))
    return Counter(
        (family["name"], row["value"])
        for family in families
        if not family["name"].removeprefix("gpufeed_").startswith(OF_THE_MOMENT)
        for row in family["rows"]
    )


@pytest.mark.parametrize("name", NODES)
def test_a_captured_node_measures_the_same(name: str, tmp_path: Path) -> None:
    node = tmp_path / "node"
    for folder in ("proc", "sys"):
        (node / folder).mkdir(parents=True)
    unpack(name, node)
    said = gpufeed("capture", node, str(tmp_path / "out.tar.gz"))
    assert "files" in said
    with tarfile.open(tmp_path / "out.tar.gz") as archive:
        archive.extractall(tmp_path / "kept", filter="tar")
    before = values(node, ("proc", "sys"))
    assert sum(before.values()) > 10
    kept = tmp_path / "kept"
    for folder in ("procfs", "sysfs", "rootfs"):
        (kept / folder).mkdir(exist_ok=True)
    after = values(kept, ("procfs", "sysfs"))
    assert {name for name, _ in before} == {name for name, _ in after}
    assert before == after


def test_the_command_that_an_archive_tells_to_run_works(tmp_path: Path) -> None:
    unpack("disks", tmp_path / "node")
    gpufeed("capture", tmp_path / "node", str(tmp_path / "out.tar.gz"))
    with tarfile.open(tmp_path / "out.tar.gz") as archive:
        archive.extractall(tmp_path / "kept", filter="tar")
    told = (tmp_path / "kept/README.txt").read_text(encoding="utf-8")
    command = next(line.strip() for line in told.splitlines() if line.startswith("  gpufeed once"))
    run = command.replace("gpufeed", f"{sys.executable} -m gpufeed", 1).replace("$PWD", str(tmp_path / "kept"))
    said = subprocess.run(run.split(), check=True, capture_output=True, text=True, timeout=50).stdout
    assert "gpufeed_storage_read_bytes_total" in said


def test_an_archive_is_for_its_owner_and_never_written_over(tmp_path: Path) -> None:
    unpack("disks", tmp_path / "node")
    (tmp_path / "node/sys").mkdir(exist_ok=True)
    out = tmp_path / "out.tar.gz"
    gpufeed("capture", tmp_path / "node", str(out))
    assert out.stat().st_mode & 0o777 == 0o600
    with pytest.raises(subprocess.CalledProcessError) as caught:
        gpufeed("capture", tmp_path / "node", str(out))
    assert caught.value.returncode == 2
    assert "File exists" in caught.value.stderr
