# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the captured nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from captured.written import Written


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Written]:
    written = Written(tmp_path)
    yield written
    written.close()
