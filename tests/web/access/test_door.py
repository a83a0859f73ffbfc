# SPDX-License-Identifier: Apache-2.0
"""A server behind its web configuration: who gets in, who does not, and what a change of the files does."""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
import trustme

from certificates import TLS, write
from gpufeed.web.tls_arrival import HANDSHAKE_S
from serving import Behind, Served

WITHIN_S = 10.0  # five times the second between looks, and a second for the answer


async def _status(served: Served, path: str = "/metrics", **options: object) -> int:
    async with served.client.get(served.url + path, **options) as answer:  # type: ignore[arg-type] # aiohttp's own
        return answer.status


async def _until(holds: Callable[[], Awaitable[bool]], within_s: float = WITHIN_S) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110 a liveness poll
            await asyncio.sleep(0.05)


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def _login(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")}


async def test_every_path_asks_for_the_password(behind: Behind, hashed: str) -> None:
    served = await behind(f"basic_auth_users: {{prometheus: {hashed}}}")
    for path in ("/metrics", "/", "/-/healthy", "/-/ready", "/api/v1/status"):
        assert await _status(served, path) == 401
        assert await _status(served, path, headers=_login("prometheus", "opensesame")) == 200


async def test_a_refusal_says_what_kind_of_login_is_wanted(behind: Behind, hashed: str) -> None:
    served = await behind(f"basic_auth_users: {{prometheus: {hashed}}}")
    async with served.client.get(served.url + "/metrics") as answer:
        assert (answer.headers["WWW-Authenticate"], await answer.text()) == ("Basic", "Unauthorized\n")


@pytest.mark.parametrize(
    "header",
    [
        _login("prometheus", "wrong")["Authorization"],
        _login("nobody", "opensesame")["Authorization"],
        _login("prometheus", "o" * 73)["Authorization"],
        _login("prometheus", "open\0sesame")["Authorization"],
        "Basic !!!",
        "Basic cHJvbWV0aGV1cw==",  # without a colon
        "Basic /////w==",  # not UTF-8
        "Bearer opensesame",
        "",
    ],
)
async def test_what_is_no_right_password_is_no_error_of_ours(behind: Behind, hashed: str, header: str) -> None:
    served = await behind(f"basic_auth_users: {{prometheus: {hashed}}}")
    for _ in range(2):  # the second answer comes from memory
        assert await _status(served, headers={"Authorization": header}) == 401


async def test_more_requests_than_the_rate_allows_are_told_so(behind: Behind) -> None:
    served = await behind("rate_limit: {interval: 1h, burst: 2}")
    assert [await _status(served) for _ in range(4)] == [200, 200, 429, 429]


async def test_security_headers_are_on_every_answer(behind: Behind) -> None:
    served = await behind(
        "http_server_config: {headers: {Strict-Transport-Security: max-age=5, X-Frame-Options: deny}}"
    )
    for path in ("/metrics", "/nothing-here"):
        async with served.client.get(served.url + path) as answer:
            found = (answer.headers["Strict-Transport-Security"], answer.headers["X-Frame-Options"])
        assert found == ("max-age=5", "deny")


async def test_an_answer_over_tls(behind: Behind, authority: trustme.CA) -> None:
    served = await behind(TLS)
    assert await _status(served, ssl=_trusting(authority)) == 200


async def test_what_comes_in_one_breath_with_the_end_of_the_handshake_is_read(
    behind: Behind, authority: trustme.CA
) -> None:
    served = await behind(TLS)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=_trusting(authority))
    writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(WITHIN_S):
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_older_versions_of_tls_find_no_common_ground(behind: Behind, authority: trustme.CA) -> None:
    served = await behind(TLS)
    old = _trusting(authority)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(aiohttp.ClientConnectionError):
        await _status(served, ssl=old)


