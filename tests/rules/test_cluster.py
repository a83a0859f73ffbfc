# SPDX-License-Identifier: Apache-2.0
"""Alerts and recordings over all nodes, by Prometheus' own rules engine: when they fire, when not, what is planned."""

import shutil
from pathlib import Path

import pytest
import yaml

from gpufeed.alerting.conditions import CONDITIONS
from rules.fleet import MINUTE_S, RULES, Series, alive, evaluated, firing, of_node, states

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian package prometheus)"
)

HOUR_S = 60 * MINUTE_S
WELL = "0+60x5000"
SLOWER = {"ClusterStarvationSlow": ("ticket", 1), "ClusterStarvationBudget": ("ticket", 1)}
"""What the fast alert silences: its windows are longer, and all there is of the history is what it fires for."""
PAGE, TICKET, INFO = "page", "ticket", "info"


def alerts() -> list[dict[str, object]]:
    (group,) = yaml.safe_load((RULES / "cluster.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def test_at_most_twelve_alerts_may_wake_a_person() -> None:
    of_cluster = {rule["alert"] for rule in alerts() if rule["labels"]["severity"] == PAGE}  # type: ignore[index]
    assert len(of_cluster) + sum(one.severity == PAGE for one in CONDITIONS) <= 12


@pytest.mark.parametrize(
    ("starved", "at_s", "expected"),
    [
        pytest.param(
            "0+45x600", HOUR_S + 600, {"ClusterStarvationFast": (PAGE, 1), **SLOWER}, id="three quarters, an hour long"
        ),
        pytest.param("0+30x900", 7 * HOUR_S, SLOWER, id="a half, six hours long"),
        pytest.param("0+3x900", 7 * HOUR_S, {}, id="a twentieth"),
        pytest.param(
            "0+45x60 2700x900", 3 * HOUR_S, {"ClusterStarvationBudget": (TICKET, 1)}, id="an hour long, two hours ago"
        ),
    ],
)
def test_starvation_burns_the_budget(
    starved: str, at_s: int, expected: dict[str, tuple[str, int]], tmp_path: Path
) -> None:
    per_minute = float(starved.split("x", maxsplit=1)[0].partition("+")[2])
    busy = f"0+{60 - per_minute:g}x60 {60 * (60 - per_minute):g}+60x900" if " " in starved else (
        f"0+{60 - per_minute:g}x900"
    )  # fmt: skip
    series = [
        one for node in range(2) for one in (*alive(node), *states(node, starved__peer=starved, busy__tensor=busy))
    ]
    # waiting for a peer alone: no single node's alert on a layer fires beside the cluster's
    hang = {"JobHangSuspected": (TICKET, 2)} if per_minute > 58 else {}
    assert firing(tmp_path, series, at_s, **expected, **hang) == ""


@pytest.mark.parametrize(("starved", "count"), [("15x4500", 1), ("15x600 3x3900", 0)])
def test_three_days_above_the_budget_are_a_ticket(starved: str, count: int, tmp_path: Path) -> None:
    series = [
        ('gpufeed:gpus_starved:gpus5m{cluster="c"}', starved),
        ('gpufeed:gpus_working:gpus5m{cluster="c"}', "64x4500"),
        ('up{job="gpufeed"}', "1x4500"),
    ]
    look = 'count(ALERTS{alertname="ClusterStarvationBudget", alertstate="firing"})'
    expected = {look: [("{}", float(count))] if count else []}
    assert evaluated(tmp_path, series, expected, 74 * HOUR_S, rules=("cluster.yml",)) == ""


def test_waiting_for_an_unknown_cause_and_idling_burn_nothing(tmp_path: Path) -> None:
    series = [*alive(0), *states(0, starved__unknown="0+57x600", idle_held__="0x600", busy__tensor="0+3x600")]
    looks = {"gpufeed:gpus_starved:share5m": [('gpufeed:gpus_starved:share5m{cluster="c"}', 0.0)]}
    assert evaluated(tmp_path, series, looks, HOUR_S) == ""


def outage(cause: str, ill: int, nodes: int = 50) -> list[Series]:
    """A layer that `ill` of the nodes wait for from the tenth minute on."""
    series: list[Series] = []
    for node in range(nodes):
        is_ill = node < ill
        waits = {f"starved__{cause}": "0x9 0+60x200" if is_ill else "0x209"}
        series += [*alive(node), *states(node, busy__tensor="0+60x9 600x200" if is_ill else WELL, **waits)]
    return series


@pytest.mark.parametrize("cause", ["storage", "fabric"])
def test_an_outage_of_a_layer_on_fifty_nodes_is_one_page(cause: str, tmp_path: Path) -> None:
    assert firing(tmp_path, outage(cause, 40), 22 * MINUTE_S, ClusterLayerOutage=(PAGE, 1)) == ""


def test_a_layer_that_few_nodes_wait_for_is_no_outage(tmp_path: Path) -> None:
    assert firing(tmp_path, outage("storage", 10), 22 * MINUTE_S) == ""


def test_two_nodes_of_a_small_cluster_are_no_outage(tmp_path: Path) -> None:
    assert firing(tmp_path, outage("storage", 2, nodes=4), 22 * MINUTE_S) == ""


def test_storage_that_fails_over_in_two_minutes_is_no_outage(tmp_path: Path) -> None:
    series: list[Series] = []
    for node in range(10):
        waits = states(node, busy__tensor="0+60x9 600x2 660+60x60", starved__storage="0x9 0+60x2 120x60")
        series += [*alive(node), *waits]
    for minute in range(9, 30, 2):
        assert firing(tmp_path, series, minute * MINUTE_S) == ""


def gpus(node: int, up: str, count: int = 4, expected: str = "4x5000") -> list[Series]:
    of_gpus = [of_node(node, "gpu_up", up, gpu=str(n), uuid=f"GPU-{node}-{n}") for n in range(count)]
    return [of_node(node, "gpus_expected", expected, origin="inventory"), *of_gpus]


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(0, {}, id="all there"),
        pytest.param(1, {"ClusterGpuAvailabilityLow": (TICKET, 1)}, id="four of eighty"),
        pytest.param(
            4,
            {"ClusterGpuAvailabilityLow": (TICKET, 1), "ClusterGpuAvailabilityCritical": (PAGE, 1)},
            id="sixteen of eighty",
        ),
    ],
)
def test_gpus_that_cannot_be_used_are_missed(gone: int, expected: dict[str, tuple[str, int]], tmp_path: Path) -> None:
    series = [one for node in range(20) for one in gpus(node, "0x200" if node < gone else "1x200")]
    assert firing(tmp_path, [*alive(0), *series], HOUR_S, **expected) == ""


