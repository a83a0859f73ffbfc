# SPDX-License-Identifier: Apache-2.0
"""PURE. The one table of conditions, and what a site makes of it.

From it derive rules/node.yml, the alerts of the node itself, the unit tests of the rules and the list of runbooks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpufeed.alerting.define import Condition, Evaluator, Matcher, Ratio, Select, Severity
from gpufeed.alerting.table import cooling, feeding, itself, links, memory, network, presence, xid

__all__ = ["CONDITIONS", "Condition", "Matcher", "Override", "Ratio", "Select", "for_site", "index"]


_GRAVITY: Final[tuple[Severity, ...]] = ("info", "ticket", "page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What a site changes about a condition; None leaves it."""

    threshold: float | None = None
    for_s: int | None = None
    is_enabled: bool | None = None
    evaluator: Evaluator | None = None
    severity: Severity | None = None


def index(conditions: Iterable[Condition]) -> Mapping[str, Condition]:
    """Conditions by name. Raises ValueError where two share a name, or one inhibits what does not exist."""
    by_name: dict[str, Condition] = {}
    for condition in conditions:
        if condition.name in by_name:
            raise ValueError(f"{condition.name} stands twice")
        by_name[condition.name] = condition
    for condition in by_name.values():
        for target in (target for inhibit in condition.inhibits for target in inhibit.targets):
            if target not in by_name:
                raise ValueError(f"{condition.name} inhibits {target}, which does not exist")
    return by_name


_TOPICS: Final = (presence, xid, memory, cooling, links, network, feeding, itself)

CONDITIONS: Final = tuple(index(one for topic in _TOPICS for one in topic.CONDITIONS).values())
"""Every condition that ships."""


def for_site(
    overrides: Mapping[str, Override], *, events: Evaluator, conditions: tuple[Condition, ...] = CONDITIONS
) -> tuple[Condition, ...]:
    """The conditions in force at a site. `events` is who evaluates those that are events, where the site does not say.

    Raises ValueError, with every problem, where an override names no condition or does not fit it.
    """
    known = {condition.name for condition in conditions}
    problems = [f"{name}: no such alert" for name in overrides if name not in known]
    changed = []
    for condition in conditions:
        override = overrides.get(condition.name, Override())
        try:
            changed.append(overridden(condition, override, events=events))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(
        condition for condition in changed if overrides.get(condition.name, Override()).is_enabled is not False
    )


def overridden(condition: Condition, override: Override, *, events: Evaluator) -> Condition:
    """A condition as a site changed it. Raises ValueError where that does not fit."""
    default: Evaluator = events if condition.is_event else condition.evaluator
    return replace(
        condition if override.severity is None else _at_most(condition, override.severity),
        threshold=condition.threshold if override.threshold is None else override.threshold,
        for_s=condition.for_s if override.for_s is None else override.for_s,
        evaluator=default if override.evaluator is None else override.evaluator,
    )


def _at_most(condition: Condition, severity: Severity) -> Condition:
    """With another severity; where nobody uses the thing it is no graver than that."""
    idle = condition.severity_idle
    if idle is None or _GRAVITY.index(idle) >= _GRAVITY.index(severity):
        return replace(condition, severity=severity, severity_idle=None, in_use=None)
    return replace(condition, severity=severity)
