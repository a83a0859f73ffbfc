# SPDX-License-Identifier: Apache-2.0
"""`gpufeed top`: the node as it is now, again every second. Needs the extra `top` (rich)."""

import argparse
import json
import os
import time
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from gpufeed.commands.orders import EXIT_BAD_USE, EXIT_OK, EXIT_UNREACHABLE, failed, socket_of
from gpufeed.config.web import DEFAULT_PORT
from gpufeed.control_client import CommandRefusedError, DaemonUnreachableError, ask
from gpufeed.explain.numbers import percent, quantity

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text
except ImportError:  # the extra is not installed: said when the command is used
    Live = None  # type: ignore[assignment,misc]

NAME: Final = "top"
_EVERY_S: Final = 1.0
_WITHIN_S: Final = 5
_MAX_BYTES: Final = 8 * 1024 * 1024
_TONES: Final[Mapping[str, str]] = {
    "busy": "green", "communicating": "cyan", "starved": "yellow", "throttled": "magenta", "fault": "bold red",
    "idle_held": "dim", "idle_free": "dim", "unknown": "dim",
}  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 after Ctrl-C, 2 without the extra, 3 when no daemon answers. Raises ConfigError."""
    if Live is None:
        return failed(NAME, "needs rich: pip install 'gpufeed[top]'", EXIT_BAD_USE)
    try:
        if arguments.once:
            Console().print(drawn(_status(arguments)))
            return EXIT_OK
        with Live(drawn(_status(arguments)), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(_EVERY_S)
                live.update(drawn(_status(arguments)), refresh=True)
    except (OSError, ValueError, CommandRefusedError, DaemonUnreachableError) as error:
        return failed(NAME, f"{error}", EXIT_UNREACHABLE)


def _status(arguments: argparse.Namespace) -> dict[str, Any]:
    """Raises OSError, ValueError, DaemonUnreachableError."""
    if arguments.url is None and os.access(path := socket_of(arguments), os.W_OK):
        found: dict[str, Any] = ask(path, "status")
        return found
    url = arguments.url or f"http://127.0.0.1:{DEFAULT_PORT}"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url}: expected http://… or https://…")
    with urllib.request.urlopen(f"{url.rstrip('/')}/api/v1/status", timeout=_WITHIN_S) as answer:  # noqa: S310 looked at
        fetched: dict[str, Any] = json.loads(answer.read(_MAX_BYTES))
        return fetched


def drawn(node: Mapping[str, Any]) -> Any:  # noqa: ANN401 what rich can print
    """One screen."""
    simulated = f"  (simulated: {node['scenario']}; nothing of it exists)" if node["simulated"] else ""
    when = time.strftime("%H:%M:%S UTC", time.gmtime(node["time_seconds"]))
    head = node["headline"]
    attention = [Text(f"{one['state']}: {one['name']}  {one['text']}", style="bold red") for one in node["alerts"]]
    attention += [Text(f"{one['level']}: {one['subject']}  {one['reason']}") for one in node["health"]]
    return Group(
        Text(f"gpufeed {node['version']}  {node['hostname']}  {when}{simulated}", style="dim"),
        Text(head["text"], style="bold"),
        Text(" ".join(part for part in (head["detail"], head["advice"]) if part)),
        _gpus(node["gpus"]),
        *attention[:8],
    )


def _gpus(gpus: list[dict[str, Any]]) -> Any:  # noqa: ANN401 a table of rich
    table = Table(box=None, pad_edge=False)
    for name in ("GPU", "state", "last 5 min", "util", "memory", "power", "temp"):
        table.add_column(name, justify="left" if name in {"state", "last 5 min"} else "right", no_wrap=True)
    for gpu in gpus:
        state = f"{gpu['state']} {gpu['cause']}".replace("_", " ").strip()
        table.add_row(
            str(gpu["index"]),
            Text(state, style=_TONES.get(gpu["state"], "")),
            _recent(gpu["recent"]),
            percent(gpu["utilization"]) if gpu["utilization"] is not None else "–",
            quantity(gpu["memory_used_bytes"] / gpu["memory_total_bytes"], "ratio") if _has_memory(gpu) else "–",
            f"{gpu['power_watts']:.0f} W" if gpu["power_watts"] is not None else "–",
            f"{gpu['temperature_celsius']:.0f} °C" if gpu["temperature_celsius"] is not None else "–",
        )
    return table


def _has_memory(gpu: Mapping[str, Any]) -> bool:
    return gpu["memory_used_bytes"] is not None and bool(gpu["memory_total_bytes"])


def _recent(parts: list[dict[str, Any]]) -> Any:  # noqa: ANN401 a text of rich
    total_s = sum(one["seconds"] for one in parts)
    text = Text()
    for one in parts[:3]:
        name = f"{one['state']} {one['cause']}".replace("_", " ").strip()
        text.append(f"{name} {percent(one['seconds'] / total_s)}  ", style=_TONES.get(one["state"], ""))
    return text
