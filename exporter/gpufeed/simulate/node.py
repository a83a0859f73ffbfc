# SPDX-License-Identifier: Apache-2.0
"""A simulated node on disk: its truth, kept in the block that the NVML face reads, and in the trees beside it."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from gpufeed.model.desired import ProbeConfig, SimulatedNode
from gpufeed.simulate.activity import Scenario
from gpufeed.simulate.block import BlockWriter, Header
from gpufeed.simulate.faults import Fault, encode
from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.layout import DEFAULT, Layout
from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios import JUDGED
from gpufeed.simulate.pipeline.shown import ShownNode
from gpufeed.simulate.scenarios import SCENARIOS
from gpufeed.simulate.trees import Trees
from gpufeed.simulate.truth import NodeTruth

AnyScenario = Scenario | JudgedScenario


class DiskNode:
    """The truth and what is written of it. Whoever owns it says how time passes."""

    def __init__(
        self, truth: NodeTruth, root: Path, block_path: Path, *, period_ns: int, layout: Layout = DEFAULT
    ) -> None:
        self.truth = truth
        self.layout = layout  # until the trees are first asked for
        self._root = root
        # the block takes its name with its first content: where it is, it can be read
        self._block_path = block_path
        self._unfinished: Path | None = block_path.with_name(f"{block_path.name}.new")
        self._block = BlockWriter(str(self._unfinished), len(truth.gpus))
        self._period_ns = period_ns
        self._faults = b""
        self._fault_turn = 0

    def write_block(self, now_ns: int, wall_ns: int, faults: Sequence[Fault] = ()) -> None:
        """Put the truth of now, and the faults that stand besides the scenario's own, where the face reads them."""
        standing = (*self.truth.faults(), *faults)
        encoded = encode(standing) if standing else b""
        if encoded != self._faults:
            self._faults = encoded
            self._fault_turn += 1
        header = Header(
            gpus=len(self.truth.gpus),
            now_ns=now_ns,
            wall_ns=wall_ns,
            period_ns=self._period_ns,
            has_driver=self.truth.has_driver,
            fault_bytes=len(encoded),
            fault_turn=self._fault_turn,
            model=self.truth.model.key,
            driver_version=self.truth.driver_version,
        )
        self._block.write(header, [gpu.record() for gpu in self.truth.gpus], encoded)
        if self._unfinished is not None:
            self._unfinished.replace(self._block_path)
            self._unfinished = None

    def write_trees(self, boot_ns: int, wall_ns: int) -> None:
        """Put the truth of now where the readers of sysfs and procfs look."""
        self.trees.write(boot_ns, wall_ns)

    @cached_property
    def trees(self) -> Trees:
        """The trees; what of them does not change is written when they are first asked for."""
        return Trees(self._root, self.truth, self.layout)

    def close(self) -> None:
        """Let go of the block; its file stays."""
        self._block.close()


def scenario_named(name: str) -> AnyScenario:
    """A simple one, or one whose jobs are simulated stage by stage. Raises KeyError where there is none."""
    return SCENARIOS[name] if name in SCENARIOS else JUDGED[name]


def make_truth(scenario: AnyScenario, model: GpuModel, gpus: int, driver_version: str | None = None) -> NodeTruth:
    """The truth of a new node. Raises ValueError where the scenario is not told on this model."""
    if scenario.models and model.key not in scenario.models:
        raise ValueError(f"scenario {scenario.name} is for {', '.join(scenario.models)}, not {model.key}")
    truth: NodeTruth
    if isinstance(scenario, JudgedScenario):
        truth = ShownNode(scenario, model, gpus)
    else:
        truth = NodeTruth(scenario, model, gpus)
    if driver_version is not None:
        truth.driver_version = driver_version
    return truth


def probe_config(root: Path, block_path: Path) -> ProbeConfig:
    """Where a probe finds this node."""
    return ProbeConfig(
        procfs=str(root / "proc"),
        sysfs=str(root / "sys"),
        rootfs=str(root),
        runtime_dir=str(root / "run"),
        simulated=SimulatedNode(truth_path=str(block_path)),
        reports_dir=str(root / "reports"),
    )
