# SPDX-License-Identifier: Apache-2.0
"""What a job's computing looks like on one GPU: the highest levels of the last minutes, and how even they are.

An interval in which a collective ran beside computing shows levels between the two. The upper end is the computing
itself, as soon as one interval lies wholly within it. Where every interval is the same mixture (steps shorter than an
interval), levels stay even and their highest says nothing of the upper end.
"""

from dataclasses import dataclass, replace
from math import exp
from typing import Final

from gpufeed.units import NS_PER_S

BUCKET_NS: Final = 150 * NS_PER_S
"""The highest levels are those of this bucket and the one before: a job that changes is known again in minutes."""
RESIDENT: Final = 0.5
"""Below, a share of an interval's active part is too much of a quotient of two small numbers."""
EVEN: Final = 1.25
"""Levels whose highest is at most this much above their mean."""
COMPUTING_FROM: Final = 0.97
"""Of the highest level of SMs: an interval that is all computing."""
FADE_S: Final = 30.0
SETTLED_S: Final = 3.0
MOSTLY: Final = 0.5
FULL: Final = 0.77
"""Of a link's rate in one direction: more than this no exchange gets through (ring all-reduce: 78 to 82 %)."""
LEAST_LEFT: Final = 0.2
EXCHANGED_MIN: Final = 1e-4
"""Of a link's rate: less is bookkeeping."""


@dataclass(frozen=True, slots=True)
class Highest:
    """Of one bucket, each as a share of the active time; `sum_s` and `seconds` make the mean of the tensor pipes."""

    since_ns: int = 0
    sm: float = 0.0
    tensor: float = 0.0
    power: float = 0.0
    memory: float = 0.0
    moving_nvlink: float = 0.0  # of the links, while nothing but an exchange went on
    moving_fabric: float = 0.0
    peak_nvlink: float = 0.0  # of the links, over any interval
    peak_fabric: float = 0.0
    tensor_sum_s: float = 0.0
    power_sum_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Levels:
    """One interval's, each 0 to 1; None: not read."""

    active: float
    sm: float | None = None
    tensor: float | None = None
    power: float | None = None
    memory: float | None = None
    nvlink: float = 0.0
    fabric: float = 0.0


