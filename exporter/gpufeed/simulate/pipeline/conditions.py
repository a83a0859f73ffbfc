# SPDX-License-Identifier: Apache-2.0
"""What is not as it should be at this instant: troubles of a scenario, looked up by kind and GPU."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpufeed.simulate.pipeline.calendar import Calendar, Process
from gpufeed.simulate.pipeline.workload import Trouble, TroubleKind

_NS_PER_S: Final = 1_000_000_000


class Conditions:
    """Shares of the usual speed that are left. Changes only when a trouble begins or ends."""

    def __init__(self, calendar: Calendar, troubles: Sequence[Trouble], gpus: int) -> None:
        # a node that has not as many GPUs suffers it at its last
        self._troubles = [(t, None if t.gpu is None else min(t.gpu, gpus - 1)) for t in troubles]
        self._calendar = calendar
        self._factors: dict[tuple[TroubleKind, int], float] = {}
        self._reasons: dict[int, str] = {}
        self._gpus = gpus
        self._update()
        if troubles:
            calendar.start(self._follow())

    def factor(self, kind: TroubleKind, gpu: int) -> float:
        """1 where nothing is wrong."""
        return self._factors.get((kind, gpu), 1.0)

    def lowest(self, kind: TroubleKind, gpus: Sequence[int]) -> float:
        """Of the GPU that suffers most: what all others wait for."""
        if not self._factors:
            return 1.0
        return min(self._factors.get((kind, gpu), 1.0) for gpu in gpus)

    def is_there(self, kind: TroubleKind, gpu: int) -> bool:
        """Whether a trouble of this kind holds, whatever is left of the speed."""
        return (kind, gpu) in self._factors

    def clock_reason(self, gpu: int) -> str:
        """Why the clock is held down; empty: it is not."""
        return self._reasons.get(gpu, "")

    def _follow(self) -> Process:
        for edge_ns in self._edges():
            yield edge_ns - self._calendar.now
            self._update()

    def _edges(self) -> list[int]:
        times = {int(t.from_s * _NS_PER_S) for t, _ in self._troubles}
        times |= {int(t.until_s * _NS_PER_S) for t, _ in self._troubles if t.until_s is not None}
        return sorted(time for time in times if time > 0)

    def _holding(self) -> Iterator[tuple[Trouble, int]]:
        now_s = self._calendar.now / _NS_PER_S
        for trouble, only in self._troubles:
            if trouble.from_s <= now_s and (trouble.until_s is None or now_s < trouble.until_s):
                for gpu in range(self._gpus) if only is None else (only,):
                    yield trouble, gpu

    def _update(self) -> None:
        self._factors.clear()
        self._reasons.clear()
        for trouble, gpu in self._holding():
            key = (trouble.kind, gpu)
            self._factors[key] = self._factors.get(key, 1.0) * trouble.factor
            if trouble.reason:
                self._reasons[gpu] = trouble.reason
