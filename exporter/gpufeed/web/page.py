# SPDX-License-Identifier: Apache-2.0
"""The status page: whole without scripts, which only keep it fresh; nothing from elsewhere, nothing inline."""

import time
from collections.abc import Mapping
from typing import Final

from gpufeed.web.assets import ICON, SCRIPT, STYLE
from gpufeed.web.markup import Markup, join, tag, void
from gpufeed.web.shape import NodeView

_REFRESH_S: Final = "10"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: our own files, and nothing inside the page runs or styles."""


def page(node: NodeView, parts: Mapping[str, Markup], telemetry_path: str | None) -> str:
    """The whole document. `telemetry_path` is None where the metrics are served elsewhere."""
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", name="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name="color-scheme", content="light dark"),
        tag("noscript", void("meta", http_equiv="refresh", content=_REFRESH_S)),
        tag("title", f"{node.hostname} · gpufeed"),
        void("link", rel="icon", type="image/svg+xml", href=ICON.url),
        void("link", rel="stylesheet", href=STYLE.url),
        tag("script", src=SCRIPT.url, defer=""),
    )
    shown = (tag("section", part, id=name, aria_label=name) for name, part in parts.items())
    body = tag("body", tag("a", "Skip to the GPUs", href="#gpus", class_="skip"), _header(node),
               tag("main", *shown), _footer(node, telemetry_path), data_version=node.version)  # fmt: skip
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(node: NodeView) -> Markup:
    banner = join()
    if node.simulated:
        text = f"Simulated node (scenario {node.scenario}). Nothing on this page exists."
        banner = tag("p", text, class_="banner", role="note")
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(node.time_seconds))
    fresh = tag("p", tag("span", f"as of {when}", id="when"), class_="when")
    return tag("header", banner, tag("div", tag("h1", node.hostname), fresh, class_="top"))


def _footer(node: NodeView, telemetry_path: str | None) -> Markup:
    links = [
        *([tag("a", "Metrics", href=telemetry_path), " · "] if telemetry_path else []),
        tag("a", "Status", href="/api/v1/status"),
        " · ",
        tag("a", "History", href="/api/v1/history"),
        " · ",
        tag("a", "OpenAPI", href="/api/v1/openapi.json"),
    ]
    said = "All of a GPU's time is in exactly one state; what cannot be told is unknown."
    return tag("footer", tag("nav", *links, aria_label="Other views"), tag("p", f"gpufeed {node.version}. {said}"))
