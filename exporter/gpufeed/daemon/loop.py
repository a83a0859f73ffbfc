# SPDX-License-Identifier: Apache-2.0
"""The server's event loop: asyncio's own, without a pool of threads behind it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor  # noqa: TID251 to forbid it everywhere else
from typing import Any


class _NoExecutor(ThreadPoolExecutor):
    """Takes no work: whatever blocks for ever in a pool holds the end of the process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401, ARG002
        """Refuse. Raises RuntimeError."""
        raise RuntimeError(f"{fn!r} may block: it belongs on a ServerLane")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop in which nothing can be handed to a default executor."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_NoExecutor(max_workers=1))
    return loop
