# SPDX-License-Identifier: Apache-2.0
"""The sections of the page, each by itself, so that only what has changed is sent to who watches."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpufeed.web import words
from gpufeed.web.gpu_rows import gpu_rows
from gpufeed.web.headline import ACTIONS
from gpufeed.web.markup import Markup, join, tag
from gpufeed.web.shape import History, NodeView
from gpufeed.web.timeline import bar, legend, span_s

_LEVEL_MARKS: Final = {"ok": "✓", "degraded": "▲", "failed": "✕", "firing": "✕", "resolved": "✓", "pending": "▲"}

Cell = str | Markup


NOTHING_READ: Final = "Nothing is being read: what is well and what is missing is not known."


def sections(node: NodeView, past: History) -> Mapping[str, Markup]:
    """What stands in the page's sections, by their ids, in their order."""
    return {
        "headline": _headline(node),
        "attention": _attention(node),
        "gpus": _gpus(node, past),
        "storage": _storage(node),
        "fabric": _fabric(node),
        "host": _host(node),
        "events": _events(node),
        "freshness": _freshness(node),
        "missing": _missing(node),
    }


def _headline(node: NodeView) -> Markup:
    head = node.headline
    return tag(
        "div",
        tag("h2", head.text, role="status"),
        tag("p", head.detail) if head.detail else "",
        tag("p", tag("b", head.advice)) if head.advice else "",
        tag("div", bar(node.recent), legend(node.recent), class_="whole") if node.recent else "",
        class_=f"headline tone-{head.tone}",
    )


def _attention(node: NodeView) -> Markup:
    alerts = [
        (level(one.state), tag("b", one.name), one.severity, one.text)
        for one in sorted(node.alerts, key=lambda one: (one.state != "firing", one.name))
    ]
    checks = [
        (level(one.level), one.subject, one.check.replace("_", " "), one.reason, ACTIONS.get(one.action, one.action))
        for one in node.health
    ]
    title = tag("h2", "Needs attention")
    if not alerts and not checks:
        calm = "No alert is on and every check that could be made is well."
        return join(title, tag("p", calm if node.probe_up else NOTHING_READ, class_="calm" if node.probe_up else ""))
    return join(
        title,
        table("Alerts", ("State", "Alert", "Severity", "What it says"), alerts) if alerts else "",
        table("Checks", ("Verdict", "Of", "Check", "Why", "Recommended"), checks) if checks else "",
    )


def _events(node: NodeView) -> Markup:
    rows = [
        (words.moment(one.time_seconds), level(one.to), one.of, one.name.replace("_", " "), one.text)
        for one in node.events
    ]
    receivers = [
        (level(one.level), tag("b", one.receiver), str(one.waiting), str(one.dropped)) for one in node.receivers
    ]
    columns = ("Delivery", "Receiver", "Alerts that wait", "Alerts given up")
    sent = table("Receivers of this node's own alerts", columns, receivers, numbers_from=2) if receivers else ""
    title = tag("h2", "What changed")
    if not rows:
        calm = tag("p", "No alert and no check has changed since this history began.", class_="calm")
        return join(title, calm, sent)
    return join(title, sent, table("Newest changes", ("When", "To", "Of", "Alert or check", "What it said"), rows))


