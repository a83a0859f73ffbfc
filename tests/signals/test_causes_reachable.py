# SPDX-License-Identifier: Apache-2.0
"""Every (state, cause) there is can be reached: one row each, with the inputs that lead there."""

from dataclasses import replace

import pytest

from gpufeed.model.frame import InputStatus, XidEvent
from gpufeed.model.state import CAUSES, GpuStateName, StateCause
from signals.story import COMPUTING, FREE, WAITING, Gpu, Host, Story, uuid

LOADING = Host(running=2, blocked=0, cores=1.0, read=200e6, reads=200, outstanding=0.5)
EXCHANGE = Gpu(active=1.0, sm=0.15, tensor=0.0, dram=0.15, power=0.4)
SPINNING = Gpu(active=1.0, sm=0.12, tensor=0.0, dram=0.01, power=0.15)

READINGS: dict[tuple[GpuStateName, str], tuple[Gpu, Host]] = {
    ("busy", "tensor"): (COMPUTING, LOADING),
    ("busy", "memory"): (replace(COMPUTING, tensor=0.05, dram=0.7), LOADING),
    ("busy", "other"): (replace(COMPUTING, tensor=0.05, dram=0.1, sm=0.8), LOADING),
    ("communicating", "nvlink"): (replace(EXCHANGE, nvlink=0.4), LOADING),
    ("communicating", "fabric"): (replace(EXCHANGE, fabric=0.4), LOADING),
    ("communicating", "pcie_p2p"): (
        replace(EXCHANGE, links=0, links_up=0, pcie_receive=0.4, pcie_transmit=0.4),
        LOADING,
    ),
    ("starved", "storage"): (WAITING, replace(LOADING, blocked=8, running=1, io=0.8, outstanding=8)),
    ("starved", "checkpoint"): (WAITING, Host(blocked=2, io=0.6, write=1.5e9, read=1e5, cores=0.5)),
    ("starved", "host_cpu"): (WAITING, Host(running=16, cores=15.8, cpu=0.7, busiest=0.99)),
    ("starved", "host_memory"): (WAITING, replace(LOADING, memory=0.5)),
    ("starved", "pcie"): (replace(WAITING, pcie_receive=0.9), LOADING),
    ("starved", "nvlink"): (replace(EXCHANGE, nvlink=0.92), LOADING),
    ("starved", "fabric"): (replace(EXCHANGE, fabric=0.93), LOADING),
    ("starved", "peer"): (SPINNING, LOADING),
    ("starved", "unknown"): (WAITING, replace(LOADING, io=0.5, blocked=4, cpu=0.6, outstanding=4)),
    ("throttled", "thermal"): (replace(COMPUTING, clock=0.4, reasons={"hw_thermal": 1.0}), LOADING),
    ("throttled", "power_brake"): (replace(COMPUTING, clock=0.4, reasons={"hw_power_brake": 1.0}), LOADING),
    ("throttled", "power_cap"): (replace(COMPUTING, clock=0.5, reasons={"sw_power_cap": 1.0}), LOADING),
    ("idle_held", ""): (WAITING, Host(running=0, cores=0.0, busiest=0.0)),
    ("idle_free", ""): (FREE, Host(tasks=False)),
    ("fault", "recovery_pending"): (replace(COMPUTING, recovery_action=1), LOADING),
    ("fault", "fabric_state"): (replace(COMPUTING, fabric_state=2), LOADING),
    ("unknown", "conflict"): (replace(COMPUTING, active=0.05), LOADING),
    ("unknown", "unsupported"): (replace(COMPUTING, has_gpm=False, has_utilization=False), LOADING),
}


@pytest.mark.parametrize(
    ("pair", "inputs"),
    READINGS.items(),
    ids=lambda value: "-".join(value) if isinstance(value, tuple) and isinstance(value[0], str) else "",
)
def test_readings_lead_to(pair: tuple[GpuStateName, str], inputs: tuple[Gpu, Host]) -> None:
    story = Story()
    story.run(12, *inputs)
    before = story.attribution()
    story.run(10)
    assert story.gained(before) == {StateCause(*pair): 10.0}
    assert story.attribution().current == pair


def test_a_gpu_that_is_gone_leads_to_fault_lost() -> None:
    story = Story()
    story.run(5)
    story.run(10, replace(COMPUTING, condition="lost"), others=COMPUTING)
    assert story.seconds()[StateCause("fault", "lost")] == pytest.approx(8.0, abs=1)
    assert story.attribution().current == StateCause("fault", "lost")


@pytest.mark.parametrize(("xid", "cause"), [(79, "xid"), (64, "ecc")])
def test_a_fatal_xid_leads_to_a_fault_that_stays(xid: int, cause: str) -> None:
    story = Story()
    story.run(5)
    story.run(10, events=(XidEvent(at_ns=story.now_ns, xid=xid, uuid=uuid(0)),))
    assert story.seconds()[StateCause("fault", cause)] == pytest.approx(8.0, abs=1)
    assert StateCause("fault", cause) not in story.seconds(1)


def test_a_call_that_does_not_return_leads_to_fault_hung_from_its_start_for_what_was_not_decided() -> None:
    story = Story()
    story.run(5)
    story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
    story.run(20)
    seconds = story.seconds()
    # stuck after 8 s; by then 3 s are undecided, and 2 s of the end still are
    assert seconds[StateCause("fault", "hung")] == pytest.approx(20 - 5 - 2, abs=0.5)
    assert seconds[StateCause("unknown", "stale")] == pytest.approx(5, abs=0.5)


def test_a_lane_that_is_late_leads_to_unknown_stale() -> None:
    story = Story()
    story.run(5)
    story.silent, story.busy_since_ns = frozenset({"gpu0"}), {"gpu0": story.now_ns}
    story.run(7)
    assert story.seconds()[StateCause("unknown", "stale")] == pytest.approx(4, abs=0.5)


def test_a_probe_that_is_gone_leads_to_unknown_no_data() -> None:
    story = Story()
    story.run(5)
    story.gap(10)
    assert story.seconds()[StateCause("unknown", "no_data")] == pytest.approx(8, abs=0.5)


def test_a_released_driver_leads_to_unknown_no_data() -> None:
    story = Story()
    story.run(5)
    story.run(10, inputs=(InputStatus("nvml", "", "released"),))
    assert story.seconds()[StateCause("unknown", "no_data")] == pytest.approx(8, abs=0.5)


def test_the_rows_above_are_all_there_are() -> None:
    elsewhere = {("fault", "lost"), ("fault", "xid"), ("fault", "ecc"), ("fault", "hung")}
    elsewhere |= {("unknown", "stale"), ("unknown", "no_data")}
    assert set(READINGS) | elsewhere == {(state, cause) for state, causes in CAUSES.items() for cause in causes}
