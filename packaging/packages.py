# SPDX-License-Identifier: Apache-2.0
"""`python packaging/packages.py deb rpm pyz wheel [--arch amd64 arm64]`: packages into dist/, and their checksums."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import vendor
from deb import build_deb
from layout import REPOSITORY, lay_out
from rpm import build_rpm
from sbom import sbom


def main() -> int:
    """Build what is asked for; the exit code."""
    parser = argparse.ArgumentParser(description="Build packages of gpufeed into dist/.")
    parser.add_argument("kinds", nargs="+", choices=("deb", "rpm", "pyz", "wheel"))
    parser.add_argument("--arch", nargs="+", choices=tuple(vendor.MACHINES), default=["amd64"])
    parser.add_argument("--into", type=Path, default=REPOSITORY / "dist")
    parser.add_argument("--version", help="another version than the source's own")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpufeed-packages-") as folder:
        made = list(_build(arguments, Path(folder)))
    for path in made:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


def _build(arguments: argparse.Namespace, folder: Path) -> list[Path]:
    epoch_s = _epoch_s()
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch_s)
    wheel = _wheel(folder / "wheel", arguments.version)
    made = []
    if "wheel" in arguments.kinds:
        made.append(Path(shutil.copy(wheel, arguments.into)))
    if "pyz" in arguments.kinds:
        made.append(_pyz(wheel, folder / "site", arguments.into))
    builders = [one for kind, one in (("deb", build_deb), ("rpm", build_rpm)) if kind in arguments.kinds]
    for arch in arguments.arch if builders else ():
        print(f"libraries for {arch}, Python {', '.join(vendor.PYTHONS)} …", flush=True)
        wheels = vendor.download(_requirements(), _constraints(), arch, folder / "wheels")
        tree = folder / arch / "tree"
        vendor.unpack((wheel, *wheels), tree)
        if not vendor.strip(tree, arch):
            print(f"no strip for {arch} here: the package is larger than it has to be")
        for build in builders:
            root = folder / arch / build.__name__ / "root"
            lay_out(root, tree, sbom(tree, wheels, _version(wheel)))
            made.append(build(root, _version(wheel), arch, epoch_s, arguments.into))
    return made


def _wheel(into: Path, version: str | None) -> Path:
    """Our own wheel, from a copy of the source where it is to say another version."""
    source = REPOSITORY
    if version is not None:
        source = into.parent / "source"
        for name in ("exporter", "pyproject.toml", "README.md", "LICENSE"):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
            copy(REPOSITORY / name, target)
        stated = source / "exporter" / "gpufeed" / "__init__.py"
        text = stated.read_text(encoding="utf-8")
        stated.write_text(text.replace(f'"{_stated(text)}"', f'"{version}"'), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "-w", into, source], check=True)
    return next(into.glob("gpufeed-*.whl"))


def _pyz(wheel: Path, site: Path, into: Path) -> Path:
    """One file. Scripts beside the libraries name the Python that built it: they are left out."""
    target = into / "gpufeed.pyz"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*install, "--target", site, "--constraint", _constraints(), wheel], check=True)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for record in site.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("../../bin/") and "/direct_url.json," not in line]
        record.write_text("".join(kept), encoding="utf-8")
        record.with_name("direct_url.json").unlink(missing_ok=True)
    made = [sys.executable, "-m", "shiv", "--reproducible", "--compressed", "-p", "/usr/bin/env python3"]
    made += ["--console-script", "gpufeed", "-o", str(target), "--site-packages", str(site)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    return target


def _stated(text: str) -> str:
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))


def _version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _requirements() -> tuple[str, ...]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tuple(project["dependencies"])


def _constraints() -> Path:
    return REPOSITORY / "tests" / "constraints.txt"


def _epoch_s() -> int:
    """Of the newest commit: the same source gives the same bytes, whoever builds it and when."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 1_764_547_200


if __name__ == "__main__":
    sys.exit(main())
