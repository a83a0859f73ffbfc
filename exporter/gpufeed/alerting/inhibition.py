# SPDX-License-Identifier: Apache-2.0
"""What silences what, as inhibit_rules for Alertmanager: one cause is one alert.

A rule matches on `instance` (over nodes: on `cluster`) and asks that every label it compares is there: two alerts that
both lack a label would count as equal, and one node's lost GPU would silence another's.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.define import Condition, Inhibit

_HEAD: Final = """\
# SPDX-License-Identifier: Apache-2.0
# inhibit_rules for Alertmanager, written by `make format` from the table of conditions: copy them into its file.
# Tried on a real Alertmanager with two nodes: tests/e2e/test_inhibition.py.
inhibit_rules:"""

ALWAYS_HEARD: Final = ("RemapFailure", "SramThreshold", "MemoryWornOut", "XidRepeatedFatal")
"""They say that a board has to be replaced, whatever else is wrong."""
OF_CLUSTER: Final = (
    (
        "ClusterStarvationFast",
        Inhibit(targets=("ClusterStarvationSlow", "ClusterStarvationBudget"), equal=("cluster",)),
    ),
    ("ClusterStarvationSlow", Inhibit(targets=("ClusterStarvationBudget",), equal=("cluster",))),
    ("ClusterGpuAvailabilityCritical", Inhibit(targets=("ClusterGpuAvailabilityLow",), equal=("cluster",))),
    ("ExportersDownMany", Inhibit(targets=("ExporterDown",), equal=("cluster",))),
    (
        "ClusterLayerOutage",
        Inhibit(
            targets=(
                "GpuStarvedByStorage", "GpuStarvedByFabric", "StorageErrors", "StorageLatencyHigh", "LayerImbalance",
            ),
            equal=("cluster", "layer"),
        ),
    ),
    (
        "ClusterLayerOutage",
        Inhibit(
            targets=("ClusterStarvationFast", "ClusterStarvationSlow", "ClusterStarvationBudget", "JobHangSuspected"),
            equal=("cluster",),
        ),
    ),
    ("NodePowerBrake", Inhibit(targets=("GpuPowerBrake", "ThrottledShare", "StragglerNode"))),
    ("NodeDiedWhileAlerting", Inhibit(targets=("ExporterDown",))),
)  # fmt: skip
"""Of rules/cluster.yml, by hand as that file is."""
_MAYBE_EMPTY: Final = frozenset({"cluster"})
"""Clusters need not have a name: where none has, all nodes are one."""


def inhibit_yaml(conditions: Iterable[Condition]) -> str:
    """The rules, those of `conditions` first."""
    conditions = tuple(conditions)
    names = tuple(one.name for one in conditions)
    pairs = [(one.name, inhibit) for one in conditions for inhibit in one.inhibits]
    lines = [line for source, inhibit in (*pairs, *OF_CLUSTER) for line in _rule((source,), inhibit)]
    of_node = tuple(name for name in names if name not in ALWAYS_HEARD)
    silent = Inhibit(targets=(*of_node, "ExporterDown", "NodePowerBrake", "EccModeDiffers", "StorageLatencyHigh"))
    lines += _rule(("NodeUnderMaintenance",), silent)
    return "\n".join([_HEAD, *lines, ""])


def _rule(sources: tuple[str, ...], inhibit: Inhibit) -> Iterator[str]:
    there = [f"{label}=~'.+'" for label in inhibit.equal if label not in _MAYBE_EMPTY]
    yield f"  - source_matchers: [{_listed([_names(sources), *there])}]"
    yield f"    target_matchers: [{_listed([_names(inhibit.targets), *there])}]"
    yield f"    equal: [{', '.join(inhibit.equal)}]"


def _names(names: tuple[str, ...]) -> str:
    return f"alertname=~'{'|'.join(names)}'" if len(names) > 1 else f"alertname='{names[0]}'"


def _listed(matchers: list[str]) -> str:
    return ", ".join("'" + matcher.replace("'", '"') + "'" for matcher in matchers)


if __name__ == "__main__":
    sys.stdout.write(inhibit_yaml(CONDITIONS))
