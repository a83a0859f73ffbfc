# SPDX-License-Identifier: Apache-2.0
"""NVIDIA boards by the PCI tree: what should be there, whether or not a driver is."""

from typing import Final

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.gpu import PciGpus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.parse.number import parse_integer
from gpufeed.parse.pci import pci_path
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Statuses

NVIDIA: Final = 0x10DE
GPU_CLASSES: Final = frozenset({0x0300, 0x0302})
"""VGA and 3D controllers. A board's audio, USB and NVSwitch functions are devices of their own."""

RARE: Final = GroupName("host.rare")
DEVICES: Final = "bus/pci/devices"
_PROGRAMMING_INTERFACE_BITS: Final = 8


class PciSource:
    """Plans the lane `pci`. It counts as reading of the host: NVML may fail beside it."""

    name = "pci"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none where GPUs are not looked at."""
        if not config.options("nvml").enabled:
            return ()
        group = Group(name=RARE, collector="host", period_ns=config.period_ns(RARE))
        return (LanePlan(lane=LaneId("pci"), groups=(group,), open=open_pci),)


def open_pci(_spec: NoSpec, desk: Desk) -> "PciReader":
    """A reader of the configured sysfs."""
    return PciReader(desk)


class PciReader:
    """Looks through the PCI functions for GPUs. What a function is does not change while it is there."""

    def __init__(self, desk: Desk) -> None:
        self._tree = Tree(desk.config.sysfs, desk)
        self._statuses = Statuses()
        self._gpus: dict[str, tuple[str, ...] | None] = {}  # by function: where a GPU is, None of what is none

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """One PciGpus, ordered by bus id; none where there is no PCI at all."""
        try:
            functions = self._tree.names(DEVICES)
        except Absent as error:
            return Outcome(inputs=self._statuses.news(InputStatus("pci", "", "absent", str(error))))
        known = self._gpus
        self._gpus = {
            name: known[name] if name in known else self._path(name) if self._is_gpu(name) else None
            for name in functions
        }
        found = {name.lower(): path for name, path in self._gpus.items() if path is not None}
        gpus = PciGpus(bus_ids=tuple(found), paths=tuple(found.values()))
        return Outcome(samples=(gpus,), inputs=self._statuses.news(InputStatus("pci", "", "available")))

    def close(self) -> None:
        """Nothing is held."""

    def _path(self, function: str) -> tuple[str, ...]:
        try:
            return pci_path(self._tree.target(f"{DEVICES}/{function}"))
        except SourceError:
            return ()

    def _is_gpu(self, function: str) -> bool:
        try:
            vendor = parse_integer(self._tree.attribute(f"{DEVICES}/{function}/vendor"))
            if vendor != NVIDIA:
                return False
            device_class = parse_integer(self._tree.attribute(f"{DEVICES}/{function}/class"))
        except (SourceError, ParseError):
            return False  # a function that was unplugged while we looked
        return device_class is not None and device_class >> _PROGRAMMING_INTERFACE_BITS in GPU_CLASSES
