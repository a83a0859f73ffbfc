# SPDX-License-Identifier: Apache-2.0
"""PURE. Every metric we promise, once: exposition, METRICS.md and the checks of rules and dashboards derive from it.

A definition is a constant of one of the modules below; nothing else has to be told of it.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from gpufeed.catalogue import (
    balance,
    fabric,
    gpm,
    gpu,
    gpu_errors,
    gpu_limits,
    host,
    jobs,
    network,
    nvlink,
    process,
    self,
    signals,
    storage,
    xid,
)
from gpufeed.catalogue.define import MetricDef

GROUPS: Final[tuple[ModuleType, ...]] = (
    gpu, gpu_limits, gpu_errors, gpm, xid, jobs, nvlink, fabric, network,
    storage, host, signals, balance, self, process,
)  # fmt: skip
"""The modules, in the order in which METRICS.md shows them. Each has a `TITLE`."""


def definitions(group: ModuleType) -> tuple[MetricDef, ...]:
    """The definitions of one module, in the order in which they are written."""
    return tuple(value for value in vars(group).values() if isinstance(value, MetricDef))


def index(found: Iterable[MetricDef]) -> Mapping[str, MetricDef]:
    """Definitions by name. Raises ValueError where two share a name, also after OpenMetrics cut off their suffix."""
    by_name: dict[str, MetricDef] = {}
    families: dict[str, str] = {}
    for definition in found:
        family = definition.name.removesuffix("_total").removesuffix("_info")
        if family in families:
            raise ValueError(f"{definition.name} and {families[family]} are one metric family")
        families[family] = definition.name
        by_name[definition.name] = definition
    return MappingProxyType(by_name)


METRICS: Final = index(definition for group in GROUPS for definition in definitions(group))
"""Every definition by its full name."""
