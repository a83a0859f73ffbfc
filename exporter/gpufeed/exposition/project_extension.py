# SPDX-License-Identifier: Apache-2.0
"""Values of third-party sources, as `gpufeed_ext_<source>_<metric>`: defined by what they send, held to our rules."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from gpufeed.catalogue.define import PREFIX, MetricDef
from gpufeed.exposition.family import Family
from gpufeed.model.sample import Extension
from gpufeed.model.state import NodeState

_NOT_A_WORD: Final = re.compile(r"[^a-z0-9]+")


def families(state: NodeState) -> Iterator[Family]:
    """A family a metric. One whose name or labels break the rules of a definition is left out; the others stand."""
    by_name: dict[str, list[Extension]] = {}
    for held in state.latest(Extension).values():
        by_name.setdefault(_name(held.sample), []).append(held.sample)
    for name, samples in sorted(by_name.items()):
        labels = tuple(sorted({label for sample in samples for label, _ in sample.labels}))
        are_counters = all(sample.is_counter for sample in samples)
        definition = _definition(name, labels, samples[0].help, samples[0].source, is_counter=are_counters)
        if definition is not None and not (name.endswith("_total") and name.removesuffix("_total") in by_name):
            # a counter below zero, or not a number, would cost the whole page where it is parsed strictly
            told = [sample for sample in samples if not are_counters or sample.value >= 0]
            yield Family(definition, [(_values(labels, sample), sample.value) for sample in told])


def _name(sample: Extension) -> str:
    words = _NOT_A_WORD.sub("_", f"{sample.source}_{sample.metric}".lower()).strip("_")
    name = f"{PREFIX}ext_{words}"
    return f"{name.removesuffix('_total')}_total" if sample.is_counter else name


@lru_cache(maxsize=1024)
def _definition(name: str, labels: tuple[str, ...], about: str, source: str, *, is_counter: bool) -> MetricDef | None:
    try:
        return MetricDef(
            name=name,
            type="counter" if is_counter else "gauge",
            unit="count",
            help=f"{(about or f'From the source {source}').rstrip('.')}.",
            labels=labels,
            source=source,
            profile="minimal",
            collector="extra",
            stability="experimental",
            sheds="extension",
        )
    except ValueError:
        return None


def _values(labels: tuple[str, ...], sample: Extension) -> tuple[str, ...]:
    given = dict(sample.labels)
    return tuple(given.get(label, "") for label in labels)
