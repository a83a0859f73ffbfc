# SPDX-License-Identifier: Apache-2.0
"""The network card beside a GPU: its bytes, its waiting in ticks of its own length, its state, its lost packets."""

from typing import Final

from gpufeed.model.fabric import IbCounters, IbDevice, IbErrors, IbPort
from gpufeed.model.frame import AnySample
from gpufeed.model.ids import IbPortKey
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.counters import Resettable
from gpufeed.simulate.sensors.scene import Scene

WORD_BYTES: Final = 4
NARROW_CEILING: Final = (1 << 32) - 1
ERROR_CEILINGS: Final = {"link_downed": (1 << 8) - 1, "port_xmit_discards": (1 << 16) - 1}
"""Of counters that stop there and stay, on a narrow port."""
_MTU_BYTES: Final = 4096
_ACTIVE, _DOWN = 4, 1
_LINK_UP, _POLLING = 5, 2
_SUMS: Final = tuple(
    POSITION[name] for name in ("ib_receive_bytes", "ib_transmit_bytes", "ib_waiting_s", "ib_lost_packets")
)


class PortSensors:
    """Of one card with one port."""

    def __init__(self, scene: Scene, gpu: JudgedGpu) -> None:
        self._scene = scene
        self._gpu = gpu
        self._key = IbPortKey(gpu.board.nic, 1)
        self._counters = Resettable(scene, "port", gpu.board.index)

    def counters(self, age_ns: int) -> tuple[AnySample, ...]:
        """Bytes in whole words. Waiting stops counting at the end of a narrow register."""
        receive, transmit, waiting_s, _ = self._sums(age_ns)
        ticks = int(waiting_s * self._scene.kit.wait_ticks_per_s)
        return (
            IbCounters(
                port=self._key,
                receive_bytes=int(receive) // WORD_BYTES * WORD_BYTES,
                transmit_bytes=int(transmit) // WORD_BYTES * WORD_BYTES,
                receive_packets=int(receive) // _MTU_BYTES,
                transmit_packets=int(transmit) // _MTU_BYTES,
                transmit_wait_ticks=min(ticks, NARROW_CEILING) if self._scene.kit.has_narrow_ports else ticks,
            ),
        )

    def state(self, age_ns: int) -> tuple[AnySample, ...]:
        """The card, and its port as it is."""
        board, is_down = self._gpu.board, self._gpu.is_port_down
        lost = int(self._sums(age_ns)[3])
        errors = {"link_downed": self._gpu.port_downs, "port_xmit_discards": lost}
        if self._scene.kit.has_narrow_ports:
            errors = {name: min(count, ERROR_CEILINGS[name]) for name, count in errors.items()}
        return (
            IbDevice(
                device=board.nic, hca_type=board.model.nic_type, pci_bus_id=board.nic_pci_bus_id,
                numa_node=board.numa_node,
            ),
            IbPort(
                port=self._key,
                link_layer="InfiniBand",
                state_id=_DOWN if is_down else _ACTIVE,
                physical_state_id=_POLLING if is_down else _LINK_UP,
                rate_bytes_per_s=self._gpu.port_bytes_per_s,
                width=4,
            ),
            IbErrors(
                port=self._key,
                errors=errors,
                hw_events={"out_of_sequence": lost, "packet_seq_err": lost, "local_ack_timeout_err": lost // 1000},
                saturated=tuple(name for name, count in errors.items() if count == self._ceiling(name)),
            ),
        )  # fmt: skip

    def _ceiling(self, name: str) -> int | None:
        return ERROR_CEILINGS[name] if self._scene.kit.has_narrow_ports else None

    def _sums(self, age_ns: int) -> list[float]:
        sums = self._scene.sums(self._gpu)
        return self._counters.counted(age_ns, [sums[at] for at in _SUMS])
