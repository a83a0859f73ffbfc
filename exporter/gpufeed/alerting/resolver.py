# SPDX-License-Identifier: Apache-2.0
"""Names of receivers to addresses: asked on a lane, because a resolver may hang, and never of the local link."""

import ipaddress
import socket
from collections.abc import Iterator
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

from gpufeed.errors import LaneStuck
from gpufeed.wire.server_lane import ServerLane

WITHIN_S: Final = 5.0

_Found = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int | bytes, ...]]]


class LaneResolver(AbstractResolver):
    """getaddrinfo on a ServerLane. While that hangs, the addresses of last time are used."""

    def __init__(self, lane: ServerLane) -> None:
        self._lane = lane
        self._last: dict[tuple[str, int, int], list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`. Raises OSError."""
        key = (host, port, int(family))
        try:
            found = await self._lane.run(_ask, host, port, family, timeout_s=WITHIN_S)
        except (TimeoutError, LaneStuck) as error:
            if key in self._last:
                return self._last[key]
            raise OSError(f"the resolver does not answer for {host}") from error
        addresses = list(_usable(host, port, found))
        if not addresses:
            raise OSError(f"{host} has no address beyond the local link")
        self._last[key] = addresses
        return addresses

    async def close(self) -> None:
        """Nothing is held."""


def is_link_local(host: str) -> bool:
    """Whether an address is one of the local link, where clouds keep their metadata services. Names are not."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_link_local


def _ask(host: str, port: int, family: int) -> _Found:
    return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)  # type: ignore[return-value]  # stubs are wider


def _usable(host: str, port: int, found: _Found) -> Iterator[ResolveResult]:
    for family, _, protocol, _, address in found:
        numeric = str(address[0])
        if not is_link_local(numeric):
            yield ResolveResult(
                hostname=host, host=numeric, port=port, family=family, proto=protocol, flags=socket.AI_NUMERICHOST
            )
