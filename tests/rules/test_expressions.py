# SPDX-License-Identifier: Apache-2.0
"""Every metric and label that a hand-written rule reads is in the catalogue, in the default profile."""

import re
from collections.abc import Iterator
from typing import Any, Final

import promql_parser
import pytest
import yaml

from gpufeed.catalogue import METRICS
from rules.fleet import RULES

PROMETHEUS_OWN: Final = {"instance", "job", "cluster"}


def rules() -> Iterator[dict[str, Any]]:
    for name in ("recording.yml", "cluster.yml"):
        (group,) = yaml.safe_load((RULES / name).read_text(encoding="utf-8"))["groups"]
        yield from group["rules"]


RECORDED: Final = {rule["record"] for rule in rules() if "record" in rule}


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.get("record") or rule["alert"])
def test_a_rule_reads_only_what_there_is(rule: dict[str, Any]) -> None:
    expr = rule["expr"]
    promql_parser.parse(expr)
    for name, inside in re.findall(r"\b((?:gpufeed[_:][a-z0-9_:]+)|up)\b(?:\{([^}]*)\})?", expr):
        if name in RECORDED or name == "up":
            continue
        assert name in METRICS, name
        assert METRICS[name].profile in {"minimal", "default"}, name
        labels = {matcher.group(1) for matcher in re.finditer(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"[^\"]*\"", inside)}
        assert labels <= {*METRICS[name].labels, *PROMETHEUS_OWN}, (name, labels)
