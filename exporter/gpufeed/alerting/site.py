# SPDX-License-Identifier: Apache-2.0
"""The conditions in force under a site's configuration, and the rules file that goes with it."""

from typing import Final

from gpufeed.alerting.conditions import CONDITIONS, Condition, Override, for_site
from gpufeed.alerting.define import Evaluator
from gpufeed.alerting.prometheus import rules_yaml
from gpufeed.config.alerting import Alerting, Threshold
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError

CAN_SEND: Final = True
"""This version sends alerts itself, where it is told to whom."""


def conditions(alerting: Alerting) -> tuple[Condition, ...]:
    """The conditions in force. Raises ConfigError with every problem."""
    can_send = CAN_SEND and bool(alerting.alertmanagers or alerting.webhooks)
    overrides = {name: _override(threshold) for name, threshold in alerting.thresholds.items()}
    unsendable = [
        name for name, override in overrides.items() if override.evaluator in {"node", "both"} and not can_send
    ]
    problems = [
        f"alerting.thresholds.{name}.evaluator: there is neither an alertmanager nor a webhook to send to"
        for name in unsendable
    ]
    try:
        found = for_site(overrides, events=_events(alerting), conditions=CONDITIONS)
    except ValueError as error:
        problems += [f"alerting.thresholds.{line}" for line in str(error).splitlines()]
    if problems:
        raise ConfigError(tuple(problems))
    return found


def rules(config: Config) -> str:
    """The rules file for Prometheus. Raises ConfigError."""
    return rules_yaml(
        conditions(config.alerting),
        profile=config.exposition.profile,
        drop=frozenset(config.exposition.drop),
        runbook_base_url=config.alerting.runbook_base_url,
    )


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
    )
