# SPDX-License-Identifier: Apache-2.0
"""The API answers what its description promises: every answer is checked against the shipped file, by hand."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from gpufeed.history.events import Event
from gpufeed.model.evidence import Evidence
from gpufeed.model.frame import FrameTime, InputStatus
from gpufeed.model.gpu import GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid, LaneId
from gpufeed.model.state import Attribution, GpuRecord, NodeState, StateCause
from gpufeed.web.api import description
from gpufeed.web.endpoints import Delivered, Firing
from serving import Node, Serve

UUID = GpuUuid("GPU-1")
KEY = GpuKey(UUID)
S = 1_000_000_000
OPENAPI = json.loads((files("gpufeed.web") / "static" / "openapi.json").read_text(encoding="utf-8"))
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


HOT = Event(wall_ns=1_700_000_000 * S, kind="health", name="hw_thermal", of="GPU 3", to="degraded", text="too <hot>")


def problems(value: Any, schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """Where a value is not of a schema; a key that the schema does not name is a problem too."""
    if "$ref" in schema:
        yield from problems(value, OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]], at)
        return
    if "anyOf" in schema:
        if all(list(problems(value, one, at)) for one in schema["anyOf"]):
            yield f"{at}: none of {schema['anyOf']}"
        return
    wanted = schema["type"]
    is_right = isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    if not is_right:
        yield f"{at}: {value!r} is no {wanted}"
    elif wanted == "object":
        yield from (f"{at}: {key} is missing" for key in set(schema["required"]) - set(value))
        for key, inner in value.items():
            if key not in schema["properties"]:
                yield f"{at}: {key} is not described"
            else:
                yield from problems(inner, schema["properties"][key], f"{at}.{key}")
    elif wanted == "array":
        for number, inner in enumerate(value):
            yield from problems(inner, schema["items"], f"{at}[{number}]")


def state(until_s: int = 100) -> NodeState:
    record = GpuRecord(
        uuid=UUID,
        index=3,
        lane=LaneId("gpu3"),
        identity=GpuIdentity(gpu=KEY, index=3, name="NVIDIA H100"),
        condition="ok",
    )
    attribution = Attribution(
        state_ns={StateCause("busy", "tensor"): 60 * S, StateCause("starved", "storage"): (until_s - 60) * S},
        tracked_ns=until_s * S,
        decided_until_ns=until_s * S,
        current=StateCause("busy", "tensor"),
        evidence=(Evidence(input="active", value=0.6, unit="ratio"),),
    )
    return NodeState(
        time=FrameTime(until_s * S, until_s * S, (1_700_000_000 + until_s) * S),
        gpus={UUID: record},
        attributions={KEY: attribution},
        inputs={("gpm", "gpu3"): InputStatus("gpm", "gpu3", "denied", "no permission", "grant it")},
    )


def test_the_shipped_description_is_what_the_types_say() -> None:
    assert json.loads(json.dumps(description())) == OPENAPI, "write it anew: see CONTRIBUTING"


def test_every_path_described_says_what_it_answers() -> None:
    for path, item in OPENAPI["paths"].items():
        assert path.startswith("/api/v1/")
        for answer in item["get"]["responses"].values():
            name = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert name in OPENAPI["components"]["schemas"]


@pytest.mark.parametrize("path", sorted(OPENAPI["paths"]))
@pytest.mark.parametrize("is_empty", [True, False])
async def test_answers_are_of_their_schema(node: Node, serve: Serve, path: str, is_empty: bool) -> None:
    if not is_empty:
        node.state = state()
        node.states.append(node.state)
        node.alerts = (Firing(name="A", severity="page", state="firing", text="t"),)
        node.events = (HOT,)
    served = await serve(node)
    async with served.client.get(served.url + path) as answer:
        body = await answer.json()
        schema = OPENAPI["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert list(problems(body, schema)) == []


async def test_history_adds_up_to_what_was_decided_within_the_window(node: Node, serve: Serve) -> None:
    node.state = state()
    node.states.append(node.state)
    served = await serve(node)
    async with served.client.get(served.url + "/api/v1/history?window_seconds=1800") as answer:
        told = await answer.json()
    (gpu,) = told["gpus"]
    assert (gpu["index"], gpu["uuid"], told["slot_seconds"]) == (3, UUID, 5.0)
    assert sum(one["seconds"] for slot in gpu["slots"] for one in slot["states"]) == pytest.approx(100)
    assert gpu["slots"][0]["time_seconds"] == 1_700_000_000
    async with served.client.get(served.url + "/api/v1/history?window_seconds=10") as answer:
        told = await answer.json()
    assert [slot["time_seconds"] for slot in told["gpus"][0]["slots"]] == [1_700_000_090, 1_700_000_095]


@pytest.mark.parametrize(
    "query", ["window_seconds=0", "window_seconds=1801", "window_seconds=x", "window_seconds=-1", "window_seconds=",
              "window_seconds=%C2%B2", "window_seconds=1e3", "window=5"]
)  # fmt: skip
async def test_a_wrong_parameter_is_a_400_that_says_which(node: Node, serve: Serve, query: str) -> None:
    served = await serve(node)
    async with served.client.get(f"{served.url}/api/v1/history?{query}") as answer:
        assert answer.status == 400
        body = await answer.json()
    assert list(problems(body, {"$ref": "#/components/schemas/Problem"})) == []
    assert "window" in body["error"]


async def test_what_changed_is_told_by_page_and_api(node: Node, serve: Serve) -> None:
    node.state = state()
    node.events = (HOT,) * 30
    node.receivers = (
        Delivered(receiver="am1:9093", waiting=0, dropped=0),
        Delivered(receiver="am2:9093", waiting=3, dropped=0),
        Delivered(receiver="am3:9093", waiting=0, dropped=2),
    )
    served = await serve(node)
    async with served.client.get(served.url + "/api/v1/history") as answer:
        told = (await answer.json())["events"]
    assert len(told) == 30
    assert told[0] == {
        "time_seconds": 1_700_000_000, "kind": "health", "name": "hw_thermal", "of": "GPU 3", "to": "degraded",
        "severity": "", "text": "too <hot>",
    }  # fmt: skip
    async with served.client.get(served.url + "/") as answer:
        page = await answer.text()
    assert page.count("2023-11-14 22:13:20 UTC") == 20
    assert "too &lt;hot&gt;" in page
    async with served.client.get(served.url + "/api/v1/status") as answer:
        fare = {one["receiver"]: one["level"] for one in (await answer.json())["receivers"]}
    assert fare == {"am1:9093": "ok", "am2:9093": "degraded", "am3:9093": "failed"}
    assert all(receiver in page for receiver in fare)


async def test_the_description_is_served(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/api/v1/openapi.json") as answer:
        assert await answer.json() == OPENAPI
    async with served.client.post(served.url + "/api/v1/status") as refused:
        assert refused.status == 405


async def test_an_explanation_has_the_form_that_is_described(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/api/v1/explain?window_seconds=60") as answer:
        body = await answer.json()
    assert list(problems(body, {"$ref": "#/components/schemas/Explanation"})) == []
    assert body["window_seconds"] == 60
    async with served.client.get(served.url + "/api/v1/explain?window_seconds=0") as refused:
        assert refused.status == 400
