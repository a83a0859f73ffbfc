# SPDX-License-Identifier: Apache-2.0
"""Where this server keeps what: locks and the control socket at run time, state over restarts."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The directories, and whether the one for run time is ours alone and goes with us."""

    runtime: Path
    state: Path | None
    control_socket: Path
    is_private: bool

    @classmethod
    def settle(cls, config: Config, environment: Mapping[str, str]) -> Self:
        """The directories of a configuration, or systemd's, or a private one. Raises ConfigError."""
        named = config.paths.runtime or _first(environment.get("RUNTIME_DIRECTORY"))
        state = config.paths.state or _first(environment.get("STATE_DIRECTORY"))
        try:
            runtime = Path(named) if named else Path(tempfile.mkdtemp(prefix="gpufeed-"))
            runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"paths.runtime: {error.filename}: {error.strerror}: name a directory that can be written"
            raise ConfigError((problem,)) from None
        socket = config.control.socket
        return cls(
            runtime=runtime,
            state=Path(state) if state else None,
            control_socket=Path(socket) if socket else runtime / "control.sock",
            is_private=named is None,
        )

    def leave(self) -> None:
        """Remove what was made for this run alone."""
        if self.is_private:
            shutil.rmtree(self.runtime, ignore_errors=True)


def _first(paths: str | None) -> str | None:
    return paths.partition(":")[0] if paths else None
