# SPDX-License-Identifier: Apache-2.0
"""A healthy node of two H100, entered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nvml_bench import Bench, enter


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with enter(tmp_path) as node:
        yield Bench(node)


@pytest.fixture
def a100(tmp_path: Path) -> Iterator[Bench]:
    with enter(tmp_path, model="a100") as node:
        yield Bench(node)