def test_gpus_of_a_node_that_died_are_missed_for_a_day(tmp_path: Path) -> None:
    series = [*gpus(0, "1x9 stale _x60", expected="4x9 stale _x60"), *gpus(1, "1x200"), *alive(1)]
    looks = {"gpufeed:gpus_available:ratio": [('gpufeed:gpus_available:ratio{cluster="c"}', 0.5)]}
    assert evaluated(tmp_path, series, looks, 40 * MINUTE_S) == ""


def test_what_the_configuration_expects_goes_before_what_was_once_seen(tmp_path: Path) -> None:
    series = [*gpus(0, "1x200"), of_node(0, "gpus_expected", "8x200", origin="config"), *alive(0)]
    looks = {"gpufeed:gpus_available:ratio": [('gpufeed:gpus_available:ratio{cluster="c"}', 0.5)]}
    assert evaluated(tmp_path, series, looks, 40 * MINUTE_S) == ""


def test_a_node_that_does_not_answer_is_a_ticket_and_many_are_a_page(tmp_path: Path) -> None:
    down = "1x9 0x60"
    few = [one for node in range(40) for one in alive(node, down if node < 1 else "1x200")]
    assert firing(tmp_path, few, 30 * MINUTE_S, ExporterDown=(TICKET, 1)) == ""
    many = [one for node in range(40) for one in alive(node, down if node < 3 else "1x200")]
    assert firing(tmp_path, many, 30 * MINUTE_S, ExporterDown=(TICKET, 3), ExportersDownMany=(PAGE, 1)) == ""


def test_a_reboot_under_maintenance_and_a_rolling_upgrade_are_silent(tmp_path: Path) -> None:
    reboot = [
        one
        for node in range(5)
        for one in (*alive(node, "1x9 0x20 1x60"), of_node(node, "maintenance", "1x9 stale _x19 1x20 0x40"))
    ]
    assert firing(tmp_path, [*reboot, *alive(9)], 25 * MINUTE_S) == ""
    upgrade = [one for node in range(5) for one in alive(node, "1x9 0 0 1x60")]
    for minute in range(9, 16):
        assert firing(tmp_path, upgrade, minute * MINUTE_S) == ""


def test_no_gpufeed_at_all_is_missed_and_nothing_else_fires(tmp_path: Path) -> None:
    assert firing(tmp_path, [('up{job="other"}', "1x200")], HOUR_S, ExporterAbsent=(TICKET, 1)) == ""


