# SPDX-License-Identifier: Apache-2.0
"""What lies where on a node, the same in every package."""

import gzip
import os
import shutil
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]
FILES: Final = REPOSITORY / "packaging" / "files"
LIBRARY: Final = "usr/lib/gpufeed"
DOCUMENTS: Final = "usr/share/doc/gpufeed"
CONFIGURATION: Final = "etc/gpufeed/gpufeed.yml"
UNITS: Final = ("gpufeed.service", "gpufeed-probe.service", "gpufeed.socket")
DATA: Final = "usr/share/gpufeed"  # not with the documents: images of containers leave those out
_FOLDERS: Final = {
    "rules": f"{DATA}/rules",
    "grafana/dashboards": f"{DATA}/grafana",
    "systemd/drop-ins": f"{DATA}/drop-ins",
    "docs": f"{DOCUMENTS}/docs",
}


def lay_out(root: Path, tree: Path, bill: str) -> None:
    """Fill `root` with a package's files: `tree` is the library, `bill` its bill of materials."""
    shutil.copytree(tree, root / LIBRARY / "lib")
    _put(root / LIBRARY / "launch.py", (FILES / "launch.py").read_bytes())
    _put(root / LIBRARY / "python", (FILES / "python").read_bytes(), mode=0o755)
    _put(root / "usr/bin/gpufeed", (FILES / "gpufeed").read_bytes(), mode=0o755)
    for unit in UNITS:
        _put(root / "usr/lib/systemd/system" / unit, (REPOSITORY / "systemd" / unit).read_bytes())
    _put(root / CONFIGURATION, (REPOSITORY / "systemd" / "gpufeed.yml").read_bytes())
    for source, target in _FOLDERS.items():
        if (REPOSITORY / source).is_dir():
            shutil.copytree(REPOSITORY / source, root / target)
    for name in ("README.md", "exporter/METRICS.md"):
        _put(root / DOCUMENTS / Path(name).name, (REPOSITORY / name).read_bytes())
    _put(root / DOCUMENTS / "copyright", (REPOSITORY / "LICENSE").read_bytes())
    _put(root / DOCUMENTS / "changelog.gz", gzip.compress((REPOSITORY / "CHANGELOG.md").read_bytes(), 9, mtime=0))
    _put(root / DOCUMENTS / "sbom.cdx.json", bill.encode())


def settle(root: Path, epoch_s: int) -> None:
    """Modes and times that do not depend on who builds and when."""
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_symlink():
            is_program = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (epoch_s, epoch_s), follow_symlinks=False)


def _put(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
