# SPDX-License-Identifier: Apache-2.0
"""Series of many nodes, and what Prometheus' own rules engine makes of them."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

RULES: Final = Path(__file__).parents[2] / "rules"
MINUTE_S: Final = 60

Series = tuple[str, str]
"""A series with its labels, and its values a minute apart, in the notation of promtool."""


def of_node(node: int, metric: str, values: str, **labels: str) -> Series:
    """A series of one node; `metric` without the prefix."""
    said = {"cluster": "c", "job": "gpufeed", "instance": f"n{node}:9937", **labels}
    inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in said.items())
    name = metric if metric == "up" else f"gpufeed_{metric}"
    return f"{name}{{{inside}}}", values


def states(node: int, uuid: str = "GPU-a", **pairs: str) -> list[Series]:
    """Seconds of one GPU by `state__cause`."""
    return [
        of_node(
            node, "gpu_state_seconds_total", values,
            gpu="0", uuid=uuid, state=pair.partition("__")[0], cause=pair.partition("__")[2],
        )
        for pair, values in pairs.items()
    ]  # fmt: skip


def alive(node: int, up: str = "1x5000") -> list[Series]:
    """A node that answers while `up` is 1."""
    there = " ".join(
        word if word.startswith("1") else word.replace("0", "stale", 1).replace("stalex", "_x") for word in up.split()
    )
    return [of_node(node, "up", up), of_node(node, "build_info", there)]  # fmt: skip


def evaluated(
    tmp_path: Path,
    series: Iterable[Series],
    looks: Mapping[str, Sequence[tuple[str, float]]],
    at_s: int,
    rules: Sequence[str] = ("node.yml", "recording.yml", "cluster.yml"),
) -> str:
    """What promtool says against these rules when each expression must have these samples; nothing: all is so."""
    test = {
        "rule_files": [str(RULES / name) for name in rules],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series],
                "promql_expr_test": [
                    {
                        "expr": expr,
                        "eval_time": f"{at_s}s",
                        "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
                    }
                    for expr, samples in looks.items()
                ],
            }
        ],
    }
    path = tmp_path / "fleet.yml"
    path.write_text(json.dumps(test), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", path], check=False, capture_output=True, text=True, timeout=240)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def firing(tmp_path: Path, series: Iterable[Series], at_s: int, **alerts: tuple[str, int]) -> str:
    """What promtool says when exactly these alerts fire: by name, severity and how many."""
    samples = [
        (f'{{alertname="{name}", severity="{severity}"}}', float(count)) for name, (severity, count) in alerts.items()
    ]
    return evaluated(tmp_path, series, {'count by (alertname, severity) (ALERTS{alertstate="firing"})': samples}, at_s)
