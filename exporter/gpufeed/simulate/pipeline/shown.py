# SPDX-License-Identifier: Apache-2.0
"""A judged node behind the faces of the simple ones: its block, its trees, whatever reads them through real sources.

Neighbours show in what the host adds up (processors, pressure), not as mounts, disks and cards of their own.
"""

from typing import Final

from gpufeed.simulate.activity import Activity, Phase, Scenario
from gpufeed.simulate.block import INTEGRALS
from gpufeed.simulate.faults import Fault
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.host import HostTruth
from gpufeed.simulate.levels import HOST_INTEGRALS
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.host import JudgedHost
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.truth import NS_PER_S, UTILIZATION_WINDOW_NS, GpuTruth, NodeTruth

_FIRST_PID: Final = 4000
_PIDS_PER_RANK: Final = 100
_ENERGY: Final = POSITION["energy_j"]
_FOR_EVER: Final = (Phase(duration_ns=1 << 62, activity=Activity(truth=("idle_free", ""), occupant="none", power=0.0)),)


class ShownGpu(GpuTruth):
    """One GPU, as it was when last looked at."""

    def __init__(self, of: JudgedGpu) -> None:
        self._of = of
        super().__init__(of.board, _FOR_EVER)

    @property
    def pid(self) -> int:
        """Of the process that holds the context; more loaders than usual have room behind it."""
        return _FIRST_PID + _PIDS_PER_RANK * self.board.index

    def look(self, age_ns: int) -> None:
        """Take over how it is now."""
        of = self._of
        host = of.host
        self.integrals = of.integrals[: len(INTEGRALS)]
        self.host = [host[name] for name in HOST_INTEGRALS]
        self.activity, self.levels, self.truth, self.truth_ns = of.activity, of.levels, of.truth, of.truth_ns
        self.loaders = of.site.loaders
        self.xids, self.is_lost, self.recovery_action = list(of.xids), of.is_lost, of.recovery_action
        self.is_port_down, self.port_downs = of.is_port_down, of.port_downs
        self.counts.update(links_up=of.links_up, pcie_width=of.pcie_width)
        self._temperature_c = of.temperature_c
        began_ns = max(0, age_ns - NS_PER_S)
        if age_ns > began_ns:
            self._power_w = of.window(began_ns, age_ns)[_ENERGY] * NS_PER_S / (age_ns - began_ns)


class ShownHost(HostTruth):
    """The host, as it was when last looked at."""

    def look(self, of: JudgedHost) -> None:
        """Take over how it is now."""
        self.cpus, self.elapsed_s = of.cpus, of.elapsed_s
        self.busy_s, self.iowait_s = of.busy_s, of.iowait_s
        self.waiting_s, self.blocked_tasks = of.waiting_s, of.blocked_tasks


class ShownNode(NodeTruth):
    """All of a judged node. Raises what JudgedNode raises."""

    def __init__(self, scenario: JudgedScenario, model: GpuModel, gpus: int, seed: int = 0) -> None:
        self.judged = JudgedNode(scenario, model.key, gpus, seed)
        told = Scenario(name=scenario.name, description=scenario.description, phases=_FOR_EVER)
        super().__init__(told, model, gpus)
        self._shown = [ShownGpu(gpu) for gpu in self.judged.gpus]
        for gpu in self._shown:
            gpu.counts["mig_layout"] = 0
        self.gpus = [*self._shown]
        self._host = ShownHost(gpus)
        self.host = self._host
        self._look()

    def advance(self, duration_ns: int) -> None:
        """Time passes; utilization is that of the last whole window."""
        while duration_ns > 0:
            step_ns = min(duration_ns, UTILIZATION_WINDOW_NS - self.age_ns % UTILIZATION_WINDOW_NS)
            self.judged.advance(step_ns)
            self.age_ns += step_ns
            duration_ns -= step_ns
            if self.age_ns % UTILIZATION_WINDOW_NS == 0:
                self._look()
                for gpu in self.gpus:
                    gpu.end_window()
        self._look()

    def faults(self) -> tuple[Fault, ...]:
        """What the driver does wrong now because of the scenario's incidents."""
        return self.judged.faults()

    def _look(self) -> None:
        self.has_driver = self.judged.has_driver
        for gpu in self._shown:
            gpu.look(self.age_ns)
        self._host.look(self.judged.host)
