# SPDX-License-Identifier: Apache-2.0
"""A changed configuration: validated whole before any of it comes into force; else the old one stays."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gpufeed.config.changes import changed_keys, needing_restart
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError, LaneStuck
from gpufeed.logs import fields
from gpufeed.wire.server_lane import ServerLane

_READ_WITHIN_S: Final = 20.0
_log: Final = logging.getLogger(__name__)


class Reloading:
    """Reads the configuration again, off the event loop, one reload at a time."""

    def __init__(self, config: Config, read: Callable[[], Config], apply: Callable[[Config], None]) -> None:
        self.config = config
        self._read = read
        self._apply = apply
        self._lane = ServerLane("config")
        self._lock = asyncio.Lock()

    async def reload(self) -> None:
        """Bring the file as it is now into force. Raises ConfigError, and then nothing has changed."""
        async with self._lock:
            new = await self._validated()
            changed = changed_keys(self.config, new)
            self._apply(new)
            self.config = new
            _log.info("configuration reloaded", extra=fields(changed=", ".join(changed) or "nothing"))

    async def _validated(self) -> Config:
        try:
            new = await self._lane.run(self._read, timeout_s=_READ_WITHIN_S)
        except (TimeoutError, LaneStuck):
            raise ConfigError(("the configuration could not be read in time; is its file system stuck?",)) from None
        fixed = needing_restart(self.config, new)
        if fixed:
            problems = tuple(f"{key}: changes only with a restart; nothing was changed" for key in fixed)
            raise ConfigError(problems)
        return new
