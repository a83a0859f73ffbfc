# SPDX-License-Identifier: Apache-2.0
"""Listening sockets, bound by ourselves: the event loop would resolve names on a thread that we do not allow."""

import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from typing import Final

BACKLOG: Final = 128


class BindError(OSError):
    """An address that cannot be listened on; the text says which and why."""


def bind(addresses: Iterable[tuple[str, int]]) -> tuple[socket.socket, ...]:
    """One socket for each resolved address; port 0 is any free one; an empty host is every address.

    Raises BindError, with none left open.
    """
    opened: list[socket.socket] = []
    try:
        for host, port in addresses:
            opened.extend(_bind_host(host, port))
    except OSError as error:
        for one in opened:
            one.close()
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise BindError(f"cannot listen on {shown}: {error.strerror or error}") from None
    return tuple(opened)


def shown(one: socket.socket) -> str:
    """`127.0.0.1:9937`, `[::]:9937`, or the path of a Unix socket."""
    name = one.getsockname()
    if not isinstance(name, tuple):
        return str(name)
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback_only(sockets: Sequence[socket.socket]) -> bool:
    """Whether nobody but this machine can reach any of them."""
    return bool(sockets) and all(_is_loopback(one) for one in sockets)


def _is_loopback(one: socket.socket) -> bool:
    name = one.getsockname()
    return not isinstance(name, tuple) or ipaddress.ip_address(name[0].partition("%")[0]).is_loopback


def _bind_host(host: str, port: int) -> list[socket.socket]:
    if not host:
        return [_every_address(port)]
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(resolved):
            one = _bound(family, (str(address[0]), opened[0].getsockname()[1] if opened else port))
            opened.append(one)
    except OSError:
        for one in opened:
            one.close()
        raise
    return opened


def _every_address(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return _bound(socket.AF_INET6, ("::", port), is_dual=True)
    return _bound(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 that is what was asked for


def _bound(family: int, address: tuple[str, int], *, is_dual: bool = False) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if is_dual else 1)
        one.bind(address)
        one.listen(BACKLOG)
        one.setblocking(False)  # noqa: FBT003 the socket module's own form
    except OSError:
        one.close()
        raise
    return one
