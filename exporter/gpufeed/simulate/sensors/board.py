# SPDX-License-Identifier: Apache-2.0
"""What a lane of one GPU reads from the driver."""

from typing import Final, Literal, get_args

from gpufeed.model.frame import AnySample
from gpufeed.model.gpu import (
    ClockEventReason,
    GpuCondition,
    GpuFast,
    GpuIdentity,
    GpuProcesses,
    GpuSlow,
    NvlinkTotals,
    PcieBytes,
)
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.counters import Resettable
from gpufeed.simulate.sensors.power import PowerSensor
from gpufeed.simulate.sensors.scene import Scene

ARCHITECTURES: Final = {5: "volta", 6: "turing", 7: "ampere", 8: "ada", 9: "hopper", 10: "blackwell"}
PCIE_COUNTER_BITS: Final = 32
KIBIBYTE: Final = 1024
_FABRIC_COMPLETED: Final = 3
_IDLE_GENERATION: Final = 1
"""A link falls back to the first generation while nobody uses the board."""

_GRAPHICS, _DRAM = POSITION["graphics_s"], POSITION["dram_s"]
_NVLINK: Final = (POSITION["nvlink_receive_bytes"], POSITION["nvlink_transmit_bytes"])
_PCIE: Final = (POSITION["pcie_transmit_bytes"], POSITION["pcie_receive_bytes"])

