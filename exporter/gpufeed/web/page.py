# SPDX-License-Identifier: Apache-2.0
"""The status page: plain HTML without scripts or anything from elsewhere; what it shows stands in `view`."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from gpufeed.units import MEBIBYTE
from gpufeed.web.markup import Markup, join, tag, void
from gpufeed.web.style import STYLE
from gpufeed.web.view import GpuView, NodeView

_REFRESH_S: Final = "5"
_BAR_WIDTH: Final = 320
_BAR_HEIGHT: Final = 14
_MIN_SHARE: Final = 0.002

POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
"""Content-Security-Policy: nothing but the one style sheet inside the page."""


def page(node: NodeView, telemetry_path: str) -> str:
    """The whole document."""
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", http_equiv="refresh", content=_REFRESH_S),
        tag("title", f"gpufeed · {node.hostname}"),
        tag("style", Markup(STYLE)),
    )
    body = tag("body", _header(node, telemetry_path), tag("main", *_sections(node)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(node: NodeView, telemetry_path: str) -> Markup:
    banner = join()
    if node.simulated:
        text = f"Simulated node (scenario {node.scenario}). Nothing on this page exists."
        banner = tag("p", text, class_="banner", role="note")
    links = tag(
        "nav",
        tag("a", "Metrics", href=telemetry_path),
        " · ",
        tag("a", "Status as JSON", href="/api/v1/status"),
        aria_label="Other views",
    )
    return tag("header", banner, tag("h1", f"gpufeed · {node.hostname}"), links)


def _sections(node: NodeView) -> Iterable[Markup]:
    if not node.probe_up:
        yield tag("p", "The probe is down: nothing is being read. A new one is being started.", class_="bad")
    yield _section("Alerts", ("Alert", "Severity", "State", ""), [tuple(alert_cells) for alert_cells in _alerts(node)])
    yield tag("section", tag("h2", "GPUs"), _gpus(node.gpus))
    yield _section(
        "Not well",
        ("What", "Check", "Level", "Reason", "Action"),
        [(one.subject, one.check, one.level, one.reason, one.action) for one in node.health],
    )
    yield _section(
        "Not measured",
        ("Input", "Of", "State", "Why", "What to do"),
        [(one.input, one.scope, one.state, one.reason, one.fix) for one in node.missing_inputs],
    )
    lanes = [
        (one.lane, one.collector, one.state, f"{one.busy_seconds:.1f} s" if one.state != "ok" else "", one.call)
        for one in node.lanes
    ]
    yield _section("Lanes of the probe", ("Lane", "Collector", "State", "Call since", "Call"), lanes)
    yield tag("footer", f"gpufeed {node.version}. States add up to all of a GPU's time since gpufeed saw it first.")


def _alerts(node: NodeView) -> Iterable[tuple[str, ...]]:
    return ((one.name, one.severity, one.state, one.text) for one in node.alerts)


def _section(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Markup:
    if not rows:
        return join()
    return tag("section", tag("h2", title), _table(columns, [tuple(tag("td", cell) for cell in row) for row in rows]))


def _table(columns: Sequence[str], rows: Sequence[Sequence[Markup]]) -> Markup:
    head = tag("thead", tag("tr", *(tag("th", column, scope="col") for column in columns)))
    return tag("div", tag("table", head, tag("tbody", *(tag("tr", *row) for row in rows))), class_="wide")


def _gpus(gpus: Sequence[GpuView]) -> Markup:
    if not gpus:
        return tag("p", "No GPU is known. Why, stands under Not measured.")
    columns = ("GPU", "State now", "Where its time went", "Use", "Memory", "Power", "Temp.")
    return join(_table(columns, [_gpu_row(gpu) for gpu in gpus]), _legend(gpus))


def _gpu_row(gpu: GpuView) -> tuple[Markup, ...]:
    name = join(tag("b", str(gpu.index)), " ", gpu.name or "", void("br"), tag("small", gpu.uuid))
    return (
        tag("td", name),
        tag("td", _now(gpu)),
        tag("td", _bar(gpu)),
        tag("td", _measured(gpu.utilization, 100, "%"), class_="number"),
        tag("td", _memory(gpu), class_="number"),
        tag("td", _measured(gpu.power_watts, 1, " W"), class_="number"),
        tag("td", _measured(gpu.temperature_celsius, 1, " °C"), class_="number"),
    )


def _now(gpu: GpuView) -> Markup:
    sure = f", {gpu.confidence:.0%} sure" if gpu.confidence is not None else ""
    because = "; ".join(f"{one.input} {one.value:.4g} {one.unit}" for one in gpu.evidence)
    notes = [text for text in (gpu.detail, because) if text]
    label = tag("span", _label(gpu.state, gpu.cause), class_=f"state {gpu.state}")
    return join(label, sure, *(join(void("br"), tag("small", note)) for note in notes))


def _bar(gpu: GpuView) -> Markup:
    shares = [(one, one.seconds / gpu.tracked_seconds) for one in gpu.states if gpu.tracked_seconds > 0]
    spoken = ", ".join(f"{_label(one.state, one.cause)} {share:.0%}" for one, share in shares)
    parts, left = [], 0.0
    for one, share in shares:
        if share < _MIN_SHARE:
            continue
        title = tag("title", f"{_label(one.state, one.cause)}: {one.seconds:.0f} s, {share:.1%}")
        geometry = {"x": f"{left:.1f}", "width": f"{share * _BAR_WIDTH:.1f}", "height": str(_BAR_HEIGHT)}
        parts.append(tag("rect", title, class_=one.state, **geometry))
        left += share * _BAR_WIDTH
    box = f"0 0 {_BAR_WIDTH} {_BAR_HEIGHT}"
    size = {"width": str(_BAR_WIDTH), "height": str(_BAR_HEIGHT), "viewBox": box}
    picture = tag("svg", *parts, role="img", aria_label=spoken or "nothing decided yet", **size)
    return join(picture, void("br"), tag("small", spoken))


def _legend(gpus: Sequence[GpuView]) -> Markup:
    names = sorted({one.state for gpu in gpus for one in gpu.states})
    items = (tag("li", tag("span", name, class_=f"state {name}")) for name in names)
    return tag("ul", *items, class_="legend", aria_label="States")


def _label(state: str, cause: str) -> str:
    return f"{state}: {cause}" if cause else state


def _measured(value: float | None, factor: float, unit: str) -> str:
    return f"{value * factor:.0f}{unit}" if value is not None else "–"


def _memory(gpu: GpuView) -> str:
    if gpu.memory_used_bytes is None or gpu.memory_total_bytes is None:
        return "–"
    gibibyte = 1024 * MEBIBYTE
    return f"{gpu.memory_used_bytes / gibibyte:.0f} / {gpu.memory_total_bytes / gibibyte:.0f} GiB"
