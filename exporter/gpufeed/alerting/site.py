# SPDX-License-Identifier: Apache-2.0
"""The conditions in force under a site's configuration, and the rules file that goes with it."""

from collections.abc import Iterator
from typing import Final

from gpufeed.alerting.conditions import CONDITIONS, Condition, Override, for_site, overridden
from gpufeed.alerting.define import Evaluator
from gpufeed.alerting.prometheus import rules_yaml
from gpufeed.alerting.site_conditions import built
from gpufeed.config.alerting import Alerting, Threshold
from gpufeed.config.decode import suggest
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError

_KNOWN: Final = {condition.name: condition for condition in CONDITIONS}


def conditions(alerting: Alerting) -> tuple[Condition, ...]:
    """The conditions in force: those that ship as the site changed them, and its own. Raises ConfigError."""
    found = tuple(f"{key}: {text}" for key, text in problems(alerting))
    if found:
        raise ConfigError(found)
    overrides = {name: _override(threshold) for name, threshold in alerting.thresholds.items()}
    own = [one for given in alerting.conditions if isinstance(one := built(given), Condition)]
    return (*for_site(overrides, events=_events(alerting), conditions=CONDITIONS), *own)


def problems(alerting: Alerting) -> Iterator[tuple[str, str]]:
    """Everything that is wrong with a site's alerts: dotted keys, and what is wrong with them."""
    for name, threshold in alerting.thresholds.items():
        key = f"alerting.thresholds.{name}"
        if name not in _KNOWN:
            yield key, f"no such alert{suggest(name, tuple(_KNOWN))}"
            continue
        if threshold.evaluator in {"node", "both"} and not _can_send(alerting):
            yield f"{key}.evaluator", NOBODY_TO_SEND_TO
        try:
            overridden(_KNOWN[name], _override(threshold), events=_events(alerting))
        except ValueError as error:
            yield key, str(error).removeprefix(f"{name}: ")
    yield from _own_problems(alerting)


def rules(config: Config) -> str:
    """The rules file for Prometheus. Raises ConfigError."""
    return rules_yaml(
        conditions(config.alerting),
        profile=config.exposition.profile,
        drop=frozenset(config.exposition.drop),
        runbook_base_url=config.alerting.runbook_base_url,
    )


NOBODY_TO_SEND_TO: Final = "there is neither an alertmanager nor a webhook to send to"


def _own_problems(alerting: Alerting) -> Iterator[tuple[str, str]]:
    names = set(_KNOWN)
    for index, given in enumerate(alerting.conditions):
        key = f"alerting.conditions.{index}"
        if given.alert in names:
            yield f"{key}.alert", f"there is an alert {given.alert} already"
        names.add(given.alert)
        if given.evaluator in {"node", "both"} and not _can_send(alerting):
            yield f"{key}.evaluator", NOBODY_TO_SEND_TO
        one = built(given)
        if not isinstance(one, Condition):
            yield from ((f"{key}.{part}".rstrip("."), text) for part, text in one)


def _can_send(alerting: Alerting) -> bool:
    return bool(alerting.alertmanagers or alerting.webhooks)


def _events(alerting: Alerting) -> Evaluator:
    """An Alertmanager gets them from the node alone; a webhook stands beside Prometheus, which keeps them too."""
    if alerting.alertmanagers:
        return "node"
    return "both" if alerting.webhooks else "prometheus"


def _override(threshold: Threshold) -> Override:
    return Override(
        threshold=threshold.threshold,
        for_s=None if threshold.for_ is None else round(threshold.for_.seconds),
        is_enabled=threshold.enabled,
        evaluator=threshold.evaluator,
        severity=threshold.severity,
    )