Policy = Literal["sw_power_cap", "sync_boost", "board_limit", "low_utilization", "reliability"]
Reason = Literal["sw_thermal", "hw_thermal", "hw_power_brake"]
_POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
_REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class BoardSensors:
    """Of one GPU, but for GPM."""

    def __init__(self, scene: Scene, gpu: JudgedGpu, power: PowerSensor) -> None:
        self._scene = scene
        self._gpu = gpu
        self._power = power
        random = scene.random("board", gpu.board.index)
        window_ns = scene.kit.utilization_window_ns
        self._phase_ns = random.randrange(window_ns) if window_ns else 0
        self._last: tuple[int, list[float]] | None = None
        self._links = Resettable(scene, "nvlink", gpu.board.index)

    def identity(self, _age_ns: int) -> tuple[AnySample, ...]:
        """What does not change."""
        board, model = self._gpu.board, self._gpu.board.model
        return () if self._gpu.is_lost else (
            GpuIdentity(
                gpu=self._scene.key(self._gpu),
                index=board.index,
                name=model.name,
                serial=board.serial if model.has_serial else None,
                pci_bus_id=board.pci_bus_id,
                pci_device_id=model.pci_device_id,
                minor=board.index,
                architecture=ARCHITECTURES.get(model.architecture),
                numa_node=board.numa_node,
                sm_count=model.sm_count,
                power_limit_default_w=model.power_limit_w if model.has_power_limit else None,
                sm_clock_max_hz=model.sm_clock_max_mhz * 1e6,
                memory_clock_max_hz=model.memory_clock_mhz * 1e6 or None,
                pcie_generation_max=model.pcie_generation,
                pcie_width_max=model.pcie_width,
                nvlink_links=model.nvlink_links,
                nvlink_speed_bytes_per_s=model.nvlink_link_mb_per_s * 1e6 or None,
                has_gpm=model.has_gpm and self._scene.sensing.inputs.gpm,
                graphics_clock_max_hz=model.sm_clock_max_mhz * 1e6,
            ),
        )  # fmt: skip

    def fast(self, age_ns: int) -> tuple[AnySample, ...]:
        """How the GPU is, and what changes within a second."""
        gpu = self._gpu
        index, uuid = gpu.board.index, self._scene.uuid(gpu)
        if gpu.is_lost:
            return (GpuCondition(index=index, uuid=uuid, condition="lost", detail="GPU is lost"),)
        sums = self._scene.sums(gpu)
        sample = self._sample(age_ns, sums)
        wrap = 1 << PCIE_COUNTER_BITS
        transmit, receive = (int(sums[at]) % wrap for at in _PCIE)
        bytes_moved = PcieBytes(
            gpu=self._scene.key(gpu), transmit_bytes=transmit, receive_bytes=receive, counter_bits=PCIE_COUNTER_BITS
        )
        return (GpuCondition(index=index, uuid=uuid, condition="ok"), sample, bytes_moved)

    def links(self, age_ns: int) -> tuple[AnySample, ...]:
        """Bytes over all links, in whole kibibytes."""
        model = self._gpu.board.model
        if self._gpu.is_lost or not model.nvlink_links:
            return ()
        sums = self._scene.sums(self._gpu)
        receive, transmit = self._links.counted(age_ns, [sums[at] for at in _NVLINK])
        return (
            NvlinkTotals(
                gpu=self._scene.key(self._gpu),
                receive_bytes=int(receive) // KIBIBYTE * KIBIBYTE,
                transmit_bytes=int(transmit) // KIBIBYTE * KIBIBYTE,
                links=model.nvlink_links,
                links_up=self._gpu.links_up,
            ),
        )

    def processes(self, _age_ns: int) -> tuple[AnySample, ...]:
        """Who holds it."""
        if self._gpu.is_lost:
            return ()
        return (GpuProcesses(gpu=self._scene.key(self._gpu), processes=self._scene.processes(self._gpu)),)

    def slow(self, age_ns: int) -> tuple[AnySample, ...]:
        """What changes within minutes, and once more who it is: that costs nothing."""
        gpu, model = self._gpu, self._gpu.board.model
        if gpu.is_lost:
            return ()
        is_held = self._scene.is_held(gpu)
        return (
            *self.identity(age_ns),
            GpuSlow(
                gpu=self._scene.key(gpu),
                pcie_generation=model.pcie_generation if is_held else min(_IDLE_GENERATION, model.pcie_generation),
                pcie_width=gpu.pcie_width,
                pcie_replays=0,
                persistence_enabled=True,
                ecc_enabled=model.has_ecc,
                mig_enabled=False if model.has_mig else None,
                recovery_action=gpu.recovery_action,
                fabric_state=_FABRIC_COMPLETED if model.has_fabric else None,
                fabric_status=0 if model.has_fabric else None,
                performance_state=0,
                compute_mode=0,
            ),
        )

    def utilization(self, age_ns: int, sums: list[float]) -> tuple[float, float]:
        """Shares of time with a kernel, and with memory traffic, of the last whole window of this product."""
        window_ns = self._scene.kit.utilization_window_ns
        if window_ns:
            ended_ns = (age_ns - self._phase_ns) // window_ns * window_ns + self._phase_ns
            began_ns = max(0, ended_ns - window_ns)
            if ended_ns <= began_ns:
                return 0.0, 0.0
            added = self._gpu.window(began_ns, ended_ns)
            length_ns = ended_ns - began_ns
        else:
            before_ns, before = self._last or (0, [0.0] * len(sums))
            added = [new - old for new, old in zip(sums, before, strict=True)]
            length_ns = age_ns - before_ns
            self._last = (age_ns, sums)
        if not length_ns:
            return 0.0, 0.0
        shares = (min(1.0, added[at] * 1e9 / length_ns) for at in (_GRAPHICS, _DRAM))
        graphics, dram = (round(s, 2) if self._scene.noise.utilization_in_percent else s for s in shares)
        return graphics, dram

    def _sample(self, age_ns: int, sums: list[float]) -> GpuFast:
        gpu, model = self._gpu, self._gpu.board.model
        levels = gpu.levels
        graphics, dram = self.utilization(age_ns, sums)
        used = int(levels.memory_used_bytes)
        usable = model.memory_bytes - model.memory_reserved_bytes
        temperature_c = float(round(gpu.temperature_c))
        return GpuFast(
            gpu=self._scene.key(gpu),
            utilization_ratio=graphics,
            memory_utilization_ratio=dram,
            memory_total_bytes=model.memory_bytes if model.has_framebuffer else None,
            memory_used_bytes=used if model.has_framebuffer else None,
            memory_reserved_bytes=model.memory_reserved_bytes if model.has_framebuffer else None,
            memory_free_bytes=usable - used if model.has_framebuffer else None,
            power_w=self._power.shown_w(age_ns),
            power_instant_w=self._power.instant_w(),
            power_limit_enforced_w=model.power_limit_w if model.has_power_limit else None,
            energy_j=self._power.energy_j(age_ns) if model.has_energy else None,
            temperature_c=temperature_c,
            memory_temperature_c=temperature_c + 8.0 if model.has_memory_temperature else None,
            graphics_clock_hz=levels.sm_clock_mhz * 1e6,
            sm_clock_hz=levels.sm_clock_mhz * 1e6,
            memory_clock_hz=model.memory_clock_mhz * 1e6,
            clock_event_ns=self._clock_event_ns(sums),
            clock_events=levels.clock_events,
        )

    def _clock_event_ns(self, sums: list[float]) -> dict[ClockEventReason, int]:
        """How long each policy held clocks down; newer drivers tell kinds of heat, and the brake, from one another."""
        spent: dict[ClockEventReason, int] = {name: int(sums[POSITION[f"{name}_s"]] * 1e9) for name in _POLICIES}
        spent["thermal_policy"] = int((sums[POSITION["sw_thermal_s"]] + sums[POSITION["hw_thermal_s"]]) * 1e9)
        spent["base_clocks"] = 0
        if self._scene.kit.has_reason_counters:
            spent |= {name: int(sums[POSITION[f"{name}_s"]] * 1e9) for name in _REASONS}
        return spent
