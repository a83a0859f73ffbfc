# SPDX-License-Identifier: Apache-2.0
"""Dashboards hold only expressions that our own exposition can answer, and keep the habits of good ones."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from gpufeed.catalogue import METRICS
from gpufeed.model.state import CAUSES
from gpufeed.palette import CAUSE_COLOURS

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
PROMETHEUS_LABELS = {"cluster", "job", "instance", "alertname", "alertstate", "severity", "__name__"}
OF_PROMETHEUS = {"ALERTS", "up"}
RATE = {"rate", "irate", "increase"}


def panels_of(path: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(path.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def expressions_of(path: Path) -> Iterator[str]:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    for panel in panels_of(path):
        for target in panel["targets"]:
            yield target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        match = re.match(r"label_values\((.+), \w+\)\Z", variable.get("definition", ""))
        if match:
            yield match[1]


def parsed(expression: str) -> Any:
    return promql_parser.parse(expression.replace("$__rate_interval", "1m").replace("$__range", "1h"))


def selectors(node: Any, within: str = "") -> Iterator[tuple[Any, str]]:
    """Every vector selector below a node, with the function that stands right around it."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node, within
        return
    if isinstance(node, promql_parser.MatrixSelector):
        yield node.vector_selector, within
        return
    name = node.func.name if isinstance(node, promql_parser.Call) else ""
    for attribute in ("args", "expr", "lhs", "rhs", "param"):
        child = getattr(node, attribute, None)
        for item in child if isinstance(child, list) else [child] if child is not None else []:
            yield from selectors(item, name)


EXPRESSIONS = [
    pytest.param(path, text, id=f"{path.stem}-{number}")
    for path in DASHBOARDS
    for number, text in enumerate(expressions_of(path))
]


def test_there_are_dashboards() -> None:
    assert DASHBOARDS


def test_committed_dashboards_are_what_the_generator_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "grafana" / "build"), str(tmp_path)], check=True)
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.json")}
    assert written == {path.name: path.read_text(encoding="utf-8") for path in DASHBOARDS}


@pytest.mark.parametrize(("path", "expression"), EXPRESSIONS)
def test_every_metric_and_label_of_an_expression_exists(path: Path, expression: str) -> None:
    for selector, _ in selectors(parsed(expression)):
        if selector.name in OF_PROMETHEUS:
            continue
        definition = METRICS[re.sub(r"_(bucket|sum|count)\Z", "", selector.name)]
        matchers = selector.matchers.matchers
        assert {matcher.name for matcher in matchers} <= PROMETHEUS_LABELS | set(definition.labels) | {"le"}, path.name
        for matcher in matchers:
            if matcher.name == "state" and "cause" in definition.labels:
                assert set(matcher.value.split("|")) <= set(CAUSES)
            if matcher.name == "cause" and "state" in definition.labels:
                assert set(matcher.value.split("|")) <= {cause for causes in CAUSES.values() for cause in causes}


@pytest.mark.parametrize(("path", "expression"), EXPRESSIONS)
def test_every_expression_works_on_the_default_profile(path: Path, expression: str) -> None:
    for selector, _ in selectors(parsed(expression)):
        if selector.name not in OF_PROMETHEUS:
            assert METRICS[re.sub(r"_(bucket|sum|count)\Z", "", selector.name)].profile != "full", path.name


@pytest.mark.parametrize(("path", "expression"), EXPRESSIONS)
def test_what_is_chosen_at_the_top_holds_for_every_series(path: Path, expression: str) -> None:
    if "gpufeed_build_info" in expression:  # the variables themselves
        return
    for selector, _ in selectors(parsed(expression)):
        chosen = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
        assert (chosen["cluster"], chosen["job"], chosen["instance"]) == ("$cluster", "$job", "$instance"), path.name


