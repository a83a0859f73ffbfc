# SPDX-License-Identifier: Apache-2.0
"""A definition that would break a naming rule cannot be made."""

from dataclasses import replace
from typing import Any

import pytest

from gpufeed.catalogue import index
from gpufeed.catalogue.define import MetricDef, RowProfile

GAUGE = MetricDef(
    name="gpufeed_gpu_power_watts",
    type="gauge",
    unit="watts",
    help="Power of the board.",
    labels=("gpu", "uuid"),
    source="nvmlDeviceGetPowerUsage",
    profile="minimal",
    collector="nvml",
)


def test_a_good_definition_stands() -> None:
    assert GAUGE.name == "gpufeed_gpu_power_watts"


def test_the_standard_names_of_a_process_need_no_prefix() -> None:
    assert replace(GAUGE, name="process_power_watts").name == "process_power_watts"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "node_power_watts"}, "not a lower-case gpufeed_ name"),
        ({"name": "gpufeed_Power_watts"}, "not a lower-case gpufeed_ name"),
        ({"name": "gpufeed_power_watts\n"}, "not a lower-case gpufeed_ name"),
        ({"name": "gpufeed_gpu_power_watts_total"}, "_total stands on counters"),
        ({"type": "counter"}, "_total stands on counters"),
        ({"name": "gpufeed_gpu_power"}, "unit watts wants the suffix _watts"),
        ({"name": "gpufeed_gpu_power_ratio"}, "unit watts wants the suffix _watts"),
        ({"type": "info"}, "type info and unit info go together"),
        ({"labels": ("GPU",)}, "a label is not a lower-case word"),
        ({"labels": ("gpu-index",)}, "a label is not a lower-case word"),
        ({"labels": ("gpu", "instance")}, "a label that Prometheus owns"),
        ({"labels": ("gpu", "le")}, "a label that Prometheus owns"),
        ({"labels": ("gpu", "gpu")}, "a label twice"),
        ({"help": "Power of the board"}, "help is a sentence"),
        ({"type": "histogram"}, "buckets stand on histograms"),
        ({"buckets": (1.0,)}, "buckets stand on histograms"),
        ({"zero_rows": (("0",),)}, "a zero row does not fit the labels"),
        ({"row_profile": RowProfile(label="sensor", kept=(), others="full")}, "a rule about a label"),
        ({"collector_label": "kind"}, "a rule about a label"),
        ({"sheds": "everything"}, "no such group to shed"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_refused_with_its_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        replace(GAUGE, **changes)
    assert str(refused.value).startswith(changes.get("name", GAUGE.name))


def test_all_broken_rules_are_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"a label twice; help is a sentence"):
        replace(GAUGE, labels=("gpu", "gpu"), help="x")


def test_two_definitions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="are one metric family"):
        index([GAUGE, replace(GAUGE, help="Another.")])


def test_two_names_that_openmetrics_cannot_tell_apart_are_refused() -> None:
    gauge = replace(GAUGE, name="gpufeed_reads", unit="count")
    counter = replace(GAUGE, name="gpufeed_reads_total", unit="count", type="counter")
    with pytest.raises(ValueError, match="gpufeed_reads_total and gpufeed_reads are one metric family"):
        index([gauge, counter])
