# SPDX-License-Identifier: Apache-2.0
"""The physical truth of a node over time: what every GPU does, what that moves, and which (state, cause) is true.

Time is cut where a phase, an incident or a utilization window ends; between cuts every level stands still, so that
all integrals are exact whatever the length of the steps. Both faces show numbers of these integrals only.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Final

from gpufeed.simulate.activity import LOADERS, Activity, Cause, Incident, Phase, Scenario
from gpufeed.simulate.block import GAUGES, INTEGRALS, INTS, MAX_XIDS, Record
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import Board, GpuModel, boards
from gpufeed.simulate.host import HostTruth
from gpufeed.simulate.levels import HOST_INTEGRALS, Levels, levels
from gpufeed.simulate.mig import NUMBERS

NS_PER_S: Final = 1_000_000_000
UTILIZATION_WINDOW_NS: Final = 500_000_000
"""nvmlDeviceGetUtilizationRates answers with the mean of the last full window."""

_GRAPHICS: Final = INTEGRALS.index("graphics_s")
_DRAM: Final = INTEGRALS.index("dram_s")
_POWER_MEAN_S: Final = 0.5
_WARMING_S: Final = 8.0
_FIRST_PID: Final = 4000
_COLD_C: Final = 30.0
_VIDEO_CLOCK: Final = 0.9
"""Share of the SM clock that the video engines run at."""

_BAR1_USED_BYTES: Final = 4 * 1024 * 1024
_BANKS: Final = 2560
_BER_NEVER: Final = 0x1 << 8 | 100  # 1e-100, packed: no error yet
_FABRIC_COMPLETED: Final = 3
_FABRIC_WELL: Final = 0b01_01_0001_10_10_10_10
"""Health mask: four times false, configured as it should be, partition assigned, fabric manager connected."""

_NO_DRIVER: Final = Activity(truth=("unknown", "no_data"), occupant="none", power=0.0, temperature_c=_COLD_C)
_LOST: Final = Activity(truth=("fault", "lost"), occupant="none", power=0.0, temperature_c=_COLD_C)
_DIED: Final = Activity(truth=("fault", "xid"), occupant="none", power=0.05, temperature_c=_COLD_C)


class GpuTruth:
    """One GPU and the part of the host that feeds it."""

    def __init__(self, board: Board, phases: Sequence[Phase]) -> None:
        self.board = board
        self.integrals = [0.0] * len(INTEGRALS)
        self.host = [0.0] * len(HOST_INTEGRALS)
        self.truth_ns: dict[Cause, int] = {}
        self.xids: list[int] = []
        self.recovery_action = 0
        self.is_lost = False
        self.is_port_down = False  # of the network card beside it
        self.port_downs = 0
        self.loaders = LOADERS  # processes that load data for it
        self.counts: dict[str, int] = {}  # of INTS: what is so in place of what usually is
        self._phases = cycle(phases)
        self._phase = next(self._phases)
        self.phase_left_ns = self._phase.duration_ns
        self._compiled: dict[tuple[int, bool], tuple[Activity, Levels]] = {}
        self.set_incidents(())
        self._utilization = (0.0, 0.0)
        self._window_start = (0.0, 0.0)
        self._power_w = self.levels.power_w
        self._temperature_c = self.activity.temperature_c

    @property
    def pid(self) -> int:
        """Of the process that holds the context; its loaders have the next ones."""
        return _FIRST_PID + 10 * self.board.index

    def set_incidents(self, incidents: Sequence[Incident]) -> None:
        """What holds from now on; decides what the GPU does instead of its phase."""
        kinds = {incident.kind for incident in incidents}
        self.is_lost = "lost" in kinds
        self.port_downs += "port_down" in kinds and not self.is_port_down
        self.is_port_down = "port_down" in kinds
        self.recovery_action = max((incident.recovery_action for incident in incidents), default=0)
        usual = self._phase.activity
        if "driver_absent" in kinds:
            self._become(_NO_DRIVER)
        elif self.is_lost:
            self._become(_LOST)
        elif "xid" in kinds:
            self._become(_DIED)
        else:
            self._become(usual, truth=("fault", "hung") if "hang" in kinds else usual.truth)

    def advance(self, duration_ns: int) -> None:
        """Time passes during which no level changes. The caller cuts it so that the phase does not end within."""
        duration_s = duration_ns / NS_PER_S
        self.integrals = [a + r * duration_s for a, r in zip(self.integrals, self.levels.gpu, strict=True)]
        self.host = [a + r * duration_s for a, r in zip(self.host, self.levels.host, strict=True)]
        self.truth_ns[self.truth] = self.truth_ns.get(self.truth, 0) + duration_ns
        self._power_w += (self.levels.power_w - self._power_w) * -math.expm1(-duration_s / _POWER_MEAN_S)
        warming = -math.expm1(-duration_s / _WARMING_S)
        self._temperature_c += (self.activity.temperature_c - self._temperature_c) * warming
        self.phase_left_ns -= duration_ns
        if self.phase_left_ns <= 0:
            self._phase = next(self._phases)
            self.phase_left_ns = self._phase.duration_ns

    def end_window(self) -> None:
        """A utilization window ends now."""
        graphics_s, dram_s = self.integrals[_GRAPHICS], self.integrals[_DRAM]
        seconds = UTILIZATION_WINDOW_NS / NS_PER_S
        self._utilization = (
            (graphics_s - self._window_start[0]) / seconds,
            (dram_s - self._window_start[1]) / seconds,
        )
        self._window_start = (graphics_s, dram_s)

    def split(self, layout: str) -> None:
        """All instances are destroyed, and those of `layout` created."""
        self.counts["mig_layout"] = NUMBERS.index(layout)
        self.counts["mig_changes"] = self.counts.get("mig_changes", 0) + 1

    def host_total(self, name: str) -> float:
        """An integral of the host's share by its name in HOST_INTEGRALS."""
        return self.host[HOST_INTEGRALS.index(name)]

    def record(self) -> Record:
        """For the block: in the order of INTEGRALS, GAUGES, INTS."""
        gauges = self._gauges()
        ints = self._ints()
        return (
            *self.integrals,
            *(gauges[name] for name in GAUGES),
            *(ints.get(name, 0) for name in INTS),
        )

    def _become(self, activity: Activity, truth: Cause | None = None) -> None:
        self.activity = activity
        self.truth = truth or activity.truth
        key = (id(activity), self.is_port_down)
        known = self._compiled.get(key)
        if known is None:
            moved = replace(activity, fabric=0.0, fabric_waiting=0.0) if self.is_port_down else activity
            # the activity is kept beside: its id stays its own
            known = (activity, levels(moved, self.board.model))
            self._compiled[key] = known
        self.levels = known[1]

    def _gauges(self) -> dict[str, float]:
        return {
            "utilization_ratio": self._utilization[0],
            "memory_utilization_ratio": self._utilization[1],
            "power_w": self._power_w if self.board.model.has_power_average else self.levels.power_w,
            "power_instant_w": self.levels.power_w,
            "temperature_c": self._temperature_c,
            "memory_temperature_c": self._temperature_c + 8.0,
            "sm_clock_mhz": self.levels.sm_clock_mhz,
            "memory_clock_mhz": float(self.board.model.memory_clock_mhz),
            "memory_used_bytes": self.levels.memory_used_bytes,
        }

    def _ints(self) -> dict[str, int]:
        model = self.board.model
        is_held = self.activity.occupant == "held"
        recent = range(max(0, len(self.xids) - MAX_XIDS), len(self.xids))
        return {
            **_usual(model),
            "lost": int(self.is_lost),
            "clock_events": self.levels.clock_events,
            "recovery_action": self.recovery_action,
            "xids": len(self.xids),
            **{f"xid{number % MAX_XIDS}": self.xids[number] for number in recent},
            "processes": int(is_held),
            "pid0": self.pid if is_held else 0,
            "bytes0": int(self.levels.memory_used_bytes) if is_held else 0,
            "video_clock_mhz": round(_VIDEO_CLOCK * self.levels.sm_clock_mhz),
            **self.counts,
        }


