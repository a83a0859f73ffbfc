# SPDX-License-Identifier: Apache-2.0
"""What one key cannot see by itself: names that must exist elsewhere, and keys that must fit one another."""

import re
from collections.abc import Iterator
from typing import Final, get_args
from urllib.parse import urlsplit

from gpufeed.config.alerting import Receiver
from gpufeed.config.decode import suggest
from gpufeed.config.keys import every_key, value_at
from gpufeed.config.kinds import parse_address
from gpufeed.config.schema import Config
from gpufeed.model.ids import COLLECTORS, StorageKind

_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_PLACEHOLDERS: Final = ("hostname", "fqdn")
_SPEEDS: Final = ("fast", "slow", "rare", "events")


def contradictions(config: Config) -> Iterator[tuple[str, str]]:
    """Every (dotted key, what is wrong with it)."""
    yield from _periods(config)
    yield from _capacities(config)
    yield from _receivers("alerting.alertmanagers", config.alerting.alertmanagers)
    yield from _receivers("alerting.webhooks", config.alerting.webhooks)
    yield from _placeholders(config)
    if not config.web.listen_addresses and not config.web.systemd_socket:
        yield "web.listen_addresses", "is empty: nothing would be served"
    if config.web.ui_listen_addresses == ():
        yield "web.ui_listen_addresses", "is empty: null serves the page beside /metrics, ui: false serves none"


def remarks(config: Config) -> Iterator[str]:
    """What is correct and yet not what somebody may think: said at start and by check-config."""
    for key in every_key():
        if key.marks.get("not_yet") and value_at(config, key) != key.default:
            yield f"{key.dotted}: is right, but has no effect in this version"
    open_to = [address for address in config.web.listen_addresses if not _is_loopback(address)]
    if config.web.enable_lifecycle and config.web.config_file is None and open_to:
        yield f"web.enable_lifecycle: whoever reaches {open_to[0]} may reload; ask for a password in web.config_file"


def _is_loopback(address: str) -> bool:
    host, _ = parse_address(address)
    return host in {"localhost", "::1"} or host.startswith("127.")


def _periods(config: Config) -> Iterator[tuple[str, str]]:
    for group in config.sampling.periods:
        collector, _, speed = group.partition(".")
        owners = (*COLLECTORS, *config.sources.extra)
        if collector in owners and speed in _SPEEDS:
            continue
        known = [f"{one}.{pace}" for one in owners for pace in _SPEEDS]
        yield f"sampling.periods.{group}", f"no such group{suggest(group, known)}"
    if config.sampling.slow_period < config.sampling.fast_period:
        yield "sampling.slow_period", "is shorter than sampling.fast_period"


def _capacities(config: Config) -> Iterator[tuple[str, str]]:
    for name in config.storage.capacity:
        kind, colon, target = name.partition(":")
        if not (colon and target) or kind not in get_args(StorageKind):
            yield f"storage.capacity.{name}", f"expected KIND:TARGET{suggest(kind, get_args(StorageKind))}"


def _receivers(at: str, receivers: tuple[Receiver, ...]) -> Iterator[tuple[str, str]]:
    for index, receiver in enumerate(receivers):
        if "@" in urlsplit(receiver.url).netloc:
            yield f"{at}.{index}.url", "holds a name and a password, and would be logged; use basic_auth"
        auth = receiver.basic_auth
        if auth is not None and receiver.bearer_token_file is not None:
            yield f"{at}.{index}", "has both basic_auth and bearer_token_file"
        if auth is not None and (auth.password is None) == (auth.password_file is None):
            yield f"{at}.{index}.basic_auth", "needs either password or password_file"


def _placeholders(config: Config) -> Iterator[tuple[str, str]]:
    for name, value in config.alerting.labels.items():
        for word in _PLACEHOLDER.findall(value):
            if word not in _PLACEHOLDERS:
                known = " and ".join(f"{{{one}}}" for one in _PLACEHOLDERS)
                yield f"alerting.labels.{name}", f"no such placeholder {{{word}}}; known are {known}"