def test_a_node_that_dies_while_it_pages_is_a_page_of_its_own(tmp_path: Path) -> None:
    alerting = {"alertname": "GpuLost", "severity": "page", "state": "firing"}
    dies = [*alive(0, "1x9 0x60"), of_node(0, "alerts", "1x9 stale", **alerting), *alive(1)]
    assert firing(tmp_path, dies, 13 * MINUTE_S, NodeDiedWhileAlerting=(PAGE, 1)) == ""
    lives = [*alive(0), of_node(0, "alerts", "1x60", **alerting)]
    assert firing(tmp_path, lives, 13 * MINUTE_S) == ""
    ticket = {**alerting, "severity": "ticket"}
    drained = [*alive(0, "1x9 0x60"), of_node(0, "alerts", "1x9 stale", **ticket), *alive(1)]
    assert firing(tmp_path, drained, 13 * MINUTE_S) == ""


def brake(node: int, gpu: int, values: str) -> Series:
    return of_node(
        node, "gpu_clock_event_seconds_total", values, gpu=str(gpu), uuid=f"GPU-{gpu}", reason="hw_power_brake"
    )


def test_a_power_brake_on_two_gpus_is_a_page_and_a_test_of_supplies_is_none(tmp_path: Path) -> None:
    two = [*alive(0), brake(0, 0, "0+30x60"), brake(0, 1, "0+30x60")]
    assert firing(tmp_path, two, 20 * MINUTE_S, NodePowerBrake=(PAGE, 1), GpuPowerBrake=(TICKET, 2)) == ""
    test = [*alive(0), brake(0, 0, "0x9 10x60"), brake(0, 1, "0x9 10x60")]
    assert firing(tmp_path, test, 15 * MINUTE_S, GpuPowerBrake=(TICKET, 2)) == ""
    assert firing(tmp_path, test, 30 * MINUTE_S) == ""


def reads(seconds: str) -> list[Series]:
    where = {"kind": "nfs", "target": "/data"}
    return [
        *alive(0),
        of_node(0, "storage_reads_total", "0+7680x900", **where),
        of_node(0, "storage_read_seconds_total", seconds, **where),
    ]


def test_reads_four_times_slower_than_ever_are_noted(tmp_path: Path) -> None:
    slower = reads("0+60x599 36000+240x200")  # 7.8 ms, then 31 ms
    assert firing(tmp_path, slower, 11 * HOUR_S, StorageLatencyHigh=(INFO, 1)) == ""
    assert firing(tmp_path, reads("0+240x900"), 11 * HOUR_S) == ""


def job(node: int, waiting: str, job_id: str = "7") -> list[Series]:
    info = {"gpu": "0", "uuid": "GPU-a", "scheduler": "slurm", "job_id": job_id}
    busy = f"0+{60 - float(waiting):g}x200"
    return [
        *alive(node),
        of_node(node, "gpu_job_info", "1x200", **info),
        *states(node, communicating__nvlink=f"0+{waiting}x200", busy__tensor=busy),
    ]


def test_the_node_of_a_job_that_waits_least_is_named(tmp_path: Path) -> None:
    series = [one for node in range(4) for one in job(node, "7.5" if node == 2 else "37.5")]
    assert firing(tmp_path, series, HOUR_S, StragglerNode=(INFO, 1)) == ""
    looks = {
        "gpufeed:straggler:spread10m": [
            ('gpufeed:straggler:spread10m{cluster="c", job_id="7", scheduler="slurm"}', 0.5)
        ],
        'ALERTS{alertname="StragglerNode", instance="n2:9937"}': [
            (
                (
                    'ALERTS{action="investigate", alertname="StragglerNode", alertstate="firing", cluster="c", '
                    'instance="n2:9937", job_id="7", layer="job", scheduler="slurm", severity="info"}'
                ),
                1.0,
            )
        ],
    }
    assert evaluated(tmp_path, series, looks, HOUR_S) == ""
    even = [one for node in range(4) for one in job(node, "30")]
    assert firing(tmp_path, even, HOUR_S) == ""


def test_gpus_of_a_job_that_it_does_not_use_are_told_to_its_owner(tmp_path: Path) -> None:
    info = {"gpu": "1", "uuid": "GPU-b", "scheduler": "slurm", "job_id": "7"}
    series = [*job(0, "15"), of_node(0, "gpu_job_info", "1x200", **info), *states(0, "GPU-b", idle_held__="0+60x200")]
    assert firing(tmp_path, series, 80 * MINUTE_S, JobPartlyUnused=(TICKET, 1)) == ""
    assert firing(tmp_path, job(0, "15"), 80 * MINUTE_S) == ""


