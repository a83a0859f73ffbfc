# SPDX-License-Identifier: Apache-2.0
"""An RPM of a laid-out root."""

import os
import subprocess
from pathlib import Path

from layout import REPOSITORY, settle
from vendor import MACHINES


def build_rpm(root: Path, version: str, arch: str, epoch_s: int, into: Path) -> Path:
    """The package; the same root gives the same bytes. Raises CalledProcessError."""
    settle(root, epoch_s)
    top = root.parent / "rpm"
    spec = REPOSITORY / "packaging" / "gpufeed.spec"
    defined = {
        "_topdir": str(top),
        "_rpmdir": str(top / "out"),
        "laid_out": str(root),
        "package_version": version,
        "_buildhost": "reproducible",
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "use_source_date_epoch_as_buildtime": "1",
        "clamp_mtime_to_source_date_epoch": "1",
    }
    command = ["rpmbuild", "-bb", "--quiet", f"--target={MACHINES[arch]}-linux"]
    for name, value in defined.items():
        command += ["--define", f"{name} {value}"]
    subprocess.run([*command, spec], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s)})
    built = next((top / "out").glob("*.rpm"))
    return built.rename(into / built.name)
