# SPDX-License-Identifier: Apache-2.0
"""Every alert has a runbook, and every runbook an alert."""

from pathlib import Path

import pytest

from gpufeed.alerting.conditions import CONDITIONS

RUNBOOKS = Path(__file__).parents[2] / "rules" / "runbooks"
ASKED = ("**What it means.**", "**How sure.**", "**First**", "**A false alarm**", "**Escalate**")


def test_alerts_and_runbooks_are_the_same() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == {condition.name for condition in CONDITIONS}


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
