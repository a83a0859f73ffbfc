# SPDX-License-Identifier: Apache-2.0
"""One library tree for several Pythons: wheels of each, unpacked into the same folder.

Extension modules carry the version in their names, pure modules are the same in all: they lie side by side. What would
overwrite another file with other content is an error, not a choice.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
MACHINES: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBCS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_FOR_OLDER: Final = ("typing_extensions",)  # asked for by some Pythons only, and pip asks the one it runs on
_NOT_SHIPPED: Final = (".pyx", ".pxd", ".pyi", ".c", ".h")
_STRAY: Final = frozenset({"example.py"})  # of nvidia-ml-py, at the top of everybody's path
_DIFFERS_BY_TAG: Final = frozenset({"RECORD", "WHEEL"})


def download(requirements: tuple[str, ...], constraints: Path, arch: str, into: Path) -> tuple[Path, ...]:
    """Wheels of every Python for one architecture. Raises CalledProcessError."""
    found: set[Path] = set()
    for python in PYTHONS:
        folder = into / f"{arch}-{python}"
        platforms = [f"--platform={glibc}_{MACHINES[arch]}" for glibc in _GLIBCS]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *platforms]
        subprocess.run([*command, "-c", constraints, "-d", folder, *requirements, *_FOR_OLDER], check=True)
        found.update(folder.glob("*.whl"))
    _same_versions(found)
    return tuple(sorted(found, key=lambda path: path.name))


def unpack(wheels: tuple[Path, ...], tree: Path) -> None:
    """Every wheel into `tree`. Raises ValueError where two differ in a file that both have."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in _shipped(archive):
                data, target = archive.read(name), tree / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    target.write_bytes(data)
                elif target.read_bytes() != data and target.name not in _DIFFERS_BY_TAG:
                    raise ValueError(f"{wheel.name}: {name} is another than that of an earlier wheel")


def strip(tree: Path, arch: str) -> bool:
    """Take symbols out of extension modules where the tool for that machine is here; whether it was."""
    tool = shutil.which(f"{MACHINES[arch]}-linux-gnu-strip")
    if tool is None and os.uname().machine == MACHINES[arch]:
        tool = shutil.which("strip")
    modules = sorted(tree.rglob("*.so"))
    if tool is None or not modules:
        return False
    subprocess.run([tool, "--strip-unneeded", *modules], check=True)
    return True


def _shipped(archive: zipfile.ZipFile) -> Iterator[str]:
    for name in sorted(archive.namelist()):
        path = Path(name)
        if path.is_absolute() or ".." in path.parts or ".data" in path.parts[0]:
            raise ValueError(f"{archive.filename}: {name} has no place in a library tree")
        is_test = "tests" in path.parts[:-1]
        if not name.endswith(("/", *_NOT_SHIPPED)) and name not in _STRAY and not is_test:
            yield name


def _same_versions(wheels: set[Path]) -> None:
    versions: dict[str, set[str]] = {}
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        versions.setdefault(name.lower(), set()).add(version)
    differing = {name: found for name, found in versions.items() if len(found) > 1}
    if differing:
        raise ValueError(f"the Pythons would get different versions: {differing}")
