# SPDX-License-Identifier: Apache-2.0
"""Health, readiness, reload, and who may ask."""

import pytest

from serving import Node, Serve


async def test_healthy_is_always_said_and_ready_only_when_it_is(node: Node, serve: Serve) -> None:
    node.is_ready = False
    served = await serve(node)
    async with served.client.get(served.url + "/-/healthy") as answer:
        assert answer.status == 200
    async with served.client.get(served.url + "/-/ready") as answer:
        assert answer.status == 503
    node.is_ready = True
    async with served.client.get(served.url + "/-/ready") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_reload_works_only_when_it_is_switched_on(node: Node, serve: Serve, method: str) -> None:
    served = await serve(node)
    async with served.client.request(method, served.url + "/-/reload") as answer:
        assert answer.status == 403
    node.allow(has_lifecycle=True)
    async with served.client.request(method, served.url + "/-/reload") as answer:
        assert answer.status == 200
    assert node.reloads == 1


async def test_reload_is_not_a_get(node: Node, serve: Serve) -> None:
    node.allow(has_lifecycle=True)
    served = await serve(node)
    async with served.client.get(served.url + "/-/reload") as answer:
        assert answer.status == 405
        assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"POST", "PUT"}


async def test_a_wrong_configuration_is_told_to_who_reloads(node: Node, serve: Serve) -> None:
    node.allow(has_lifecycle=True)
    node.reload_error = "gpufeed.yml:3: web.uii: unknown key"
    served = await serve(node)
    async with served.client.post(served.url + "/-/reload") as answer:
        assert answer.status == 500
        assert node.reload_error in await answer.text()


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]
)
async def test_a_page_of_another_site_cannot_reload(node: Node, serve: Serve, headers: dict[str, str]) -> None:
    node.allow(has_lifecycle=True)
    served = await serve(node)
    async with served.client.post(served.url + "/-/reload", headers=headers) as answer:
        assert answer.status == 403
    assert node.reloads == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9937", 200),
        ("127.0.0.1", 200),
        ("[::1]:9937", 200),
        ("[::1]", 200),
        ("evil.example:9937", 403),
        ("169.254.169.254", 403),
        ("", 403),
    ],
)
async def test_on_loopback_only_names_of_this_machine_are_answered(
    node: Node, serve: Serve, host: str, status: int
) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/metrics", headers={"Host": host}) as answer:
        assert answer.status == status
