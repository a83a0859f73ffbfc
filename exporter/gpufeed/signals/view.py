# SPDX-License-Identifier: Apache-2.0
"""All that a decision may look at: the last seconds of every input, what is known of the node, what is usual."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpufeed.model.ids import GpuUuid
from gpufeed.model.sample import Sample
from gpufeed.model.state import GpuRecord, Held
from gpufeed.signals.baselines import Baselines
from gpufeed.signals.meters import Timelines
from gpufeed.signals.samples import Samples
from gpufeed.signals.settings import Settings
from gpufeed.signals.timeline import Timeline, mean

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Inputs of all decisions taken at one frame."""

    timelines: Timelines
    samples: Samples
    records: Mapping[GpuUuid, GpuRecord]
    baselines: Baselines
    settings: Settings
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def line(self, kind: type[Sample], subject: Hashable) -> Timeline:
        """The timeline of one thing; empty where nothing was read."""
        return self.timelines.get((kind, subject), ())

    def mean(self, kind: type[Sample], subject: Hashable, began_ns: int, ended_ns: int) -> Mapping[str, float]:
        """Means of one thing over an interval."""
        found: Mapping[str, float] = self.once(
            (kind, subject, began_ns, ended_ns), lambda: mean(self.line(kind, subject), began_ns, ended_ns)
        )
        return found

    def once(self, key: Hashable, work: Callable[[], T]) -> T:
        """The result of `work`, done for the first who asks: eight GPUs look at the same node."""
        if key not in self._known:
            self._known[key] = work()
        found: T = self._known[key]
        return found

    def latest(self, kind: type[Sample], subject: Hashable) -> Any:  # noqa: ANN401 # of type `kind`, which the caller says
        """The fresh sample of one thing, or None."""
        held: Held[Any] | None = self.samples.get(kind, {}).get(subject)
        return held.sample if held is not None else None
