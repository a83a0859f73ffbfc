# SPDX-License-Identifier: Apache-2.0
"""What is in the packages, without installing them: one tree for four Pythons, the same bytes twice, nothing stray."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from packaging_run import build

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

MACHINE = {"amd64": 62, "arm64": 183}  # EM_X86_64, EM_AARCH64 of elf(5)
PYTHONS = ("311", "312", "313", "314")
Opened = tuple[str, Path]  # architecture, and the root of its .deb


@pytest.fixture(scope="session", params=tuple(MACHINE))
def opened(
    request: pytest.FixtureRequest, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """Architecture, and the root of its .deb."""
    folder = packages
    if request.param == "arm64":
        folder = tmp_path_factory.mktemp("arm64")
        build(folder, "deb", "--arch", "arm64")
    root = tmp_path_factory.mktemp("opened") / request.param
    subprocess.run(["dpkg-deb", "-x", next(folder.glob(f"*_{request.param}.deb")), root], check=True)
    return request.param, root


def test_every_extension_is_there_for_every_python_and_for_that_machine(opened: Opened) -> None:
    arch, root = opened
    versions: dict[str, set[str]] = {}
    for module in (root / "usr/lib/gpufeed/lib").rglob("*.so"):
        header = module.read_bytes()[:20]
        assert (header[:4], int.from_bytes(header[18:20], "little")) == (b"\x7fELF", MACHINE[arch]), module
        found = re.search(r"\.cpython-(\d+)-", module.name)
        versions.setdefault(str(module.parent / module.name.partition(".")[0]), set()).add(
            found[1] if found else "abi3"
        )
    assert len(versions) > 10
    assert {name: tags for name, tags in versions.items() if tags not in (set(PYTHONS), {"abi3"})} == {}


def test_nothing_lies_where_it_does_not_belong(opened: Opened) -> None:
    _, root = opened
    tops = {str(path.relative_to(root)) for path in root.glob("*/*")}
    assert tops == {"etc/gpufeed", "usr/bin", "usr/lib", "usr/share"}
    assert {path.name for path in (root / "usr/lib").iterdir()} == {"gpufeed", "systemd"}
    strays = [path.name for path in (root / "usr/lib/gpufeed/lib").iterdir() if path.name in {"example.py", "tests"}]
    assert strays == []
    assert not list(root.rglob("__pycache__"))


def test_the_bill_of_materials_names_what_is_in_the_tree(opened: Opened) -> None:
    _, root = opened
    bill = json.loads((root / "usr/share/doc/gpufeed/sbom.cdx.json").read_text(encoding="utf-8"))
    listed = {(one["name"].lower().replace("-", "_"), one["version"]) for one in bill["components"]}
    there = {
        tuple(path.name.removesuffix(".dist-info").lower().split("-"))
        for path in (root / "usr/lib/gpufeed/lib").glob("*.dist-info")
    }
    assert listed == {one for one in there if one[0] != "gpufeed"}
    assert {name for name, _ in listed} >= {"aiohttp", "msgspec", "nvidia_ml_py", "psutil", "pyyaml", "bcrypt"}


def test_building_twice_gives_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    build(tmp_path, "deb", "rpm")
    for first in packages.iterdir():
        assert (tmp_path / first.name).read_bytes() == first.read_bytes(), first.name


def test_the_rpm_holds_what_the_deb_holds(packages: Path, opened: Opened) -> None:
    arch, root = opened
    if arch != "amd64":
        pytest.skip("the .rpm of this run is for amd64")
    command = ["rpm", "-qpl", str(next(packages.glob("*.rpm")))]
    listed = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n"))
    files = {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_file() and " " not in path.name}
    assert files - listed == set()