def _gpus(node: NodeView, past: History) -> Markup:
    if not node.gpus:
        return join(tag("h2", "GPUs"), tag("p", "No GPU is known. Why, stands under Not measured."))
    oldest_s = min((slot.time_seconds for gpu in past.gpus for slot in gpu.slots), default=past.time_seconds)
    end_s = (past.time_seconds // past.slot_seconds + 1) * past.slot_seconds
    shown_s = span_s(oldest_s, end_s)
    return join(tag("h2", "GPUs"), gpu_rows(node.gpus, past, (end_s, shown_s)), _axis(shown_s))


def _axis(shown_s: int) -> Markup:
    minutes = shown_s // 60
    step = max(minutes // 3, 1)
    marks = [f"{minutes} min ago", *(str(mark) for mark in range(minutes - step, 0, -step)), "now"]
    return tag("div", tag("div", *(tag("span", mark) for mark in marks), class_="marks"), class_="axis",
               aria_hidden="true")  # fmt: skip


def _storage(node: NodeView) -> Markup:
    rows = [
        (
            level(one.health),
            join(tag("b", one.target), " ", tag("small", one.kind), *_of(one.source)),
            words.flow(one.read_bytes_per_second),
            words.flow(one.write_bytes_per_second),
            words.latency(one.read_latency_seconds),
            words.percent(one.busy),
        )
        for one in node.storage
    ]
    title = tag("h2", "Storage")
    if not rows:
        return join(title, tag("p", "No storage is measured."))
    columns = ("Verdict", "Target", "Read", "Write", "Mean read takes", "Busy")
    return join(title, table("Storage, last ten seconds", columns, rows, numbers_from=2))


def _fabric(node: NodeView) -> Markup:
    rows = [
        (
            level(one.health),
            join(tag("b", f"{one.device}:{one.port}"), " ", tag("small", one.link_layer or "")),
            {True: "active", False: "down", None: words.MISSING}[one.active],
            words.flow(one.receive_bytes_per_second),
            words.flow(one.transmit_bytes_per_second),
            words.flow(one.rate_bytes_per_second),
            join(words.percent(one.used), " ", meter(one.used, f"{one.device} used")),
        )
        for one in node.fabric
    ]
    title = tag("h2", "Fabric")
    if not rows:
        return join(title, tag("p", "No port of a fabric is measured."))
    columns = ("Verdict", "Port", "Link", "Receive", "Transmit", "Can do", "Used")
    return join(title, table("Fabric ports, last ten seconds", columns, rows, numbers_from=3))


def _host(node: NodeView) -> Markup:
    title = tag("h2", "Host")
    if not node.pressure:
        return join(title, tag("p", "Pressure is not measured."))
    rows = [
        (one.resource, join(words.percent(one.waiting), " ", meter(one.waiting, f"{one.resource} waiting")),
         words.percent(one.stalled))
        for one in node.pressure
    ]  # fmt: skip
    columns = ("Resource", "Some task waits", "All tasks wait")
    return join(title, table("Pressure, last ten seconds", columns, rows, numbers_from=1))


def _missing(node: NodeView) -> Markup:
    title = tag("h2", "Not measured")
    if not node.missing_inputs:
        calm = "Every input there is can be read."
        return join(title, tag("p", calm if node.probe_up else NOTHING_READ, class_="calm" if node.probe_up else ""))
    scopes: dict[tuple[str, str, str, str], list[str]] = {}
    for one in node.missing_inputs:
        scopes.setdefault((one.input, one.state, one.reason, one.fix), []).append(one.scope)
    rows = [
        (name, _scopes(node, of), state, reason or words.MISSING, fix or words.MISSING)
        for (name, state, reason, fix), of in sorted(scopes.items(), key=lambda item: (not item[0][3], item[0]))
    ]
    columns = ("Input", "Of", "State", "Why", "What to do")
    return join(title, table("Inputs that cannot be read; first those that can be helped", columns, rows))


def _scopes(node: NodeView, scopes: Sequence[str]) -> str:
    """What eight GPUs lack alike is one line; a GPU is called by its number."""
    indexes = {gpu.uuid: gpu.index for gpu in node.gpus}
    gpus = sorted(indexes[scope] for scope in scopes if scope in indexes)
    others = [scope or "node" for scope in scopes if scope not in indexes]
    if gpus and len(gpus) == len(indexes) > 1:
        others.insert(0, f"all {len(gpus)} GPUs")
    elif gpus:
        others.insert(0, "GPU " + ", ".join(map(str, gpus)))
    return ", ".join(others)


def _freshness(node: NodeView) -> Markup:
    collectors = [
        (level("ok" if one.successful else "degraded"), one.collector, words.age(one.age_seconds), str(one.errors))
        for one in node.collectors
    ]
    stuck = [
        (level("failed" if one.state == "stuck" else "degraded"), one.lane, one.collector,
         words.age(one.busy_seconds), one.call)
        for one in node.lanes
        if one.state != "ok"
    ]  # fmt: skip
    columns = ("Verdict", "Lane", "Collector", "For", "Call")
    return join(
        tag("h2", "Freshness"),
        table("Calls that have not come back", columns, stuck) if stuck else "",
        table("Collectors", ("Last read", "Collector", "Last good read", "Errors"), collectors, numbers_from=2),
        tag("p", f"{len(node.lanes)} lanes read this node; each can hang by itself.", class_="calm"),
    )


def level(name: str) -> Markup:
    """A mark and a word: never a colour alone."""
    mark = tag("span", _LEVEL_MARKS.get(name, ""), aria_hidden="true")
    return tag("span", mark, " ", name, class_=f"level level-{name}")


def meter(share: float | None, name: str) -> Markup:
    """A small bar beside a number."""
    if share is None:
        return join()
    filled = tag("rect", width=f"{min(max(share, 0.0), 1.0) * 60:.1f}", height="8")
    return tag("svg", filled, class_="meter", viewBox="0 0 60 8", role="img", aria_label=name)


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], numbers_from: int = 99) -> Markup:
    """A table that scrolls by itself where it is too wide; reachable by keyboard then."""
    head = tag("tr", *(_head(one, is_number=at >= numbers_from) for at, one in enumerate(columns)), role="row")
    body = (
        tag("tr", *(_cell(one, columns[at], is_number=at >= numbers_from) for at, one in enumerate(row)), role="row")
        for row in rows
    )
    is_wordy = numbers_from >= len(columns)
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), role="table",
                class_="wordy" if is_wordy else None)  # fmt: skip
    return tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def _head(text: str, *, is_number: bool) -> Markup:
    return tag("th", text, scope="col", role="columnheader", class_="number" if is_number else None)


def _cell(text: Cell, column: str, *, is_number: bool) -> Markup:
    """Its column's name goes with it: on a narrow screen words stand below each other."""
    return tag("td", text, role="cell", data_label=column, class_="number" if is_number else None)


def _of(source: str | None) -> tuple[Markup, ...]:
    return (join(" ", tag("small", source)),) if source else ()