async def test_a_new_certificate_is_used_without_a_restart(behind: Behind, folder: Path) -> None:
    served = await behind(TLS)
    newer = trustme.CA()
    write(newer.issue_cert("127.0.0.1"), folder)

    async def is_newer() -> bool:
        try:
            return await _status(served, ssl=_trusting(newer)) == 200
        except aiohttp.ClientConnectionError:
            return False

    await _until(is_newer)


async def test_a_half_written_rotation_leaves_the_old_certificate(
    behind: Behind, folder: Path, authority: trustme.CA, caplog: pytest.LogCaptureFixture
) -> None:
    served = await behind(TLS)
    certificate = trustme.CA().issue_cert("127.0.0.1")
    (folder / "server.pem").write_bytes(certificate.cert_chain_pems[0].bytes())  # its key has not come yet

    async def is_told() -> bool:
        return "the old one stays in force" in caplog.text

    await _until(is_told)
    assert await _status(served, ssl=_trusting(authority)) == 200


async def test_a_new_password_counts_and_a_broken_file_changes_nothing(
    behind: Behind, folder: Path, hashed: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = await behind(f"basic_auth_users: {{old: {hashed}}}")
    (folder / "web.yml").write_text("basic_auth_users: {old: [")

    async def is_told() -> bool:
        return "the old one stays in force" in caplog.text

    await _until(is_told)
    assert await _status(served, headers=_login("old", "opensesame")) == 200
    assert hashed not in caplog.text
    (folder / "web.yml").write_text(f"basic_auth_users: {{new: {hashed}}}")

    async def is_new() -> bool:
        return await _status(served, headers=_login("new", "opensesame")) == 200

    await _until(is_new)
    assert await _status(served, headers=_login("old", "opensesame")) == 401


async def test_a_file_that_is_named_before_it_is_there_is_found_when_it_comes(
    behind: Behind, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served = await behind(TLS)
    (folder / "web.yml").write_text(TLS.replace("server.", "later."))

    async def is_told() -> bool:
        return "the old one stays in force" in caplog.text

    await _until(is_told)
    later = trustme.CA()
    write(later.issue_cert("127.0.0.1"), folder, "later")

    async def is_later() -> bool:
        try:
            return await _status(served, ssl=_trusting(later)) == 200
        except aiohttp.ClientConnectionError:
            return False

    await _until(is_later)


CLIENTS = (
    "tls_server_config: {cert_file: server.pem, key_file: server.key, client_ca_file: ca.pem,"
    " client_auth_type: RequireAndVerifyClientCert"
)


async def test_only_clients_with_a_certificate_of_the_authority(behind: Behind, authority: trustme.CA) -> None:
    served = await behind(CLIENTS + "}")
    known = _trusting(authority)
    authority.issue_cert("scraper.example").configure_cert(known)
    assert await _status(served, ssl=known) == 200
    with pytest.raises((aiohttp.ClientConnectionError, aiohttp.ClientOSError)):
        await _status(served, ssl=_trusting(authority))


async def test_only_clients_with_a_name_that_is_allowed(behind: Behind, authority: trustme.CA) -> None:
    served = await behind(CLIENTS + ", client_allowed_sans: [scraper.example]}")
    for name, is_allowed in (("scraper.example", True), ("other.example", False)):
        context = _trusting(authority)
        authority.issue_cert(name).configure_cert(context)
        if is_allowed:
            assert await _status(served, ssl=context) == 200
        else:
            with pytest.raises(aiohttp.ClientConnectionError):
                await _status(served, ssl=context)


async def test_clients_that_never_shake_hands_are_bounded_and_end(behind: Behind, authority: trustme.CA) -> None:
    served = await behind(TLS)
    silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(120)]
    silent[0][1].write(b"GET / HTTP/1.1\r\n\r\n")  # not TLS

    async def is_answered() -> bool:
        try:
            return await _status(served, ssl=_trusting(authority)) == 200
        except (aiohttp.ClientConnectionError, ssl.SSLError):
            return False

    await _until(is_answered, within_s=5 * HANDSHAKE_S)
    assert served.server.rejected >= 120 - 80
    for _, writer in silent:
        writer.close()
