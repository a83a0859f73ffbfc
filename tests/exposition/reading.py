# SPDX-License-Identifier: Apache-2.0
"""Rows of one metric as tests want them: labels by name beside the value."""

from gpufeed.exposition.family import Family, label_pairs
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.state import NodeState

Rows = list[tuple[dict[str, str], float]]


def families_of(state: NodeState) -> list[Family]:
    return list(families(state, ServerFacts()))


def family_of(state: NodeState, name: str, server: ServerFacts | None = None) -> Family | None:
    found = [family for family in families(state, server or ServerFacts()) if family.definition.name == name]
    assert len(found) <= 1
    return found[0] if found else None


def rows_of(state: NodeState, name: str, server: ServerFacts | None = None) -> Rows:
    family = family_of(state, name, server)
    return [(dict(label_pairs(family.definition, values)), value) for values, value in family.rows] if family else []
