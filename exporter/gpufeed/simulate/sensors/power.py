# SPDX-License-Identifier: Apache-2.0
"""What a board's power sensor shows: a mean over a second, or what it saw in a quarter of the time; and its error."""

from collections import deque
from typing import Final

from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.scene import Scene

SLICE_NS: Final = 25_000_000
EVERY_NS: Final = 100_000_000
MEAN_NS: Final = 1_000_000_000

SLICED: Final = frozenset({"a100", "h100", "h200"})
"""Boards of the generations whose sensor sleeps between its looks."""

_ENERGY: Final = POSITION["energy_j"]


class Slices:
    """Looks at all boards at both ends of every slice: levels stand still for longer than a slice, nearly always."""

    def __init__(self, gpus: list[JudgedGpu]) -> None:
        self.due_ns = EVERY_NS - SLICE_NS
        self._gpus = gpus
        self._began_w: list[float] | None = None
        self._seen: list[deque[float]] = [deque(maxlen=MEAN_NS // EVERY_NS) for _ in gpus]
        self._energy_j = [0.0 for _ in gpus]

    def perform(self, age_ns: int) -> None:
        """One end of a slice."""
        now_w = [gpu.levels.power_w for gpu in self._gpus]
        if self._began_w is None:
            self._began_w = now_w
            self.due_ns = age_ns + SLICE_NS
            return
        for at, (began_w, ended_w) in enumerate(zip(self._began_w, now_w, strict=True)):
            mean_w = (began_w + ended_w) / 2
            self._seen[at].append(mean_w)
            self._energy_j[at] += mean_w * EVERY_NS / 1e9
        self._began_w = None
        self.due_ns = age_ns + EVERY_NS - SLICE_NS

    def last_w(self, gpu: JudgedGpu) -> float:
        """Of the last slice."""
        seen = self._seen[gpu.board.index]
        return seen[-1] if seen else gpu.levels.power_w

    def mean_w(self, gpu: JudgedGpu) -> float:
        """Of the slices of the last second."""
        seen = self._seen[gpu.board.index]
        return sum(seen) / len(seen) if seen else gpu.levels.power_w

    def energy_j(self, gpu: JudgedGpu) -> float:
        """As if each slice stood for the time around it."""
        return self._energy_j[gpu.board.index]


class PowerSensor:
    """Of one board. `slices`: what it sees of the time; None: all of it."""

    def __init__(self, scene: Scene, gpu: JudgedGpu, slices: Slices | None) -> None:
        random, noise = scene.random("power", gpu.board.index), scene.noise
        self._gpu = gpu
        self._slices = slices
        self._gain = 1 + noise.power_gain * random.uniform(-1, 1)
        self._offset_w = noise.power_offset_w * random.uniform(-1, 1)
        self._quantum_w = noise.power_quantum_w

    def shown_w(self, age_ns: int) -> float:
        """nvmlDeviceGetPowerUsage: a mean over a second where the product takes one, else of the moment."""
        if not self._gpu.board.model.has_power_average:
            return self.instant_w()
        if self._slices is not None:
            return self._with_error(self._slices.mean_w(self._gpu))
        began_ns = max(0, age_ns - MEAN_NS)
        if age_ns == began_ns:
            return self.instant_w()
        return self._with_error(self._gpu.window(began_ns, age_ns)[_ENERGY] * 1e9 / (age_ns - began_ns))

    def instant_w(self) -> float:
        """Field 186."""
        seen_w = self._slices.last_w(self._gpu) if self._slices is not None else self._gpu.levels.power_w
        return self._with_error(seen_w)

    def energy_j(self, age_ns: int) -> float:
        """Since the driver was loaded, in whole millijoules; the error of the sensor adds up."""
        gpu, slices = self._gpu, self._slices
        true_j = gpu.integrals[_ENERGY] if slices is None else slices.energy_j(gpu)
        return int(1000 * max(0.0, true_j * self._gain + self._offset_w * age_ns / 1e9)) / 1000

    def _with_error(self, true_w: float) -> float:
        shown_w = max(0.0, true_w * self._gain + self._offset_w)
        return round(shown_w / self._quantum_w) * self._quantum_w if self._quantum_w else shown_w
