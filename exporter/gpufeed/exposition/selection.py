# SPDX-License-Identifier: Apache-2.0
"""Which families and rows are exported: the profile, the drop list, and the cap on series.

The cap is kept by leaving out whole groups in the order of `SHED_ORDER`; what no group has is never left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gpufeed.catalogue.define import PROFILES, SHED_ORDER, MetricDef, Profile
from gpufeed.catalogue.self import SERIES, SERIES_SHED
from gpufeed.exposition.family import Family, Labels

_DISK: Final = ("kind", "block")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Families to write, and what was left out by group."""

    families: tuple[Family, ...]
    shed: Mapping[str, int] = field(default_factory=dict)


def select(families: Iterable[Family], profile: Profile, drop: Collection[str], max_series: int) -> Selection:
    """What `profile` has, less the metrics named in `drop`, within `max_series`; says how many series it has itself."""
    wanted = [_in_profile(family, profile) for family in families if family.definition.name not in drop]
    chosen = [family for family in _merge(wanted) if not family.is_empty]
    groups: Counter[str] = Counter()
    for family in chosen:
        groups.update(_groups(family))
    total = sum(map(series_of, chosen)) + 1  # gpufeed_series itself
    shed: dict[str, int] = {}
    for group in SHED_ORDER:
        if total > max_series and groups[group]:
            shed[group] = groups[group]
            total += 1 - groups[group]  # a row of gpufeed_series_shed says so
    if shed:
        chosen = [kept for family in chosen if not (kept := _without(family, shed)).is_empty]
    own = [Family(SERIES, [((profile,), total)]), Family(SERIES_SHED, [((name,), n) for name, n in shed.items()])]
    counted = [family for family in own if not family.is_empty and family.definition.name not in drop]
    return Selection(families=(*chosen, *counted), shed=shed)


def series_of(family: Family) -> int:
    """How many series a family is: a histogram's row is one for each bucket, one above them, a sum and a count."""
    return len(family.rows) + len(family.full_rows) + len(family.histograms) * (len(family.definition.buckets) + 3)


def _merge(families: Iterable[Family]) -> list[Family]:
    # a format allows each metric only once: rows of a second family of that name join the first
    by_name: dict[str, Family] = {}
    for family in families:
        first = by_name.get(family.definition.name)
        by_name[family.definition.name] = family if first is None else _joined(first, family)
    return list(by_name.values())


def _in_profile(family: Family, profile: Profile) -> Family:
    definition = family.definition
    if definition.row_profile is None:
        rows = family.rows if _has(profile, definition.profile) else []
    else:
        rows = [row for row in family.rows if _has(profile, definition.profile_of(row[0]))]
    return Family(
        definition,
        rows + family.full_rows if profile == "full" else rows,
        histograms=family.histograms if _has(profile, definition.profile) else [],
    )


def _has(profile: Profile, smallest: Profile) -> bool:
    return PROFILES.index(profile) >= PROFILES.index(smallest)


def _joined(first: Family, second: Family) -> Family:
    return Family(first.definition, first.rows + second.rows, histograms=first.histograms + second.histograms)


def _group(definition: MetricDef, values: Labels) -> str:
    if definition.sheds == "mount" and (definition.labels[0], values[0]) == _DISK:
        return "disk"
    return definition.sheds


def _groups(family: Family) -> Mapping[str, int]:
    if family.definition.sheds != "mount":
        return {family.definition.sheds: series_of(family)}
    return Counter(_group(family.definition, values) for values, _ in family.rows)


def _without(family: Family, shed: Collection[str]) -> Family:
    definition = family.definition
    if definition.sheds != "mount":
        return Family(definition) if definition.sheds in shed else family
    return Family(definition, [row for row in family.rows if _group(definition, row[0]) not in shed])
