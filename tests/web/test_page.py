# SPDX-License-Identifier: Apache-2.0
"""The page and the status: what they say of a node, escaped, without anything from elsewhere."""

import gzip
import html.parser
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpufeed.model.evidence import Evidence
from gpufeed.model.frame import FrameTime, InputStatus, LaneStatus
from gpufeed.model.gpu import GpuFast, GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid, GroupName, LaneId
from gpufeed.model.state import (
    CAUSES,
    Attribution,
    GpuRecord,
    Held,
    JobView,
    NodeState,
    Ownership,
    ProbeRecord,
    StateCause,
    Verdict,
)
from gpufeed.palette import CAUSE_COLOURS, name_of
from gpufeed.web.endpoints import Firing, Identity
from gpufeed.web.words import css_class
from serving import Node, Serve

UUID = GpuUuid("GPU-1")
KEY = GpuKey(UUID)
SECOND = 1_000_000_000
HOSTILE = "<script>alert(1)</script>\"'&"


def state(name: str = "NVIDIA H100") -> NodeState:
    record = GpuRecord(
        uuid=UUID, index=3, lane=LaneId("gpu3"), identity=GpuIdentity(gpu=KEY, index=3, name=name), condition="ok"
    )
    fast = GpuFast(gpu=KEY, utilization_ratio=0.5, power_w=700.4, memory_used_bytes=2**30, memory_total_bytes=2**36)
    held = Held(
        sample=fast, lane=LaneId("gpu3"), group=GroupName("nvml.fast"), collector="nvml", read_at_ns=0, stale_at_ns=1
    )
    spent: Mapping[StateCause, int] = {
        StateCause("busy", "tensor"): 25 * SECOND,
        StateCause("starved", "storage"): 75 * SECOND,
    }
    attribution = Attribution(
        state_ns=spent,
        tracked_ns=100 * SECOND,
        decided_until_ns=1_000 * SECOND,
        current=StateCause("starved", "storage"),
        confidence_ratio=0.8,
        evidence=(Evidence(input=f"nfs:/data {HOSTILE}", value=0.095, unit="seconds"),),
    )
    lanes = (
        LaneStatus(LaneId("gpu3"), "nvml", None, 2 * SECOND, 8 * SECOND),
        LaneStatus(LaneId("nfs"), "nfs", 990 * SECOND, 2 * SECOND, 8 * SECOND, call="mountstats"),
    )
    return NodeState(
        time=FrameTime(1_000 * SECOND, 1_000 * SECOND, 1_700_000_000 * SECOND),
        samples={GpuFast: {KEY: held}},
        gpus={UUID: record},
        attributions={KEY: attribution},
        lanes={lane.lane: lane for lane in lanes},
        inputs={
            ("gpm", "gpu3"): InputStatus("gpm", "gpu3", "denied", "no permission", "grant it"),
            ("nfs", ""): InputStatus("nfs", "", "available"),
        },
        verdicts={(KEY, "xid"): Verdict(subject=KEY, check="xid", level=2, since_ns=0, reason="XID 79")},
        probe=ProbeRecord(is_up=True, pid=1),
    )


async def fetch(node: Node, serve: Serve, path: str) -> tuple[str, Mapping[str, str]]:
    served = await serve(node)
    async with served.client.get(served.url + path, headers={"Accept-Encoding": "identity"}) as answer:
        assert answer.status == 200
        return await answer.text(), answer.headers


