# SPDX-License-Identifier: Apache-2.0
"""What is known to go wrong, row by row: each a test with a name in words, and how long the recovery took."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Starter


class Recovery:
    """Of one row: `lifted` when the cause is gone, `well` when everything is as before."""

    def __init__(self, row: pytest.Item) -> None:
        self._row = row
        self._lifted_s = time.monotonic()

    def lifted(self) -> None:
        """From now on it could be well again."""
        self._lifted_s = time.monotonic()

    def well(self) -> None:
        """It is."""
        self._row.user_properties.append(("recovery_s", f"{time.monotonic() - self._lifted_s:.1f} s"))


@pytest.fixture
def recovery(request: pytest.FixtureRequest) -> Recovery:
    """Notes how long a recovery took, for the table of `make faults`."""
    return Recovery(request.node)


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    """Processes that end with the rows of one file."""
    starting = Starter(Path(tmp_path_factory.mktemp("processes")))
    yield starting
    for process in reversed(starting.running):
        if process.popen.poll() is None:
            process.stop()
