# SPDX-License-Identifier: Apache-2.0
"""The server's event loop: asyncio's own, without a pool of threads behind it."""

import asyncio
import errno
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor  # noqa: TID251 to forbid it everywhere else
from typing import Any, Final

log = logging.getLogger(__name__)

OUT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
SAID_EVERY_S: Final = 60.0


class _NoExecutor(ThreadPoolExecutor):
    """Takes no work: whatever blocks for ever in a pool holds the end of the process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401, ARG002
        """Refuse. Raises RuntimeError."""
        raise RuntimeError(f"{fn!r} may block: it belongs on a ServerLane")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop in which nothing can be handed to a default executor."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_NoExecutor(max_workers=1))
    loop.set_exception_handler(_Reporter())
    return loop


class _Reporter:
    """Says what went wrong in a callback. That the machine is out of something is a line a minute, not one a second."""

    def __init__(self) -> None:
        self._said_s: float | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in OUT_OF):
            loop.default_exception_handler(context)
            return
        now_s = loop.time()
        if self._said_s is None or now_s - self._said_s >= SAID_EVERY_S:
            self._said_s = now_s
            log.warning("no connection can be taken: %s; is RLIMIT_NOFILE high enough?", error.strerror)