class Balance(html.parser.HTMLParser):
    """Reads a document and keeps what it is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "link"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> Balance:
    document = Balance()
    document.feed(text)
    document.close()
    assert document.open == []
    return document


async def test_the_page_says_where_the_time_went_and_what_is_wrong(node: Node, serve: Serve) -> None:
    node.state = state()
    node.states.append(node.state)
    node.alerts = (Firing(name="GpuLost", severity="page", state="firing", text="GPU 3 is lost"),)
    text, _ = await fetch(node, serve, "/")
    said = " ".join(read(text).text)
    for part in (
        "GPUs wait for storage 75 % of the time", "0.8 of 1 GPUs", "NVIDIA H100", "starved: storage", "80% sure",
        "grant it", "XID 79", "GpuLost", "mountstats", "node1", "1.2.3",
    ):  # fmt: skip
        assert part in said, part
    assert "Simulated" not in said


async def test_a_picture_is_told_in_words_too(node: Node, serve: Serve) -> None:
    node.state = state()
    node.states.append(node.state)
    text, _ = await fetch(node, serve, "/")
    told = [attributes["aria-label"] for tag, attributes in read(text).tags if attributes.get("role") == "img"]
    assert "starved: storage 75 %, busy: tensor 25 %" in told
    assert "Last 5 minutes: starved: storage 75 %, busy: tensor 25 %" in told


async def test_nothing_comes_from_elsewhere_and_nothing_is_inline(node: Node, serve: Serve) -> None:
    node.state = state(name=HOSTILE)
    node.states.append(node.state)
    node.identity = Identity(version=HOSTILE, hostname=HOSTILE, is_simulated=True, scenario=HOSTILE)
    text, headers = await fetch(node, serve, "/")
    document = read(text)
    assert not {tag for tag, _ in document.tags} & {"style", "img", "iframe", "object", "form", "input"}
    for tag, attributes in document.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "script":
            assert (attributes["src"] or "").startswith("/static/page.js?v=")
        for name in ("href", "src"):
            assert (attributes.get(name) or "/").startswith(("/", "#"))
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
        "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"] == "gpufeed"


async def test_every_file_of_the_page_is_served_and_may_be_kept(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/", headers={"Accept-Encoding": "identity"}) as answer:
        document = read(await answer.text())
    wanted = [one for _, attributes in document.tags for one in (attributes.get("src"), attributes.get("href")) if one]
    files = [one for one in wanted if one.startswith("/static/")]
    assert len(files) == 3
    for file in files:
        async with served.client.get(served.url + file) as answer:
            assert answer.status == 200
            assert "immutable" in answer.headers["Cache-Control"]
    async with served.client.get(served.url + "/static/../app.py") as answer:
        assert answer.status == 404


async def test_every_state_and_cause_has_a_colour_on_the_page(node: Node, serve: Serve) -> None:
    served = await serve(node)
    async with served.client.get(served.url + "/static/page.css") as answer:
        style = gzip.decompress(body) if (body := await answer.read())[:2] == b"\x1f\x8b" else body
    for one, causes in CAUSES.items():
        for cause in causes:
            name = name_of(one, cause)
            assert name.split(" ")[0] == one
            rule = f".{css_class(name)}{{fill:{CAUSE_COLOURS[name]}}}"
            assert rule in style.decode()


@pytest.mark.parametrize("has_names", [True, False])
async def test_jobs_are_named_only_where_it_is_asked_for(node: Node, serve: Serve, has_names: bool) -> None:
    job = JobView(scheduler="slurm", job_id="8134")
    node.state = replace(state(), ownership=Ownership(jobs={KEY: job}))
    node.allow(has_job_names=has_names)
    served = await serve(node)
    for path in ("/", "/api/v1/status"):
        async with served.client.get(served.url + path, headers={"Accept-Encoding": "identity"}) as answer:
            assert ("8134" in await answer.text()) == has_names


async def test_a_simulated_node_is_marked(node: Node, serve: Serve) -> None:
    node.identity = Identity(version="1", hostname="n", is_simulated=True, scenario="gpu_lost")
    text, _ = await fetch(node, serve, "/")
    assert "Simulated node (scenario gpu_lost)" in text


async def test_an_empty_node_has_a_page(node: Node, serve: Serve) -> None:
    text, _ = await fetch(node, serve, "/")
    assert "No GPU is known" in " ".join(read(text).text)


async def test_status_is_the_same_as_json(node: Node, serve: Serve) -> None:
    node.state = state()
    text, headers = await fetch(node, serve, "/api/v1/status")
    assert headers["Content-Type"].startswith("application/json")
    told: dict[str, Any] = json.loads(text)
    (gpu,) = told["gpus"]
    assert (gpu["state"], gpu["cause"], gpu["confidence"]) == ("starved", "storage", 0.8)
    assert sum(one["seconds"] for one in gpu["states"]) == gpu["tracked_seconds"] == 100
    assert [one["state"] for one in told["lanes"]] == ["ok", "stuck"]
    assert [one["input"] for one in told["missing_inputs"]] == ["gpm"]
    assert told["health"][0]["level"] == "failed"


async def test_page_and_api_can_be_switched_off(node: Node, serve: Serve) -> None:
    served = await serve(node, has_ui=False)
    for path, status in (("/", 404), ("/api/v1/status", 404), ("/api/v1/events", 404), ("/metrics", 200)):
        async with served.client.get(served.url + path) as answer:
            assert answer.status == status


async def test_page_and_metrics_can_be_served_apart(node: Node, serve: Serve) -> None:
    served = await serve(node, apart=True)
    for path, here, there in (("/", 404, 200), ("/api/v1/status", 404, 200), ("/metrics", 200, 404),
                              ("/-/reload", 405, 404), ("/-/healthy", 200, 200)):  # fmt: skip
        for url, status in ((served.url, here), (served.ui_url, there)):
            async with served.client.get(url + path) as answer:
                assert answer.status == status, path
