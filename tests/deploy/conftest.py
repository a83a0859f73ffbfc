# SPDX-License-Identifier: Apache-2.0
"""The package, built once, and a Debian it is installed on."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from container import Container, NoContainerError, booted, make_root, why_not
from packaging_run import build


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the .deb and the .rpm for amd64."""
    if why_not():
        pytest.skip(why_not())
    folder = tmp_path_factory.mktemp("packages")
    build(folder, "deb", "rpm")
    return folder


@pytest.fixture(scope="session")
def deb(packages: Path) -> Path:
    """The package as it is."""
    return next(packages.glob("*_amd64.deb"))


@pytest.fixture(scope="session")
def newer_deb(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with another version in its code and in its name."""
    root = tmp_path_factory.mktemp("newer") / "root"
    subprocess.run(["dpkg-deb", "-R", deb, root], check=True)
    for file in (root / "DEBIAN/control", root / "usr/lib/gpufeed/lib/gpufeed/__init__.py"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("0.1.0", "99.0.0"), encoding="utf-8")
    target = root.parent / "gpufeed_99.0.0_amd64.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def node(
    request: pytest.FixtureRequest, deb: Path, newer_deb: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    """A booted Debian with the packages below /var/tmp and a key group, nothing installed."""
    kept = os.environ.get("GPUFEED_CONTAINER_ROOTS")
    with _or_skipped():
        pristine = make_root(request.param, Path(kept) if kept else tmp_path_factory.getbasetemp() / "roots")
    root = tmp_path_factory.mktemp("node") / request.param
    subprocess.run(["cp", "-a", "--reflink=auto", pristine, root], check=True)
    for package in (deb, newer_deb):
        shutil.copy(package, root / "var/tmp")  # not /tmp: the container mounts its own there
    with _or_skipped(), booted(root) as container:
        yield container
    shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _or_skipped() -> Iterator[None]:
    """A machine that can make no container, such as a sandbox without mounts, skips and says what its tools said."""
    try:
        yield
    except NoContainerError as none:
        pytest.skip(str(none))