def test_nodes_that_are_not_alike_are_noted_after_an_upgrade_should_be_over(tmp_path: Path) -> None:
    series = [
        one
        for node in range(2)
        for one in (
            *alive(node),
            of_node(node, "driver_info", "1x900", driver_version=f"58{node}.1"),
            of_node(node, "rules_info", "1x900", hash=f"abc{node}"),
        )
    ]
    assert firing(tmp_path, series, 7 * HOUR_S, DriverVersionsDiffer=(INFO, 1), RulesDiffer=(INFO, 1)) == ""
    assert firing(tmp_path, series, 5 * HOUR_S) == ""


def test_ecc_a_clock_and_maintenance_are_noted(tmp_path: Path) -> None:
    series = [
        *alive(0),
        *(of_node(0, "gpu_ecc_enabled", f"{n}x200", gpu=str(n), uuid=f"GPU-{n}") for n in range(2)),
        of_node(0, "clock_offset_seconds", "-600x200", receiver="am"),
        of_node(0, "maintenance", "1x200"),
    ]
    expected = {"EccModeDiffers": (INFO, 1), "NodeClockSkew": (INFO, 1), "NodeUnderMaintenance": (INFO, 1)}
    assert firing(tmp_path, series, 2 * HOUR_S, **expected) == ""


def headroom(**layers: str) -> list[Series]:
    return [*alive(0), *(of_node(0, "layer_headroom_ratio", values, layer=name) for name, values in layers.items())]


def test_the_layer_that_binds_next_is_named_after_six_hours(tmp_path: Path) -> None:
    series = headroom(storage="0.125x900", fabric="0.75x900", nvlink="0.75x900")
    assert firing(tmp_path, series, 7 * HOUR_S, LayerImbalance=(INFO, 1)) == ""
    assert firing(tmp_path, headroom(storage="0.125x900", fabric="0.25x900", nvlink="0.75x900"), 7 * HOUR_S) == ""


def test_what_the_layers_cost_is_counted_in_gpus(tmp_path: Path) -> None:
    series = [one for node in range(4) for one in states(node, starved__storage="0+15x200", busy__tensor="0+45x200")]
    lost = 'gpufeed:gpus_lost:gpus1h{cluster="c", state="starved", cause="storage"}'
    looks = {
        "gpufeed:gpus_lost:gpus1h": [(lost, 1.0)],
        "gpufeed:gpus_productive:share1h": [('gpufeed:gpus_productive:share1h{cluster="c"}', 0.75)],
        "gpufeed:gpus_starved:share5m": [('gpufeed:gpus_starved:share5m{cluster="c"}', 0.25)],
    }
    assert evaluated(tmp_path, series, looks, 2 * HOUR_S) == ""


def test_the_binding_layer_is_the_fullest_of_its_node(tmp_path: Path) -> None:
    seconds = {"storage_read": "0+54x200", "fabric": "0+30x200", "nvlink": "0+6x200"}
    series = [of_node(0, "layer_busy_seconds_total", values, layer=layer) for layer, values in seconds.items()]
    series.append(of_node(1, "layer_busy_seconds_total", "0+12x200", layer="fabric"))
    looks = {
        "sum by (layer) (gpufeed:layer_binding:busy5m)": [('{layer="fabric"}', 0.2), ('{layer="storage_read"}', 0.9)]
    }
    assert evaluated(tmp_path, series, looks, HOUR_S) == ""


def test_model_flops_of_a_job_are_the_mean_of_its_nodes(tmp_path: Path) -> None:
    of_job = {"scheduler": "slurm", "job_id": "7", "step": "0"}
    name = "job_model_flops_utilization_ratio"
    series = [of_node(0, name, "0.5x200", **of_job), of_node(1, name, "0.25x200", **of_job)]
    looks = {"gpufeed:job_mfu:mean5m": [('gpufeed:job_mfu:mean5m{cluster="c", scheduler="slurm", job_id="7"}', 0.375)]}
    assert evaluated(tmp_path, series, looks, HOUR_S) == ""


def test_every_alert_of_the_cluster_is_in_a_test_that_fires_it() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [
        rule["alert"] for rule in alerts() if f"{rule['alert']}=(" not in text and f'"{rule["alert"]}": (' not in text
    ] == []


def test_no_data_fires_nothing_but_that_there_is_none(tmp_path: Path) -> None:
    series = [of_node(0, "up", "1x300")]
    assert firing(tmp_path, series, 4 * HOUR_S) == ""
