# SPDX-License-Identifier: Apache-2.0
"""Every alert has a runbook, and every runbook an alert."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import ACTIONS

RULES = Path(__file__).parents[2] / "rules"
RUNBOOKS = RULES / "runbooks"
ASKED = ("**What it means.**", "**How sure.**", "**First**", "**A false alarm**", "**Escalate**")


def rules_of_the_cluster() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((RULES / "cluster.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def test_alerts_and_runbooks_are_the_same() -> None:
    names = {condition.name for condition in CONDITIONS} | {rule["alert"] for rule in rules_of_the_cluster()}
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == names


@pytest.mark.parametrize("rule", rules_of_the_cluster(), ids=lambda rule: rule["alert"])
def test_an_alert_of_the_cluster_leads_to_its_runbook_and_says_how_grave_it_is(rule: dict[str, Any]) -> None:
    assert rule["annotations"]["runbook"] == f"rules/runbooks/{rule['alert']}.md"
    assert {"summary", "description"} <= rule["annotations"].keys()
    assert rule["annotations"]["description"].endswith((".", "?"))
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    assert rule["labels"]["action"] in ACTIONS


@pytest.mark.parametrize("path", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_a_runbook_answers_what_a_person_asks_at_night(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.stem}\n")
    missing = [question for question in ASKED if question.removesuffix("**").rstrip(".") not in text]
    assert not missing


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_a_runbook_names_what_its_alert_silences(condition: object) -> None:
    assert isinstance(condition, type(CONDITIONS[0]))
    text = (RUNBOOKS / f"{condition.name}.md").read_text(encoding="utf-8")
    for inhibit in condition.inhibits:
        assert all(target in text for target in inhibit.targets)
