# SPDX-License-Identifier: Apache-2.0
"""Which network interfaces are hardware of this node, and what they are attached to: /sys/class/net."""

from typing import Final

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.parse.ethernet import is_representor
from gpufeed.parse.number import parse_count
from gpufeed.parse.pci import is_pci_function
from gpufeed.parse.text import clean_text
from gpufeed.sources.files import Tree
from gpufeed.sources.selection import Selection

CLASS: Final = "class/net"
MAX_INTERFACES: Final = 64
"""A node has a dozen. Where virtual functions look like hardware there may be thousands."""


def physical_interfaces(tree: Tree, selection: Selection) -> tuple[str, ...]:
    """Wanted interfaces with a device behind them, virtual functions of cards here left out, ordered by name.

    Raises SourceError, but not where there is no interface at all.
    """
    try:
        names = tree.names(CLASS)
    except Absent:
        return ()
    return tuple(name for name in names if selection.takes(name) and _is_physical(tree, name))[:MAX_INTERFACES]


def bond_of(tree: Tree, interface: str) -> str | None:
    """The bond that an interface is a member of. Bridges and the like have members too, and are none."""
    candidates = [_master(tree, interface)]
    if candidates == [None]:
        candidates = [name.removeprefix("upper_") for name in _entries(tree, interface) if name.startswith("upper_")]
    return next((name for name in candidates if name and tree.has(f"{CLASS}/{name}/bonding")), None)


def driver_of(tree: Tree, interface: str) -> str | None:
    """The kernel module's name for the driver."""
    return _link(tree, f"{CLASS}/{interface}/device/driver")


def pci_bus_id_of(tree: Tree, interface: str) -> str | None:
    """The PCI function; several interfaces may be on one."""
    target = (_link(tree, f"{CLASS}/{interface}/device") or "").lower()
    return target if is_pci_function(target) else None


def numa_node_of(tree: Tree, interface: str) -> int | None:
    """The memory node that the card is attached to."""
    return _number(tree, f"{CLASS}/{interface}/device/numa_node")


def netdev_of_port(tree: Tree, function: str, port: int) -> str | None:
    """The interface of a port of the card at a PCI function: the only one, or of several the one with its number."""
    try:
        names = tree.names(f"{function}/net")
    except SourceError:
        return None
    if len(names) == 1:
        return names[0]
    return next((name for name in names if _number(tree, f"{function}/net/{name}/dev_port") == port - 1), None)


def _is_physical(tree: Tree, name: str) -> bool:
    entries = _entries(tree, name)
    if "device" not in entries or tree.has(f"{CLASS}/{name}/device/physfn"):
        return False
    return "phys_port_name" not in entries or not _is_representor(tree, name)


def _is_representor(tree: Tree, name: str) -> bool:
    try:
        return is_representor(tree.attribute(f"{CLASS}/{name}/phys_port_name"))
    except SourceError:
        return False  # most drivers refuse to name their ports


def _entries(tree: Tree, name: str) -> tuple[str, ...]:
    try:
        return tree.names(f"{CLASS}/{name}")
    except SourceError:
        return ()  # gone meanwhile, or no interface: `bonding_masters` is a file


def _master(tree: Tree, interface: str) -> str | None:
    return _link(tree, f"{CLASS}/{interface}/master")


def _number(tree: Tree, path: str) -> int | None:
    try:
        return parse_count(tree.attribute(path))
    except (SourceError, ParseError):
        return None


def _link(tree: Tree, path: str) -> str | None:
    try:
        return clean_text(tree.link(path).encode("utf-8", "surrogateescape")) or None
    except SourceError:
        return None
