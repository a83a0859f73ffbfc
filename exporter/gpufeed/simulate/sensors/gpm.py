# SPDX-License-Identifier: Apache-2.0
"""GPM: exact means between two samples, as far as they are given, and as far as their times are known."""

from typing import Final

from gpufeed.model.gpu import GpmInterval
from gpufeed.simulate.pipeline.gpu import JudgedGpu
from gpufeed.simulate.pipeline.track import POSITION
from gpufeed.simulate.sensors.scene import BOOT_NS, Scene

SHORTEST_NS: Final = 110_000_000
LONGEST_NS: Final = 10_000_000_000

RATIOS: Final = {
    "graphics_ratio": "graphics_s",
    "sm_ratio": "sm_s",
    "occupancy_ratio": "occupancy_s",
    "tensor_ratio": "tensor_s",
    "dram_ratio": "dram_s",
}
RATES: Final = {
    "pcie_transmit_bytes_per_s": "pcie_transmit_bytes",
    "pcie_receive_bytes_per_s": "pcie_receive_bytes",
    "nvlink_receive_bytes_per_s": "nvlink_receive_bytes",
    "nvlink_transmit_bytes_per_s": "nvlink_transmit_bytes",
}
"""Fields of the sample, and the sums of the truth that they are the rates of."""

_METRICS: Final = tuple(
    (name, POSITION[of], name in RATIOS, name.startswith("nvlink")) for name, of in (RATIOS | RATES).items()
)


class GpmSensor:
    """Of one board."""

    def __init__(self, scene: Scene, gpu: JudgedGpu) -> None:
        self._scene = scene
        self._gpu = gpu
        self._random = scene.random("gpm", gpu.board.index)
        self._older: list[float] | None = None
        self._older_ns = 0  # age at which it was taken
        self._stamped_ns = 0  # age at which it is said to have been

    def read(self, age_ns: int) -> tuple[GpmInterval, ...] | None:
        """Means since the last read; none after the first; None: it failed, and so will the next be the first."""
        random, noise = self._random, self._scene.noise
        if self._older is not None and age_ns - self._older_ns < SHORTEST_NS:
            return ()
        newer = self._scene.sums(self._gpu)
        stamped_ns = age_ns + int(random.random() * noise.gpm_delay_s * 1e9)
        older, older_ns, said_ns = self._older, self._older_ns, self._stamped_ns
        self._older, self._older_ns, self._stamped_ns = newer, age_ns, stamped_ns
        if random.random() < noise.gpm_failures:
            self._older = None
            return None
        if older is None or not said_ns < stamped_ns or age_ns - older_ns > LONGEST_NS:
            return ()
        values = self._means(older, newer, (age_ns - older_ns) / 1e9)
        return (
            GpmInterval(
                gpu=self._scene.key(self._gpu),
                began_ns=BOOT_NS + said_ns,
                ended_ns=BOOT_NS + stamped_ns,
                pipes=None,
                **values,
            ),
        )

    def _means(self, older: list[float], newer: list[float], seconds: float) -> dict[str, float]:
        random, noise = self._random, self._scene.noise
        has_links = self._gpu.board.model.nvlink_links > 0
        values: dict[str, float] = {}
        for name, at, is_ratio, is_of_links in _METRICS:
            error = 1 + noise.gpm_error * (2 * random.random() - 1)
            if random.random() < noise.gpm_missing or (is_of_links and not has_links):
                continue
            mean = (newer[at] - older[at]) / seconds * error
            values[name] = min(1.0, mean) if is_ratio else mean
        return values
