# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, silent or hostile: others are answered all the while, or within ten seconds of the end."""

import contextlib
import os
import signal
import socket
import time
import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from faults.conftest import Recovery
from running import Process, Starter, fetch, poll

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(120)]

Sockets = list[socket.socket]


@pytest.fixture(scope="module")
def daemon(starter: Starter) -> Iterator[Process]:
    daemon = starter.gpufeed("demo", "--gpus=2")
    poll(lambda: len(daemon.values("gpufeed_gpu_power_watts")) == 2, 20, "two GPUs")
    yield daemon
    assert daemon.value("gpufeed_probe_restarts_total") == 0
    assert len(daemon.text().splitlines()) < 60  # of all rows together
    assert daemon.stop() == 0


def opened(daemon: Process, count: int, said: bytes = b"") -> Sockets:
    """So many connections, as far as they are let in, each having said something."""
    address = ("127.0.0.1", int(daemon.url.rpartition(":")[2]))
    found: Sockets = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            one = socket.create_connection(address, timeout=2)
            found.append(one)
            if said:
                one.sendall(said)
    return found


def silence(daemon: Process) -> Sockets:
    return opened(daemon, 300)


def half_a_request(daemon: Process) -> Sockets:
    return opened(daemon, 300, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-A: ")


def slowloris(daemon: Process) -> Sockets:
    found = opened(daemon, 60, b"GET /metrics HTTP/1.1\r\n")
    for _ in range(10):
        for one in found:
            with contextlib.suppress(OSError):
                one.sendall(b"X: y\r\n")
        time.sleep(0.1)
    return found


def garbage_of_tls(daemon: Process) -> Sockets:
    return opened(daemon, 300, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500))


def a_header_of_a_megabyte(daemon: Process) -> Sockets:
    return opened(daemon, 20, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 1_000_000)


def thousands_of_headers(daemon: Process) -> Sockets:
    return opened(daemon, 20, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 5_000)


def readers_that_do_not_read(daemon: Process) -> Sockets:
    return opened(daemon, 60, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40)


def a_body_without_end(daemon: Process) -> Sockets:
    head = b"POST /-/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n"
    return opened(daemon, 60, head + b"x" * 65_536)


def a_flood_of_requests(daemon: Process) -> Sockets:
    def ask(number: int) -> None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            fetch(daemon.url + ("/metrics", "/", "/api/v1/status", "/nowhere")[number % 4])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(800)))
    return []


def idle_after_an_answer(daemon: Process) -> Sockets:
    return opened(daemon, 100, b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")


Attack = Callable[[Process], Sockets]
ATTACKS: tuple[Attack, ...] = (
    silence,
    half_a_request,
    slowloris,
    garbage_of_tls,
    a_header_of_a_megabyte,
    thousands_of_headers,
    readers_that_do_not_read,
    a_body_without_end,
    a_flood_of_requests,
    idle_after_an_answer,
)


def is_answered(daemon: Process) -> bool:
    try:
        return "gpufeed_gpu_power_watts" in fetch(daemon.url + "/metrics", timeout_s=2)
    except (urllib.error.URLError, OSError):
        return False


def descriptors(daemon: Process) -> int:
    return len(list(Path(f"/proc/{daemon.popen.pid}/fd").iterdir()))


def resident_bytes(daemon: Process) -> int:
    pages = int(Path(f"/proc/{daemon.popen.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__.replace("_", " "))
def test_clients_bring(daemon: Process, attack: Attack, recovery: Recovery) -> None:
    files, memory = descriptors(daemon), resident_bytes(daemon)
    found = attack(daemon)
    recovery.lifted()  # they stay: the server has to rid itself of them
    poll(lambda: is_answered(daemon), 10, "a scrape answered while they hold on")
    recovery.well()
    for one in found:
        one.close()
    poll(lambda: descriptors(daemon) <= files + 4, 40, "descriptors as before")
    assert resident_bytes(daemon) - memory < 40_000_000


def test_more_connections_come_than_there_are_descriptors(starter: Starter, recovery: Recovery) -> None:
    small = starter.gpufeed("demo", "--gpus=1", descriptors=64)
    poll(lambda: is_answered(small), 20, "a scrape")
    flood = opened(small, 200, b"GET /")
    recovery.lifted()
    poll(lambda: is_answered(small), 10, "a scrape again")
    recovery.well()
    assert len(small.text().splitlines()) < 40
    for one in flood:
        one.close()
    assert small.stop() == 0


def test_sigterm_comes_while_an_answer_is_read(starter: Starter, recovery: Recovery) -> None:
    daemon = starter.gpufeed("demo", "--gpus=8", "--exposition.profile=full")
    poll(lambda: is_answered(daemon), 20, "a scrape")
    slow = opened(daemon, 8, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    recovery.lifted()
    daemon.popen.send_signal(signal.SIGTERM)
    assert daemon.stop(within_s=10) == 0
    recovery.well()
    for one in slow:
        one.close()
