# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: it becomes live, shows a fault by itself, and breaks none of its own rules."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from running import Starter, fetch, poll

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Message = dict[str, Any]


@dataclass
class Tab:
    """A page in a browser, over the DevTools protocol."""

    socket: aiohttp.ClientWebSocketResponse
    events: list[Message] = field(default_factory=list)
    number: int = 0

    async def call(self, method: str, **parameters: object) -> Message:
        """The result of one call; events that come meanwhile are kept."""
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": parameters})
        async with asyncio.timeout(20):
            while True:
                message: Message = await self.socket.receive_json()
                if message.get("id") == self.number:
                    result: Message = message["result"]
                    return result
                self.events.append(message)

    async def value(self, script: str) -> Any:
        return (await self.call("Runtime.evaluate", expression=script))["result"].get("value")

    async def until(self, script: str, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                while not await self.value(script):
                    await self.call("Runtime.enable")
        except TimeoutError:
            pytest.fail(f"within {within_s} s not true: {script}")


@pytest.fixture
async def tab(starter: Starter, tmp_path: Path) -> AsyncIterator[Tab]:
    if BROWSER is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    profile = tmp_path / "profile"
    starter.start(
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank",
    )  # fmt: skip
    place = profile / "DevToolsActivePort"
    poll(place.exists, 30, "a browser")
    port = place.read_text(encoding="utf-8").split()[0]
    pages = json.loads(fetch(f"http://127.0.0.1:{port}/json"))
    (address,) = [one["webSocketDebuggerUrl"] for one in pages if one["type"] == "page"]
    async with aiohttp.ClientSession() as client, client.ws_connect(address, max_msg_size=0) as socket:
        yield Tab(socket)


@pytest.mark.slow
async def test_the_page_is_live_shows_a_fault_by_itself_and_keeps_its_policy(starter: Starter, tab: Tab) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "gpu_lost", "--gpus", "2")
    for domain in ("Runtime", "Log", "Network", "Page"):
        await tab.call(f"{domain}.enable")
    await tab.call("Page.navigate", url=daemon.url + "/")
    await tab.until("document.getElementById('when')?.textContent.startsWith('live, as of')", 20)
    await tab.until("document.querySelector('details') !== null", 20)
    await tab.value("document.querySelector('details').open = true; window.unreloaded = true")
    await tab.until("document.querySelector('h2').textContent === 'GPU 1 fell off the bus'", 40)
    assert await tab.value("window.unreloaded && document.querySelector('details').open")
    complaints = [one for one in tab.events if one["method"] in {"Log.entryAdded", "Runtime.consoleAPICalled",
                                                                 "Runtime.exceptionThrown"}]  # fmt: skip
    assert complaints == []
    asked = [one["params"]["request"]["url"] for one in tab.events if one["method"] == "Network.requestWillBeSent"]
    assert {url.partition("/static/")[0] for url in asked} == {
        daemon.url,
        daemon.url + "/",
        daemon.url + "/api/v1/events",
    }


@pytest.mark.slow
async def test_the_page_says_when_it_is_cut_off_and_comes_back(starter: Starter, tab: Tab) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "healthy", "--gpus", "1")
    await tab.call("Page.navigate", url=daemon.url + "/")
    is_live = "document.getElementById('when')?.textContent.startsWith('live, as of')"
    await tab.until(is_live, 20)
    daemon.stop()
    await tab.until("document.getElementById('when').textContent.startsWith('no news for')", 30)
    port = int(daemon.url.rpartition(":")[2])
    starter.gpufeed("demo", "--scenario", "healthy", "--gpus", "1", port=port)
    await tab.until(is_live, 40)


@pytest.mark.slow
def test_the_daemon_ends_in_time_while_a_browser_watches(starter: Starter) -> None:
    daemon = starter.gpufeed("demo", "--scenario", "healthy", "--gpus", "1")
    watching = starter.start("curl", "--silent", "--no-buffer", daemon.url + "/api/v1/events")
    poll(lambda: "event: sections" in watching.text(), 20, "an event")
    assert daemon.stop(10) == 0
    assert watching.popen.wait(5) in {0, 18}  # 18: the stream was cut, which is how a browser knows


@pytest.mark.slow
def test_page_and_metrics_on_addresses_of_their_own(starter: Starter, tmp_path: Path) -> None:
    site = tmp_path / "site.yml"
    site.write_text('web: {ui_listen_addresses: ["127.0.0.1:0"]}\n', encoding="utf-8")
    daemon = starter.gpufeed("demo", "--gpus", "1", f"--config.file={site}")
    found = poll(lambda: re.search(r'"serving the page" address=(127\.0\.0\.1:\d+)', daemon.text()), 10, "its address")
    assert "gpufeed" in fetch(f"http://{found[1]}/")
    with pytest.raises(OSError, match="404"):
        fetch(f"http://{found[1]}/metrics")
    with pytest.raises(OSError, match="404"):
        fetch(daemon.url + "/")
