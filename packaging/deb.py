# SPDX-License-Identifier: Apache-2.0
"""A Debian package of a laid-out root."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from layout import REPOSITORY, settle

_SCRIPTS: Final = ("postinst", "prerm", "postrm")


def build_deb(root: Path, version: str, arch: str, epoch_s: int, into: Path) -> Path:
    """The package; the same root gives the same bytes. Raises CalledProcessError."""
    source, control = REPOSITORY / "packaging" / "debian", root / "DEBIAN"
    control.mkdir()
    size_kib = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    text = (source / "control").read_text(encoding="utf-8")
    (control / "control").write_text(text.format(version=version, arch=arch, size_kib=size_kib), encoding="utf-8")
    shutil.copy(source / "conffiles", control)
    for script in _SCRIPTS:
        shutil.copy(source / script, control)
        (control / script).chmod(0o755)
    settle(root, epoch_s)
    target = into / f"gpufeed_{version}_{arch}.deb"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s)}
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(target)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return target
