# SPDX-License-Identifier: Apache-2.0
"""Inhibition: the file is what the table gives, and one cause is at most two notifications after it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
import yaml

from gpufeed.alerting.conditions import CONDITIONS
from gpufeed.alerting.inhibition import ALWAYS_HEARD, inhibit_yaml
from rules.fleet import RULES

FILE: Final = RULES / "alertmanager-inhibit.yml"
RULE_LIST: Final[list[dict[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["inhibit_rules"]


def of_cluster() -> set[str]:
    (group,) = yaml.safe_load((RULES / "cluster.yml").read_text(encoding="utf-8"))["groups"]
    return {rule["alert"] for rule in group["rules"]}


def matches(matchers: Iterable[str], alert: Mapping[str, str]) -> bool:
    """A small reader of the three forms of matcher that the file has."""
    for matcher in matchers:
        label, operator, value = matcher.partition("=~") if "=~" in matcher else matcher.partition("=")
        wanted, found = value.strip('"'), alert.get(label, "")
        if wanted == ".+":
            if not found:
                return False
        elif found not in (wanted.split("|") if operator == "=~" else [wanted]):
            return False
    return True


def heard(alerts: list[dict[str, str]]) -> list[str]:
    """Names of the alerts that are not silenced by another that fires."""

    def is_silenced(target: dict[str, str]) -> bool:
        return any(
            matches(rule["source_matchers"], source)
            and matches(rule["target_matchers"], target)
            and all(source.get(label, "") == target.get(label, "") for label in rule["equal"])
            for rule in RULE_LIST
            for source in alerts
            if source is not target
        )

    return [one["alertname"] for one in alerts if not is_silenced(one)]


def alert(name: str, instance: str = "n1", uuid: str = "", **labels: str) -> dict[str, str]:
    return {"alertname": name, "instance": instance, **({"uuid": uuid} if uuid else {}), **labels}


def test_the_file_is_what_the_table_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == inhibit_yaml(CONDITIONS), "run: make format"


def test_every_name_in_it_is_an_alert() -> None:
    known = {one.name for one in CONDITIONS} | of_cluster()
    names = {
        name
        for rule in RULE_LIST
        for matcher in (rule["source_matchers"][0], rule["target_matchers"][0])
        for name in matcher.partition('"')[2].rstrip('"').split("|")
    }
    assert names <= known


def test_every_rule_compares_the_node_or_the_cluster() -> None:
    assert [rule for rule in RULE_LIST if not {"instance", "cluster"} & set(rule["equal"])] == []


def test_every_label_that_is_compared_must_be_there() -> None:
    for rule in RULE_LIST:
        for label in set(rule["equal"]) - {"cluster"}:
            assert f'{label}=~".+"' in rule["source_matchers"]
            assert f'{label}=~".+"' in rule["target_matchers"]


@pytest.mark.parametrize("name", ALWAYS_HEARD)
def test_that_a_board_must_be_replaced_is_heard_even_under_maintenance(name: str) -> None:
    others = [alert(one.name, uuid="GPU-1", device="d", port="1") for one in CONDITIONS if one.name != name]
    assert name in heard([alert(name, uuid="GPU-1"), *others, alert("NodeUnderMaintenance")])


@pytest.mark.parametrize(
    ("cause", "alerts"),
    [
        ("a GPU off the bus", ["GpuLost", "XidGpuUnusable", "GpuRecoveryPending", "GpuCountLow", "JobHangSuspected",
                               "NvlinkDown", "GpuDriverError"]),
        ("a wedged driver", ["NvmlHang", "ExporterStale", "AttributionBlind", "JobHangSuspected", "GpuLost"]),
        ("an uncontained memory error", ["XidGpuUnusable", "EccUncorrectable", "RemapPending", "GpuRecoveryPending",
                                         "XidGpuDegraded", "JobHangSuspected"]),
        ("a spare row that failed", ["RemapFailure", "RemapPending", "XidGpuUnusable", "EccUncorrectable"]),
        ("a hot GPU", ["GpuHwThermalSlowdown", "GpuThermalMargin", "ThrottledShare", "StragglerGpu"]),
        ("a power brake", ["GpuPowerBrake", "ThrottledShare", "StragglerGpu"]),
        ("a dead NVLink", ["NvlinkDown", "NvlinkReplayOrRecovery", "NvlinkCrcRate", "JobHangSuspected"]),
        ("a fabric that is not joined", ["FabricNotReady", "FabricDegraded"]),
        ("a port that is down", ["IbPortDown", "IbSymbolErrors", "IbLinkFlap", "IbXmitDiscards", "IbFatalCounters",
                                 "GpuStarvedByFabric", "JobHangSuspected"]),
        ("a card off the bus", ["NicCountLow", "IbPortDown", "GpuStarvedByFabric", "JobHangSuspected"]),
        ("a server that does not answer", ["StorageErrors", "GpuStarvedByStorage"]),
        ("a hung job", ["JobHangSuspected", "GpuStarvedByStorage", "GpuStarvedByFabric"]),
        ("a probe that is down", ["ProbeDown", "ExporterStale", "AttributionBlind"]),
        ("a node that died", ["NodeDiedWhileAlerting", "ExporterDown"]),
    ],
)  # fmt: skip
def test_one_cause_is_at_most_two_notifications(cause: str, alerts: list[str]) -> None:
    labels = {"uuid": "GPU-1", "device": "mlx5_0", "port": "1"}
    at = [
        alert(name, **{label: value for label, value in labels.items() if label in labels_of(name)}) for name in alerts
    ]
    left = heard(at)
    assert alerts[0] in left, cause
    assert len(left) <= 2, f"{cause}: {left}"


def labels_of(name: str) -> tuple[str, ...]:
    return next((one.labels for one in CONDITIONS if one.name == name), ())


def test_the_outage_of_a_layer_is_one_notification_for_fifty_nodes() -> None:
    nodes = [
        alert(name, f"n{number}", layer="storage", cluster="c")
        for number in range(50)
        for name in ("GpuStarvedByStorage", "StorageErrors")
    ]
    outage = {"alertname": "ClusterLayerOutage", "cluster": "c", "layer": "storage"}
    burning = {"alertname": "ClusterStarvationFast", "cluster": "c", "layer": "cluster"}
    assert heard([*nodes, outage, burning]) == ["ClusterLayerOutage"]
    elsewhere = alert("GpuStarvedByStorage", "m1", layer="storage", cluster="d")
    assert heard([outage, elsewhere]) == ["ClusterLayerOutage", "GpuStarvedByStorage"]


def test_one_node_s_lost_gpu_silences_nothing_of_another_node() -> None:
    lost = alert("GpuLost", "n1", "GPU-1")
    assert len(heard([lost, alert("NvlinkDown", "n2", "GPU-1"), alert("GpuHeldIdle", "n1", "GPU-2")])) == 2
    no_instance = {"alertname": "GpuLost", "uuid": "GPU-1"}
    assert len(heard([no_instance, {"alertname": "NvlinkDown", "uuid": "GPU-1"}])) == 2