@dataclass(frozen=True, slots=True)
class Footprint:
    """Of one GPU's job; empty until something has run."""

    now: Highest = Highest()
    before: Highest = Highest()
    hidden_nvlink: float = 0.0  # levels of the links while all is computing: what runs behind it
    hidden_fabric: float = 0.0
    nvlink_s: float = 0.0  # level times seconds that did not run behind the computing, fading
    fabric_s: float = 0.0
    exposed_s: float = 0.0  # seconds in which nothing but an exchange went on, fading alike
    entered_s: float = 0.0  # seconds inside one with nothing beside it, waiting included, fading alike
    has_exchanged: bool = False  # bytes have gone to another GPU or node

    @property
    def sm(self) -> float:
        """Highest share of SMs with work."""
        return max(self.now.sm, self.before.sm)

    @property
    def tensor(self) -> float:
        """Highest share of time of the tensor pipes."""
        return max(self.now.tensor, self.before.tensor)

    @property
    def power(self) -> float:
        """Highest power, between idle and limit."""
        return max(self.now.power, self.before.power)

    @property
    def memory(self) -> float:
        """Highest share of time in which memory was read or written."""
        return max(self.now.memory, self.before.memory)

    @property
    def moving_nvlink(self) -> float:
        """Highest level of NVLink while nothing but an exchange went on."""
        return max(self.now.moving_nvlink, self.before.moving_nvlink)

    @property
    def moving_fabric(self) -> float:
        """Highest level of the fabric port while nothing but an exchange went on."""
        return max(self.now.moving_fabric, self.before.moving_fabric)

    @property
    def peak_nvlink(self) -> float:
        """Highest level of NVLink over any interval, whatever else went on."""
        return max(self.now.peak_nvlink, self.before.peak_nvlink)

    @property
    def peak_fabric(self) -> float:
        """The same of the fabric port."""
        return max(self.now.peak_fabric, self.before.peak_fabric)

    @property
    def seen_s(self) -> float:
        """Seconds that the highest levels are of."""
        return self.now.seconds + self.before.seconds

    @property
    def is_even(self) -> bool:
        """Whether all intervals look alike: their highest is then no more than what they all are."""
        tensor_s = self.now.tensor_sum_s + self.before.tensor_sum_s
        power_s = self.now.power_sum_s + self.before.power_sum_s
        if tensor_s > 0:
            return self.tensor * self.seen_s <= EVEN * tensor_s
        return self.power * self.seen_s <= EVEN * power_s

    def after(self, levels: Levels, at_ns: int, length_s: float) -> "Footprint":
        """With one interval more."""
        if levels.active < RESIDENT:
            return self
        if not self.has_exchanged and max(levels.nvlink, levels.fabric) >= EXCHANGED_MIN:
            return replace(self, has_exchanged=True).after(levels, at_ns, length_s)
        of = self if at_ns - self.now.since_ns < BUCKET_NS else replace(self, now=Highest(at_ns), before=self.now)
        now = of.now
        sm, tensor, power, memory = (
            min(1.0, (value or 0.0) / levels.active)
            for value in (levels.sm, levels.tensor, levels.power, levels.memory)
        )
        risen = replace(
            now,
            sm=max(now.sm, sm),
            tensor=max(now.tensor, tensor),
            power=max(now.power, power),
            memory=max(now.memory, memory),
            peak_nvlink=max(now.peak_nvlink, levels.nvlink),
            peak_fabric=max(now.peak_fabric, levels.fabric),
            tensor_sum_s=now.tensor_sum_s + tensor * length_s,
            power_sum_s=now.power_sum_s + power * length_s,
            seconds=now.seconds + length_s,
        )
        if sm < COMPUTING_FROM * of.sm or not sm:
            return replace(of, now=risen)
        weight = min(1.0, length_s / FADE_S)
        return replace(
            of,
            now=risen,
            hidden_nvlink=of.hidden_nvlink + weight * (levels.nvlink - of.hidden_nvlink),
            hidden_fabric=of.hidden_fabric + weight * (levels.fabric - of.hidden_fabric),
        )

    def with_exchange(self, levels: Levels, exposed_s: float, entered_s: float, length_s: float) -> "Footprint":
        """With one more interval, of which an exchange was all there was for `exposed_s` seconds.

        `entered_s`: for how long it was entered, also where it stood because a rank was late.
        """
        fading = exp(-min(60.0, length_s / FADE_S))
        hidden_s = max(0.0, length_s - exposed_s)
        nvlink_s = max(0.0, levels.nvlink * length_s - self.hidden_nvlink * hidden_s)
        fabric_s = max(0.0, levels.fabric * length_s - self.hidden_fabric * hidden_s)
        now = self.now
        if exposed_s >= MOSTLY * length_s:
            now = replace(
                now,
                moving_nvlink=max(now.moving_nvlink, min(1.0, nvlink_s / exposed_s)),
                moving_fabric=max(now.moving_fabric, min(1.0, fabric_s / exposed_s)),
            )
        return replace(
            self,
            now=now,
            nvlink_s=self.nvlink_s * fading + nvlink_s,
            fabric_s=self.fabric_s * fading + fabric_s,
            exposed_s=self.exposed_s * fading + exposed_s,
            entered_s=self.entered_s * fading + entered_s,
        )

    @property
    def exchange_nvlink(self) -> float | None:
        """Mean level of NVLink while nothing but an exchange goes on; None: too little of that was seen."""
        return min(1.0, self.nvlink_s / self.exposed_s) if self.exposed_s >= SETTLED_S else None

    @property
    def exchange_fabric(self) -> float | None:
        """The same of the fabric port, in what of that time NVLink leaves to it."""
        if self.exposed_s < SETTLED_S:
            return None
        left_s = self.exposed_s - min(self.nvlink_s / FULL, (1 - LEAST_LEFT) * self.exposed_s)
        return min(1.0, self.fabric_s / left_s)


UNKNOWN: Final = Footprint()
"""Of a job of which nothing has been seen yet."""
