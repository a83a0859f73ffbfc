# SPDX-License-Identifier: Apache-2.0
"""The bench that readers of the host are tried on."""

from pathlib import Path

import pytest

from host_bench import HostBench


@pytest.fixture
def bench(tmp_path: Path) -> HostBench:
    root = tmp_path / "node"
    root.mkdir()
    return HostBench(root)