@pytest.mark.parametrize(("path", "expression"), EXPRESSIONS)
def test_rates_are_over_the_interval_that_fits_the_scrapes(path: Path, expression: str) -> None:
    assert set(re.findall(r"\[([^\]]+)\]", expression)) <= {"$__rate_interval"}, path.name


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_states_have_the_colours_of_the_palette(path: Path) -> None:
    for panel in panels_of(path):
        for override in panel["fieldConfig"]["overrides"]:
            if override["matcher"]["id"] == "byRegexp":
                pattern = re.compile(override["matcher"]["options"].strip("/"))
                (colour,) = [one["value"]["fixedColor"] for one in override["properties"]]
                (name,) = [one for one in CAUSE_COLOURS if pattern.match(one) and CAUSE_COLOURS[one] == colour]
                coloured = {f"{state} {cause}" for state, causes in CAUSES.items() for cause in causes}
                assert {one for one in coloured if pattern.match(one)} == {
                    one for one in coloured if one == name or one.split(" ")[0] == name
                }
        for mapping in panel["fieldConfig"]["defaults"].get("mappings", ()):
            places = range(1, len(CAUSE_COLOURS) + 1)
            assert [mapping["options"][str(one)]["color"] for one in places] == list(CAUSE_COLOURS.values())


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_links_lead_to_dashboards_there_are_and_carry_what_was_chosen(path: Path) -> None:
    known = {json.loads(one.read_text(encoding="utf-8"))["uid"]: one for one in DASHBOARDS}
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    assert [(one["includeVars"], one["keepTime"], one["tags"]) for one in dashboard["links"]] == [
        (True, True, ["gpufeed"])
    ]
    for panel in panels_of(path):
        for override in panel["fieldConfig"]["overrides"]:
            for link in (link for one in override["properties"] if one["id"] == "links" for link in one["value"]):
                target, _, query = link["url"].removeprefix("/d/").partition("?")
                variable = re.search(r"var-(\w+)=\$\{__value.raw\}", query)
                names = {one["name"] for one in json.loads(known[target].read_text())["templating"]["list"]}
                assert variable is not None
                assert variable[1] in names
                for kept in ("${datasource:queryparam}", "${cluster:queryparam}", "${__url_time_range}"):
                    assert kept in query


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_columns_of_tables_are_labels_that_the_series_have(path: Path) -> None:
    for panel in panels_of(path):
        if panel["type"] != "table":
            continue
        (target,) = panel["targets"]
        known = set(PROMETHEUS_LABELS) | {"Value"}
        for selector, _ in selectors(parsed(target["expr"])):
            known |= set(METRICS[selector.name].labels) if selector.name in METRICS else set()
        (columns,) = panel["transformations"]
        assert set(columns["options"]["includeByName"]) <= known


@pytest.mark.parametrize(("path", "expression"), EXPRESSIONS)
def test_a_counter_is_always_inside_a_rate(path: Path, expression: str) -> None:
    for selector, within in selectors(parsed(expression)):
        assert not selector.name.endswith("_total") or within in RATE, path.name


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_says_what_it_shows_in_which_unit_and_from_the_chosen_source(path: Path) -> None:
    for panel in panels_of(path):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]
        for target in panel["targets"]:
            assert "$instance" in target["expr"]
            assert target["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_cannot_be_edited_by_accident_and_its_variables_reload(path: Path) -> None:
    dashboard = json.loads(path.read_text(encoding="utf-8"))
    assert dashboard["editable"] is False
    assert dashboard["schemaVersion"] == 42
    assert "__inputs" not in dashboard
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["refresh"] == 2
            assert variable["allValue"] == (".*" if variable["name"] == "cluster" else ".+")
            assert variable["multi"]
            assert variable["includeAll"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_do_not_overlap_and_have_ids_of_their_own(path: Path) -> None:
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        covered = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & covered, panel["title"]
        assert max(x for x, _ in covered) < 24
        cells |= covered
    assert len({panel["id"] for panel in panels}) == len(panels)
