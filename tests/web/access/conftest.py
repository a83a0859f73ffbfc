# SPDX-License-Identifier: Apache-2.0
"""An authority, certificates of it in a folder, and a server behind a web configuration file."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import bcrypt
import pytest
import trustme

from certificates import write
from gpufeed.web.access.door import door
from gpufeed.web.server import WebServer
from gpufeed.web.sockets import bind, shown
from serving import Behind, Node, Served


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def hashed() -> str:
    """Of the password `opensesame`, at the least cost there is."""
    return bcrypt.hashpw(b"opensesame", bcrypt.gensalt(4)).decode("ascii")


@pytest.fixture
def folder(tmp_path: Path, authority: trustme.CA) -> Path:
    """With server.pem, server.key and ca.pem."""
    write(authority.issue_cert("127.0.0.1"), tmp_path)
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    return tmp_path


@pytest.fixture
async def behind(folder: Path) -> AsyncIterator[Behind]:
    """Serve a node behind `folder`/web.yml with this text."""
    running: list[Served] = []

    async def start(text: str) -> Served:
        file = folder / "web.yml"
        file.write_text(text)
        sockets = bind([("127.0.0.1", 0)])
        address = shown(sockets[0])
        made = door(file)
        server = WebServer(Node().endpoints(), door=made)
        await server.start(sockets)
        scheme = "http" if made.context is None else "https"
        client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10))
        url = f"{scheme}://{address}"
        served = Served(url, int(address.rpartition(":")[2]), server, client, url)
        running.append(served)
        return served

    yield start
    for served in running:
        await served.client.close()
        await served.server.stop()
