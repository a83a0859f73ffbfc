# SPDX-License-Identifier: Apache-2.0
"""Checks of ports, storage, host and gpufeed itself."""

from dataclasses import replace

import pytest

from gpufeed.health.checks import CHECKS
from gpufeed.health.fold import fold, forget
from gpufeed.health.latches import Latches
from gpufeed.model.frame import InputStatus
from gpufeed.model.gpu import PciGpus
from gpufeed.model.host import HostMemory
from gpufeed.model.ids import GpuKey, IbPortKey, StorageKey
from gpufeed.model.state import Attribution, CollectorRecord, NodeState, ProbeRecord, StateCause
from health.states import (
    MINUTE,
    NFS,
    ONE,
    PORT,
    SECOND,
    START,
    driver,
    found,
    ib_errors,
    level,
    levels,
    nfs,
    node,
    port,
)

HOUR = 60 * MINUTE


def test_a_port_that_was_up_and_is_not_is_down() -> None:
    assert levels(PORT, "port_down", node(port()), node(port(1, 2)), node(port())) == [0, 2, 0]


def test_a_port_that_never_was_up_has_no_cable() -> None:
    assert levels(PORT, "port_down", node(port(1, 2)), node(port(2, 5))) == [None, None]


def test_a_port_that_carries_no_traffic_of_ours_is_not_judged() -> None:
    assert levels(PORT, "port_down", node(port(is_fabric=False)), node(port(1, 2, is_fabric=False))) == [None, None]


def test_a_port_whose_driver_tells_no_physical_state_is_judged_by_its_state() -> None:
    assert levels(PORT, "port_down", node(port(physical=None)), node(port(1, None))) == [0, 2]


def test_a_port_that_was_taken_away_on_purpose_is_forgotten() -> None:
    verdicts, latches = fold({}, node(port()), Latches())
    verdicts, latches = fold(verdicts, node(port(1, 2)), latches)
    verdicts, latches = forget(verdicts, latches, PORT)
    assert not [key for key in verdicts if key[0] == PORT]
    verdicts, _ = fold(verdicts, node(port(1, 2)), latches)
    assert (PORT, "port_down") not in verdicts


def test_three_flaps_in_twelve_hours_are_flapping_and_pass() -> None:
    states = [
        node(port(), at_ns=START + at * HOUR, ib_flaps={PORT: flaps})
        for at, flaps in ((0, 5), (1, 6), (2, 7), (3, 8), (14, 8))
    ]
    assert levels(PORT, "flapping", *states) == [0, 0, 0, 1, 0]


def test_three_flaps_at_once_are_three() -> None:
    states = [node(port(), ib_flaps={PORT: 0}), node(port(), ib_flaps={PORT: 9})]
    assert levels(PORT, "flapping", *states) == [0, 1]


def test_flaps_of_a_port_nobody_counts_are_not_judged() -> None:
    assert level(node(port()), PORT, "flapping") is None


def test_a_fatal_counter_that_moves_degrades_the_port_for_an_hour() -> None:
    states = [
        node(port(), ib_errors(local_link_integrity_errors=count), at_ns=START + at * MINUTE)
        for at, count in ((0, 7), (1, 7), (2, 8), (60, 8), (63, 8))
    ]
    assert levels(PORT, "errors", *states) == [0, 0, 1, 1, 0]


def test_a_fatal_counter_that_was_cleared_has_not_moved() -> None:
    states = [node(port(), ib_errors(excessive_buffer_overrun_errors=count)) for count in (7, 0)]
    assert levels(PORT, "errors", *states) == [0, 0]


def test_a_port_without_the_fatal_counters_is_not_judged() -> None:
    assert level(node(port(), ib_errors(symbol_error=1)), PORT, "errors") is None
    assert level(node(port()), PORT, "errors") is None


def test_storage_that_times_out_is_degraded_for_a_quarter_of_an_hour() -> None:
    states = [node(nfs(timeouts=count), at_ns=START + at * MINUTE) for at, count in ((0, 1), (1, 2), (15, 2), (17, 2))]
    assert levels(NFS, "timeouts", *states) == [0, 1, 1, 0]


def test_storage_that_counts_no_errors_is_not_judged_by_them() -> None:
    assert level(node(nfs(timeouts=1)), NFS, "errors") is None


def test_storage_that_is_gone_loses_its_zero() -> None:
    assert levels(NFS, "timeouts", node(nfs(timeouts=1)), node()) == [0, None]


BUS = PciGpus(bus_ids=("0000:18:00.0",))
NO_DRIVER = {("nvml", ""): InputStatus("nvml", "", "absent", "libnvidia-ml.so.1 is not there")}


