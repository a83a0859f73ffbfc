# SPDX-License-Identifier: Apache-2.0
"""The conditions as a rules file for Prometheus, written so that a person can read and review it."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gpufeed.alerting.define import Condition, Severity
from gpufeed.alerting.expression import duration, expression
from gpufeed.alerting.text import template
from gpufeed.catalogue import METRICS
from gpufeed.catalogue.define import PROFILES, Profile

_HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# Alerts of one node, printed by `gpufeed rules` from its table of conditions: change them there, or by
# alerting.thresholds in the site's configuration. gpufeed_rules_info{hash} of these rules: """


def rules_yaml(
    conditions: Iterable[Condition],
    *,
    profile: Profile = "default",
    drop: frozenset[str] = frozenset(),
    runbook_base_url: str | None = None,
) -> str:
    """A rules file with every condition that is Prometheus' to evaluate and has its series; the others as comments."""
    rules, omitted = [], []
    for condition in conditions:
        reason = _why_omitted(condition, profile, drop)
        if reason:
            omitted.append(f"# Left out: {condition.name}: {reason}.")
        else:
            rules += [
                line
                for severity, used in condition.severities()
                for line in _rule(condition, severity, used=used, base_url=runbook_base_url)
            ]
    body = "\n".join(["groups:", "  - name: gpufeed-node", "    rules:" if rules else "    rules: []", *rules])
    return "\n".join([_HEAD + _hash(body), *omitted, "", body, ""])


def fingerprint(rules: str) -> str:
    """The hash in the head of a rules file: value of `hash` in gpufeed_rules_info. Equal hashes, equal rules."""
    return rules.partition(_HEAD)[2].partition("\n")[0]


def alert_labels(condition: Condition, severity: Severity) -> Mapping[str, str]:
    """Labels that the rule itself puts on its alerts."""
    return {"severity": severity, "layer": condition.layer, "action": condition.action}


def runbook(condition: Condition, base_url: str | None) -> tuple[str, str]:
    """Name and value of the annotation that leads to the runbook: a link, or the file in the repository."""
    if condition.runbook is not None:
        return ("runbook_url" if "://" in condition.runbook else "runbook"), condition.runbook
    if base_url is None:
        return "runbook", f"rules/runbooks/{condition.name}.md"
    return "runbook_url", f"{base_url.rstrip('/')}/{condition.name}.md"


def _why_omitted(condition: Condition, profile: Profile, drop: frozenset[str]) -> str:
    if condition.evaluator == "node":
        return "evaluated on the node itself"
    for metric in condition.metrics:
        if metric in drop:
            return f"the site drops {metric}"
        if PROFILES.index(METRICS[metric].profile) > PROFILES.index(profile):
            return f"profile {profile} has no {metric}"
    return ""


def _rule(condition: Condition, severity: Severity, *, used: bool | None, base_url: str | None) -> Iterator[str]:
    yield f"      - alert: {condition.name}"
    yield "        expr: |-"
    yield from (f"          {line}" for line in expression(condition, used=used).splitlines())
    if condition.for_s:
        yield f"        for: {duration(condition.for_s)}"
    if condition.keep_firing_for_s:
        yield f"        keep_firing_for: {duration(condition.keep_firing_for_s)}"
    yield "        labels:"
    yield from (f"          {name}: {value}" for name, value in alert_labels(condition, severity).items())
    if "gpu" in condition.selects[0].left:
        yield '          gpu: ""  # an index may change: it stands in the text'
    yield "        annotations:"
    yield f"          summary: {_quoted(template(condition.summary))}"
    yield f"          description: {_quoted(template(condition.description))}"
    name, value = runbook(condition, base_url)
    yield f"          {name}: {value if condition.runbook is None else _quoted(value)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:12]
