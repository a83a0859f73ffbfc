# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: only what changed, not to too many, never at a slow client's pace, and not after the end."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import aiohttp

from gpufeed.model.frame import FrameTime
from gpufeed.model.state import NodeState, ProbeRecord
from gpufeed.web.guard import Guard
from gpufeed.web.live import MAX_CLIENTS
from serving import Node, Serve, Served

WITHIN_S = 10


async def watch(served: Served, client: aiohttp.ClientSession | None = None) -> aiohttp.ClientResponse:
    answer = await (client or served.client).get(served.ui_url + "/api/v1/events")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    return answer


async def event(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """The data of the next event."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            line = await answer.content.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                found: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                return found


async def test_the_first_event_has_every_section_and_later_ones_what_changed(node: Node, serve: Serve) -> None:
    served = await serve(node)
    answer = await watch(served)
    first = await event(answer)
    assert "headline" in first["sections"]
    assert "probe is down" in first["sections"]["headline"]
    node.state = replace(node.state, probe=ProbeRecord(is_up=True))
    while "headline" not in (later := await event(answer))["sections"]:
        pass
    assert set(later["sections"]) == {"headline", "attention", "missing"}
    assert "No GPU is known" in later["sections"]["headline"]
    assert later["version"] == "1.2.3"
    answer.close()


async def test_an_event_without_news_still_says_the_time(node: Node, serve: Serve) -> None:
    served = await serve(node)
    answer = await watch(served)
    await event(answer)
    node.state = NodeState(time=FrameTime(0, 0, 3_600_000_000_000))
    while (later := await event(answer))["when"] != "01:00:00 UTC":
        pass
    assert later["sections"] == {}
    answer.close()


async def test_too_many_watchers_are_told_to_come_again_and_places_become_free(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        watching = [await watch(served, client) for _ in range(MAX_CLIENTS)]
        async with client.get(served.url + "/api/v1/events") as answer:
            assert answer.status == 503
            assert "Retry-After" in answer.headers
        async with client.get(served.url + "/metrics") as answer:
            assert answer.status == 200
        for one in watching:
            one.close()
        async with asyncio.timeout(WITHIN_S):
            while (again := await client.get(served.url + "/api/v1/events")).status != 200:
                again.release()
        again.close()


async def test_a_watcher_who_does_not_read_holds_up_nobody(node: Node, serve: Serve) -> None:
    node.identity = replace(node.identity, version="x" * 3_000_000)  # more than the sockets' buffers hold
    served = await serve(node)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
    writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readline()
    async with served.client.get(served.url + "/-/healthy") as answer:
        assert answer.status == 200
    async with aiohttp.ClientSession(read_bufsize=2**24) as client:
        other = await watch(served, client)
        for _ in range(2):
            assert await event(other)
        other.close()
    writer.transport.abort()


async def test_a_stream_outlives_the_time_of_an_answer_but_not_the_server(node: Node, serve: Serve) -> None:
    served = await serve(node, Guard(header_receipt_s=0.2, keep_alive_s=0.2))
    answer = await watch(served)
    for _ in range(3):
        await event(answer)
    async with asyncio.timeout(WITHIN_S):
        await served.server.stop()
        while await answer.content.readline():
            pass
    answer.close()


async def test_a_page_of_its_own_listener_is_live_there(node: Node, serve: Serve) -> None:
    served = await serve(node, apart=True)
    answer = await watch(served)
    assert (await event(answer))["sections"]
    answer.close()
