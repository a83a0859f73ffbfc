# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with the node's files while its GPUs go on: cards that flap, vanish, refuse, or count no further."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.layout import TroubleKind
from gpufeed.simulate.trees.network import STORAGE_NETDEV
from gpufeed.simulate.trees.writer import TreeWriter

ROUND_S: Final = 30.0
GOOD_S: Final = 20.0
"""Of each round; then it is bad until the round ends."""

_AT_THEIR_ENDS: Final[Mapping[str, int]] = MappingProxyType(
    {"port_xmit_wait": 2**32 - 1, "link_downed": 2**8 - 1, "symbol_error": 2**16 - 1}
)
_REFUSED_OF_A_PORT: Final = ("rate", "hw_counters/out_of_sequence", "counters/VL15_dropped", "gid_attrs/ndevs/0")
_REFUSED: Final = (
    "proc/pressure/memory",
    f"sys/class/net/{STORAGE_NETDEV}/speed",
    "sys/block/nvme1n1/queue/rotational",
)


class Trouble:
    """Keeps one card in trouble."""

    def __init__(self, tree: TreeWriter, kind: TroubleKind | None, card: str) -> None:
        self._tree = tree
        self._kind = kind
        self._card = card  # its directory in sysfs
        self._is_bad = False
        self._times = 0

    def write(self, elapsed_s: float) -> None:
        """As of now; after everything else was written."""
        is_bad = self._kind in {"saturated", "refusing"} or elapsed_s % ROUND_S >= GOOD_S
        if is_bad == self._is_bad:
            return
        self._is_bad = is_bad
        self._times += is_bad
        match self._kind:
            case "flapping":
                self._flap()
            case "vanishing":
                (self._tree.hide if is_bad else self._tree.show)(self._card)
            case "saturated":
                for name, count in _AT_THEIR_ENDS.items():
                    self._tree.pin(f"{self._card}/ports/1/counters/{name}", f"{count}\n")
            case "refusing":
                for path in (*(f"{self._card}/ports/1/{file}" for file in _REFUSED_OF_A_PORT), *_REFUSED):
                    self._tree.pin(path, None)

    def _flap(self) -> None:
        port = f"{self._card}/ports/1"
        if not self._is_bad:
            for file in ("state", "phys_state"):
                self._tree.unpin(f"{port}/{file}")
            return
        self._tree.pin(f"{port}/state", "1: DOWN\n")
        self._tree.pin(f"{port}/phys_state", "2: Polling\n")
        self._tree.pin(f"{port}/counters/link_downed", f"{1 + self._times}\n")
