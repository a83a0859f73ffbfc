# SPDX-License-Identifier: Apache-2.0
"""A stepped node per test, entered: pynvml shows it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.layout import DEFAULT
from gpufeed.simulate.stepped import SteppedNode


@pytest.fixture
def enter(tmp_path: Path) -> Iterator[Callable[..., SteppedNode]]:
    with ExitStack() as stack:

        def make(scenario: Any = "healthy", model: str = "h100", gpus: int = 2, **options: Any) -> SteppedNode:
            keeps_trees = options.pop("keeps_trees", False)
            layout = options.pop("layout", DEFAULT)
            node = SteppedNode(scenario, model, gpus, root=tmp_path, clock=SteppedClock(), **options)
            node.keeps_trees = keeps_trees
            node.layout = layout
            return stack.enter_context(node)

        yield make
