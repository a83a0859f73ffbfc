# SPDX-License-Identifier: Apache-2.0
"""Shares of the time in which the GPUs of a node had work: what conditions on states are made of."""

from typing import Final

from gpufeed.alerting.define import ExampleSeries, Matcher, Select
from gpufeed.catalogue.define import SLICE_LABELS

_STATE_SECONDS: Final = "gpufeed_gpu_state_seconds_total"


def shares(*matchers: Matcher) -> Select:
    """Seconds of all GPUs of the node in the states meant."""
    return Select(metric=_STATE_SECONDS, matchers=matchers, without=(*SLICE_LABELS, "state", "cause"))


WORKING: Final = shares(Matcher("state", "!~", "idle_held|idle_free|fault"))
"""All time in which somebody asks what a GPU waits for."""


def state_seconds(state: str, cause: str, values: str) -> ExampleSeries:
    """The seconds of one GPU in one state."""
    labels = (("gpu", "0"), ("uuid", "GPU-5a"), ("state", state), ("cause", cause))
    return ExampleSeries(metric=_STATE_SECONDS, labels=labels, values=values)
