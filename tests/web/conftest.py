# SPDX-License-Identifier: Apache-2.0
"""A node, and a way to serve it on a free port of 127.0.0.1."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from gpufeed.web.guard import Guard
from gpufeed.web.server import WebServer
from gpufeed.web.sockets import bind, shown
from serving import Node, Serve, Served


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve a node's endpoints on a free port of 127.0.0.1."""
    running: list[Served] = []

    async def start(node: Node, guard: Guard | None = None, *, has_ui: bool = True, apart: bool = False) -> Served:
        sockets = bind([("127.0.0.1", 0)])
        ui_sockets = bind([("127.0.0.1", 0)]) if apart else ()
        address = shown(sockets[0])
        server = WebServer(node.endpoints(has_ui=has_ui), guard)
        await server.start(sockets, ui_sockets)
        client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10), auto_decompress=False)
        served = Served(
            f"http://{address}",
            int(address.rpartition(":")[2]),
            server,
            client,
            f"http://{shown(ui_sockets[0])}" if ui_sockets else f"http://{address}",
        )
        running.append(served)
        return served

    yield start
    for served in running:
        await served.client.close()
        await served.server.stop()