@pytest.mark.parametrize(
    ("check", "state", "expected"),
    [
        pytest.param("driver", node(), None, id="nothing known"),
        pytest.param("driver", node(driver(2)), 0, id="driver answers"),
        pytest.param("driver", node(BUS), None, id="not tried yet"),
        pytest.param("driver", node(BUS, inputs=NO_DRIVER), 2, id="GPUs and no driver"),
        pytest.param("driver", node(inputs=NO_DRIVER), None, id="no GPUs and no driver: nothing is wrong"),
        pytest.param(
            "driver",
            node(BUS, inputs={("nvml", ""): InputStatus("nvml", "", "released")}),
            None,
            id="released on purpose",
        ),
        pytest.param("gpu_count", node(driver(8)), None, id="nobody expects a number"),
        pytest.param("gpu_count", node(gpus_expected={"pci": 8}), None, id="driver does not answer"),
        pytest.param("gpu_count", node(driver(8), gpus_expected={"pci": 8}), 0, id="all there"),
        pytest.param("gpu_count", node(driver(7), gpus_expected={"inventory": 8, "pci": 7}), 2, id="one fewer"),
        pytest.param("gpu_count", node(driver(7), gpus_expected={"config": 7, "inventory": 8}), 0, id="site knows"),
        pytest.param("memory", node(), None, id="no memory reading"),
        pytest.param("memory", node(HostMemory(total_bytes=100)), None, id="old kernel"),
        pytest.param("memory", node(HostMemory(total_bytes=0, available_bytes=0)), None, id="nonsense"),
        pytest.param("memory", node(HostMemory(total_bytes=100, available_bytes=5)), 0, id="enough"),
        pytest.param("memory", node(HostMemory(total_bytes=100, available_bytes=4)), 1, id="low"),
    ],
)
def test_a_check_of_the_host_says_what_the_state_shows(check: str, state: NodeState, expected: int | None) -> None:
    assert level(state, "host", check) == expected


@pytest.mark.parametrize(
    ("check", "state", "expected"),
    [
        pytest.param("probe", node(), None, id="before the first frame"),
        pytest.param("probe", node(probe=ProbeRecord(silent_ns=20_000_000_000)), 2, id="never came up"),
        pytest.param("probe", node(probe=ProbeRecord(is_up=True, frames=1)), 0, id="up"),
        pytest.param("probe", node(probe=ProbeRecord(is_up=False, frames=1)), 2, id="down"),
        pytest.param("stale", node(), None, id="no collector yet"),
        pytest.param("stale", node(collectors={"nvml": CollectorRecord()}), None, id="never worked"),
        pytest.param("stale", node(collectors={"nvml": CollectorRecord(last_success_ns=START)}), 0, id="fresh"),
        pytest.param(
            "stale",
            node(
                collectors={
                    "nvml": CollectorRecord(last_success_ns=START),
                    "nfs": CollectorRecord(last_success_ns=START - 61 * SECOND),
                }
            ),
            1,
            id="one old",
        ),
    ],
)
def test_a_check_of_gpufeed_itself_says_what_the_state_shows(
    check: str, state: NodeState, expected: int | None
) -> None:
    assert level(state, "self", check) == expected


def test_the_stale_collector_is_named() -> None:
    verdict = found(node(collectors={"nfs": CollectorRecord(last_success_ns=START - 90 * SECOND)}), "self", "stale")
    assert verdict is not None
    assert verdict.reason == "collector nfs brought nothing for 90 s"


def attributed(at_min: int, busy_s: int, unknown_s: int, free_s: int = 0) -> NodeState:
    state_ns = {
        StateCause("busy", "tensor"): busy_s * SECOND,
        StateCause("unknown", "no_data"): unknown_s * SECOND,
        StateCause("idle_free", ""): free_s * SECOND,
    }
    of = Attribution(
        state_ns=state_ns, tracked_ns=sum(state_ns.values()), decided_until_ns=0, current=StateCause("busy", "tensor")
    )
    return node(at_ns=START + at_min * MINUTE, attributions={GpuKey(ONE): of})


def test_a_third_of_the_time_not_understood_is_blind_and_passes() -> None:
    states = [
        attributed(0, 0, 0),
        attributed(3, 180, 0),
        attributed(5, 300, 0),
        attributed(10, 400, 200),
        attributed(12, 520, 200),
        attributed(15, 700, 200),
    ]
    assert levels("self", "blind", *states) == [None, None, 0, 1, 1, 0]


def test_time_that_nobody_asks_about_is_not_blindness() -> None:
    states = [attributed(0, 0, 0), attributed(6, 0, 0, free_s=360)]
    assert levels("self", "blind", *states) == [None, None]


def test_attribution_that_starts_again_is_measured_again() -> None:
    states = [attributed(0, 1000, 0), attributed(6, 1300, 0), attributed(7, 0, 30)]
    assert levels("self", "blind", *states) == [None, 0, None]


def test_the_family_of_every_check_is_known() -> None:
    everything = replace(
        node(port(), ib_errors(local_link_integrity_errors=0), nfs(timeouts=0, errors=0), driver(2)),
        ib_flaps={PORT: 0},
        gpus_expected={"pci": 2},
        probe=ProbeRecord(is_up=True, frames=1),
    )
    verdicts, _ = fold({}, everything, Latches())
    by_family = {
        "gpufeed_gpu_health": GpuKey,
        "gpufeed_ib_health": IbPortKey,
        "gpufeed_storage_health": StorageKey,
        "gpufeed_host_health": str,
        "gpufeed_self_health": str,
    }
    for family, kind in by_family.items():
        seen = {check for subject, check in verdicts if isinstance(subject, kind) and check in CHECKS[family]}
        assert seen
    assert {check for _, check in verdicts} <= {check for checks in CHECKS.values() for check in checks}
