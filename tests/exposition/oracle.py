# SPDX-License-Identifier: Apache-2.0
"""What prometheus_client writes of families of ours, and its parsers of both formats, with types."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import prometheus_client.openmetrics.exposition
import prometheus_client.openmetrics.parser
import prometheus_client.parser
from prometheus_client.core import Metric

from gpufeed.catalogue.define import MetricDef
from gpufeed.exposition.family import Family, Histogram

parse_text: Callable[[str], Iterable[Metric]] = prometheus_client.parser.text_string_to_metric_families
parse_openmetrics: Callable[[str], Iterable[Metric]] = (
    prometheus_client.openmetrics.parser.text_string_to_metric_families
)
write_text: Callable[["Oracle"], bytes] = prometheus_client.generate_latest
write_openmetrics: Callable[["Oracle"], bytes] = prometheus_client.openmetrics.exposition.generate_latest


@dataclass
class Oracle:
    """A registry of prometheus_client that collects families of ours."""

    found: Iterable[Family]

    def collect(self) -> Iterator[Metric]:
        for family in self.found:
            definition = family.definition
            metric = Metric(
                definition.name.removesuffix("_total").removesuffix("_info"), definition.help, definition.type
            )
            for values, value in family.rows:
                metric.add_sample(definition.name, labels_of(definition, values), value)
            for values, histogram in family.histograms:
                add_histogram(metric, definition, labels_of(definition, values), histogram)
            yield metric


def labels_of(definition: MetricDef, values: tuple[str, ...]) -> dict[str, str]:
    labels = {name: cleaned(value) for name, value in zip(definition.labels, values, strict=True)}
    return {name: value for name, value in labels.items() if value or name not in {"gpu_instance", "compute_instance"}}


def cleaned(value: str) -> str:
    """Controls, surrogates and line separators replaced: by Unicode's own categories."""
    return "".join("\ufffd" if unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} else one for one in value)


def add_histogram(metric: Metric, definition: MetricDef, labels: dict[str, str], histogram: Histogram) -> None:
    running = 0
    for bound, count in zip([*definition.buckets, math.inf], histogram.counts, strict=True):
        running += count
        metric.add_sample(
            f"{definition.name}_bucket", labels | {"le": "+Inf" if bound == math.inf else str(bound)}, running
        )
    metric.add_sample(f"{definition.name}_count", labels, running)
    metric.add_sample(f"{definition.name}_sum", labels, histogram.total)
