# SPDX-License-Identifier: Apache-2.0
"""One series at one resolution, in memory that does not grow."""

from array import array
from dataclasses import dataclass, field
from math import isnan, nan

from gpufeed.history.statistics import Run


@dataclass(frozen=True, slots=True)
class Resolution:
    """A sample every `step_s`, and so many of them."""

    step_s: int
    slots: int


@dataclass(slots=True)
class Ring:
    """The value of slot n stands at n modulo the length, until a later slot needs the place. NaN is a gap."""

    resolution: Resolution
    values: "array[float]" = field(init=False)
    last_slot: int | None = None
    first_slot: int = 0  # before it nothing was ever written: nobody need look there

    def __post_init__(self) -> None:
        self.values = array("d", [nan]) * self.resolution.slots

    def write(self, slot: int, value: float) -> None:
        """Put `value` in `slot`; what lies between it and the slot before is a gap. Earlier slots are not rewritten."""
        if self.last_slot is None:
            self.first_slot = slot
        else:
            if slot < self.last_slot:
                return
            for gap in range(max(self.last_slot + 1, slot - self.resolution.slots + 1), slot):
                self.values[gap % self.resolution.slots] = nan
        self.values[slot % self.resolution.slots] = value
        self.last_slot = slot

    def read(self, first: int, last: int) -> list[tuple[int, float]]:
        """Slots and values from `first` to `last`, both included; gaps are left out."""
        first, last = self.within(first, last)
        if first > last:
            return []
        begin, end = first % self.resolution.slots, last % self.resolution.slots + 1
        values = self.values[begin:end] if begin < end else self.values[begin:] + self.values[:end]
        return [(slot, value) for slot, value in enumerate(values, first) if not isnan(value)]

    def within(self, first: int, last: int) -> tuple[int, int]:
        """`first` and `last` brought inside what is remembered; nothing is where the first is greater."""
        if self.last_slot is None:
            return (0, -1)
        return max(first, self.first_slot, self.last_slot - self.resolution.slots + 1), min(last, self.last_slot)


@dataclass(slots=True)
class CounterRing(Ring):
    """A ring that knows at any time what was counted between two slots, without reading those between them.

    Thousands of windows of half an hour are looked at every minute: each must not cost as many steps as it has samples.
    """

    counts: "array[int]" = field(init=False)  # samples written up to and with a slot
    resets: list[tuple[int, float]] = field(default_factory=list)  # slot, and the value before it fell
    before: float = nan  # the value before the last slot

    def __post_init__(self) -> None:
        Ring.__post_init__(self)
        self.counts = array("Q", [0]) * self.resolution.slots

    def write(self, slot: int, value: float) -> None:
        """As in any ring."""
        last, length = self.last_slot, self.resolution.slots
        if last is not None and slot < last:
            return
        count = 1 if last is None else self.counts[last % length] + (slot > last)
        if last is not None and slot > last:
            self.before = self.values[last % length]
            self.resets = [reset for reset in self.resets if reset[0] > slot - length]
        elif self.resets and self.resets[-1][0] == slot:
            self.resets.pop()
        if value < self.before:
            self.resets.append((slot, self.before))
        Ring.write(self, slot, value)
        self.counts[slot % length] = count

    def run(self, first: int, last: int) -> Run | None:
        """The samples from slot `first` to `last`, both included; None: there are none."""
        first, last = self.within(first, last)
        length = self.resolution.slots
        while first <= last and isnan(self.values[first % length]):
            first += 1
        while first <= last and isnan(self.values[last % length]):
            last -= 1
        if first > last:
            return None
        began, ended = self.values[first % length], self.values[last % length]
        increase = ended - began
        for slot, lost in self.resets:
            if first < slot <= last:
                increase += lost
        samples = self.counts[last % length] - self.counts[first % length] + 1
        return Run(began_s=first, ended_s=last, samples=samples, first=began, increase=increase)