def _usual(model: GpuModel) -> dict[str, int]:
    """What stands still on a board that is well."""
    return {
        "links_up": model.nvlink_links,
        "c2c_links_up": model.c2c_links,
        "pcie_generation": model.pcie_generation,
        "pcie_width": model.pcie_width,
        "persistence": 1,
        "bar1_used_bytes": _BAR1_USED_BYTES,
        "remap_banks_max": _BANKS,
        "fabric_state": _FABRIC_COMPLETED if model.has_fabric else 0,
        "fabric_health_mask": _FABRIC_WELL if model.has_fabric else 0,
        "fabric_health_summary": int(model.has_fabric),
        "nvlink_effective_ber": _BER_NEVER,
        "nvlink_symbol_ber": _BER_NEVER,
    }


class NodeTruth:
    """All GPUs of a node, its host as a whole, and what happens to them."""

    def __init__(self, scenario: Scenario, model: GpuModel, gpus: int) -> None:
        self.scenario = scenario
        self.model = model
        self.driver_version = scenario.driver_version or model.driver_version
        self.age_ns = 0
        self.has_driver = True
        self.gpus = [GpuTruth(board, scenario.phases_of(board.index)) for board in boards(model, gpus)]
        for gpu in self.gpus:
            gpu.counts["mig_layout"] = NUMBERS.index(scenario.mig_layout)
        self.host = HostTruth(gpus)
        self._incidents = [_placed(incident, gpus) for incident in scenario.incidents]
        self._begun: set[Incident] = set()
        self._enter()

    def advance(self, duration_ns: int) -> None:
        """Time passes."""
        while duration_ns > 0:
            step_ns = min(duration_ns, self._until_cut_ns())
            self.host.advance(step_ns / NS_PER_S, [(gpu.activity, gpu.levels) for gpu in self.gpus])
            for gpu in self.gpus:
                gpu.advance(step_ns)
            self.age_ns += step_ns
            duration_ns -= step_ns
            if self.age_ns % UTILIZATION_WINDOW_NS == 0:
                for gpu in self.gpus:
                    gpu.end_window()
            self._enter()

    def faults(self) -> tuple[Fault, ...]:
        """What the driver does wrong now because of the scenario's incidents."""
        hangs = (i for i in self._incidents if i.kind == "hang" and i.holds(self.age_ns))
        return tuple(Fault(effect="hang", gpu=incident.gpu) for incident in hangs)

    def _until_cut_ns(self) -> int:
        window_ns = UTILIZATION_WINDOW_NS - self.age_ns % UTILIZATION_WINDOW_NS
        phase_ns = min(gpu.phase_left_ns for gpu in self.gpus)
        edges = (e for i in self._incidents for e in (i.from_ns, i.until_ns) if e is not None)
        return min(window_ns, phase_ns, *(edge - self.age_ns for edge in edges if edge > self.age_ns))

    def _enter(self) -> None:
        """What holds in the interval that begins now."""
        holding = [incident for incident in self._incidents if incident.holds(self.age_ns)]
        self.has_driver = all(incident.kind != "driver_absent" for incident in holding)
        for gpu in self.gpus:
            gpu.set_incidents([i for i in holding if i.gpu in (None, gpu.board.index)])
        for incident in holding:
            if incident.kind in {"xid", "mig"} and incident not in self._begun:
                self._begun.add(incident)
                self._befall(incident)

    def _befall(self, incident: Incident) -> None:
        for gpu in self.gpus:
            if incident.gpu not in (None, gpu.board.index):
                continue
            if incident.kind == "xid":
                gpu.xids.append(incident.xid)
            else:
                gpu.split(incident.mig_layout)


def _placed(incident: Incident, gpus: int) -> Incident:
    """A node that has not as many GPUs suffers it at its last."""
    return incident if incident.gpu is None else replace(incident, gpu=min(incident.gpu, gpus - 1))
