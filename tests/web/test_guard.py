# SPDX-License-Identifier: Apache-2.0
"""Slow, silent and hostile clients cost neither descriptors nor log lines."""

import asyncio
import logging

import aiohttp
import pytest

from gpufeed.web.endpoints import ScrapePage, ScrapeRequest
from gpufeed.web.guard import MAX_CONNECTIONS, Guard
from serving import Node, Serve, Served

pytestmark = pytest.mark.fault

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(served: Served, data: bytes = b"") -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=65_536)
    writer.write(data)
    return reader, writer


async def is_closed(reader: asyncio.StreamReader, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            while await reader.read(65_536):
                pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


async def scrape(served: Served) -> int:
    async with aiohttp.ClientSession() as fresh, fresh.get(served.url + "/metrics") as answer:
        return answer.status


@pytest.mark.parametrize(
    "said", [b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-A: "], ids=["nothing", "line", "headers"]
)
async def test_a_client_that_does_not_finish_its_header_is_let_go(node: Node, serve: Serve, said: bytes) -> None:
    served = await serve(node, Guard(header_receipt_s=0.3))
    reader, writer = await connect(served, said)
    assert await is_closed(reader, within_s=5)
    writer.close()


async def test_an_idle_connection_is_let_go_and_a_used_one_is_kept(node: Node, serve: Serve) -> None:
    served = await serve(node, Guard(header_receipt_s=0.3, keep_alive_s=1.0))
    reader, writer = await connect(served)
    for _ in range(4):
        writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await reader.readuntil(b"healthy\n")
        await asyncio.sleep(0.4)
    assert await is_closed(reader, within_s=10)
    writer.close()


async def test_a_reader_that_stops_reading_is_let_go(node: Node, serve: Serve) -> None:
    node.body = b"x" * 64_000_000
    served = await serve(node, Guard(header_receipt_s=0.2, keep_alive_s=0.2))
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
    writer.write(b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    assert await is_closed(reader, within_s=5)
    writer.close()


async def test_a_flood_of_half_open_connections_are_capped_and_scrapes_work_again(
    node: Node, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve(node, Guard(header_receipt_s=3.0))
    flood = await asyncio.gather(*(connect(served, b"GET /") for _ in range(100)))
    refused = sum(await asyncio.gather(*(is_closed(reader, within_s=0.2) for reader, _ in flood)))
    assert refused >= 100 - MAX_CONNECTIONS
    async with asyncio.timeout(10):
        while True:
            try:
                if await scrape(served) == 200:
                    break
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
    for _, writer in flood:
        writer.close()
    assert served.server.rejected >= 100 - MAX_CONNECTIONS
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


@pytest.mark.parametrize(
    "said",
    [
        b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"evil" * 3_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: evil\r\n" * 200 + b"\r\n",
        b"\x16\x03\x01\x02\x00evil\x01\x00\r\n\r\n",
        b"evil\r\n\r\n",
    ],
    ids=["long line", "long header", "many headers", "TLS", "not HTTP"],
)
async def test_what_is_not_a_request_is_a_400_and_a_count_but_no_log_line(
    node: Node, serve: Serve, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve(node)
    reader, writer = await connect(served, said)
    async with asyncio.timeout(5):
        assert b" 400 " in await reader.readline()
    writer.close()
    assert served.server.rejected == 1
    assert caplog.records == []


async def test_a_large_body_is_not_taken(node: Node, serve: Serve) -> None:
    node.allow(has_lifecycle=True)
    served = await serve(node)
    async with served.client.post(served.url + "/-/reload", data=b"x" * 100_000) as answer:
        assert answer.status == 400
    assert node.reloads == 0


def fail(asked: ScrapeRequest) -> ScrapePage:
    raise LookupError(asked)


async def test_an_error_of_our_own_is_logged_with_its_place(
    node: Node, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    node.scrape = fail  # type: ignore[method-assign]
    served = await serve(node)
    assert await scrape(served) == 500
    assert [record.getMessage() for record in caplog.records] == ["a request handler failed"]
    assert caplog.records[0].exc_info is not None


async def test_stopping_frees_the_port_and_ends_connections(node: Node, serve: Serve) -> None:
    served = await serve(node)
    reader, writer = await connect(served, b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"healthy\n")
    async with asyncio.timeout(5):
        await served.server.stop()
    assert await is_closed(reader, within_s=5)
    writer.close()
    with pytest.raises(OSError, match=r"Connect call failed|refused"):
        await connect(served)
