# SPDX-License-Identifier: Apache-2.0
"""Processes that end with their test."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Starter


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    starting = Starter(tmp_path)
    yield starting
    for process in reversed(starting.running):
        if process.popen.poll() is None:
            process.popen.terminate()
    for process in reversed(starting.running):
        try:
            process.popen.wait(10)
        except subprocess.TimeoutExpired:
            process.popen.kill()
            process.popen.wait(5)
