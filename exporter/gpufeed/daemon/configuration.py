# SPDX-License-Identifier: Apache-2.0
"""A configuration that is right in itself and names only alerts and metrics that exist."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpufeed.alerting import site
from gpufeed.catalogue import METRICS
from gpufeed.config.decode import suggest
from gpufeed.config.fingerprint import expand
from gpufeed.config.flags import Flag
from gpufeed.config.load import load
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError
from gpufeed.health.conclusion import check_names, matches
from gpufeed.web.access.read import read as read_web_config

_FILLINGS: Final[Mapping[str, Callable[[], str]]] = {
    "hostname": socket.gethostname,
    "fqdn": socket.getfqdn,
    # what systemd's LoadCredential= leaves for the unit; for check-config, where it would be
    "credentials": lambda: os.environ.get("CREDENTIALS_DIRECTORY", "/run/credentials/gpufeed.service"),
}


def read(path: Path | str | None, flags: Sequence[Flag] = ()) -> Config:
    """The configuration in force under a file and flags. Raises ConfigError with every problem.

    May block: it reads the file and, where `{fqdn}` stands, asks the resolver.
    """
    config = expand(load(path, flags, unknown_names), _FILLINGS)
    problems = _web_config(config)
    if problems:
        raise ConfigError(problems)
    return config


def unknown_names(config: Config) -> Iterator[tuple[str, str]]:
    """Metrics and alerts that do not exist, conditions that nobody can evaluate: dotted keys, and what is wrong."""
    for index, name in enumerate(config.exposition.drop):
        if name not in METRICS:
            yield f"exposition.drop.{index}", f"there is no metric {name}{suggest(name, tuple(METRICS))}"
    for key in ("include", "exclude"):
        for index, name in enumerate(getattr(config.check, key)):
            if not any(matches(known, (name,)) for known in check_names()):
                yield f"check.{key}.{index}", f"there is no check {name}{suggest(name, tuple(sorted(check_names())))}"
    yield from site.problems(config.alerting)


def _web_config(config: Config) -> tuple[str, ...]:
    if config.web.config_file is None:
        return ()
    try:
        read_web_config(config.web.config_file)
    except ConfigError as error:
        return error.problems
    return ()
