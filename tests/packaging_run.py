# SPDX-License-Identifier: Apache-2.0
"""Building packages as `make deb rpm` does."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def build(into: Path, *arguments: str) -> None:
    """What `make deb rpm` runs."""
    command = [sys.executable, str(REPOSITORY / "packaging" / "packages.py"), *arguments, "--into", str(into)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
