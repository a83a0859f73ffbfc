# SPDX-License-Identifier: Apache-2.0
"""The few shapes our dashboards are made of, as classic Grafana JSON (schemaVersion 42).

Ids, refIds and data sources are set here, so that a panel says only what it shows. Lay-out is a flow: panels follow
each other on a grid of 24 columns, a row header starts a new line.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from gpufeed.palette import CAUSE_COLOURS

Json = dict[str, Any]

DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
GRID_COLUMNS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: what is shown, in which unit, and the sentence behind its info mark."""

    title: str
    description: str
    queries: tuple[tuple[str, str], ...]  # (expression, legend)
    unit: str
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    stacked: bool = False
    minimum: float | None = 0
    maximum: float | None = None
    thresholds: tuple[tuple[float | None, str], ...] = ((None, "#009E73"),)
    is_instant: bool = False
    options: Json = field(default_factory=dict)
    names: tuple[tuple[str, str], ...] = ()  # of a table's columns: (label, heading); others are left out
    link: tuple[str, str, str] | None = None  # (column, dashboard, variable): where a cell of it leads

    def render(self, panel_id: int, x: int, y: int) -> Json:
        """The panel's JSON at a place of the grid."""
        rendered: Json = {
            "id": panel_id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(index, *query) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": [*_colour_overrides(self), *_links(self)]},
            "options": self._options(),
        }
        if self.kind == "table":
            rendered["transformations"] = [_columns(self)]
        return rendered

    @property
    def is_now(self) -> bool:
        """Asked for one moment only."""
        return self.is_instant or self.kind in {"stat", "table"}

    def _target(self, index: int, expression: str, legend: str) -> Json:
        return {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": expression,
            "legendFormat": legend,
            "instant": self.is_now,
            "range": not self.is_now,
            "format": "table" if self.kind == "table" else "time_series",
        }

    def _defaults(self) -> Json:
        defaults: Json = {
            "unit": self.unit,
            "noValue": "not measured",
            "thresholds": {
                "mode": "absolute",
                "steps": [{"value": value, "color": colour} for value, colour in self.thresholds],
            },
        }
        if self.minimum is not None:
            defaults["min"] = self.minimum
        if self.maximum is not None:
            defaults["max"] = self.maximum
        if self.kind == "timeseries":
            defaults["custom"] = {
                "drawStyle": "line",
                "lineWidth": 1,
                "fillOpacity": 70 if self.stacked else 8,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            }
        elif self.kind == "state-timeline":
            defaults["mappings"] = [_state_names()]
            defaults["custom"] = {"fillOpacity": 90, "lineWidth": 0, "spanNulls": False}
            defaults["color"] = {"mode": "thresholds"}
        else:
            defaults["color"] = {"mode": "thresholds"}
        return defaults

    def _options(self) -> Json:
        if self.kind == "timeseries":
            return {
                "legend": {"displayMode": "table", "placement": "right", "calcs": ["mean", "max"], "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
                **self.options,
            }
        if self.kind == "stat":
            return {
                "reduceOptions": {"calcs": ["lastNotNull"]},
                "textMode": "auto",
                "colorMode": "value",
                **self.options,
            }
        if self.kind == "state-timeline":
            return {
                "mergeValues": True,
                "showValue": "never",
                "rowHeight": 0.85,
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "single"},
                **self.options,
            }
        return {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}], **self.options}


def _colour_overrides(panel: Panel) -> list[Json]:
    if not any("cause" in legend or "state" in legend for _, legend in panel.queries):
        return []
    return [
        {
            "matcher": {"id": "byRegexp", "options": f"/^(GPU \\d+ )?{name}( .*)?$/"},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in CAUSE_COLOURS.items()
    ]


def _state_names() -> Json:
    """Numbers of dominant states as names in their colours."""
    names = {
        str(place): {"text": name.replace(" ", ": ").replace("_", " "), "color": colour, "index": place}
        for place, (name, colour) in enumerate(CAUSE_COLOURS.items(), 1)
    }
    return {"type": "value", "options": names}


def _links(panel: Panel) -> list[Json]:
    """A cell leads to the dashboard of what it names, with everything chosen so far and the same time."""
    if panel.link is None:
        return []
    column, dashboard, variable = panel.link
    kept = "&".join(f"${{{name}:queryparam}}" for name in ("datasource", "cluster", "job") if name != variable)
    url = f"/d/gpufeed-{dashboard}?{kept}&var-{variable}=${{__value.raw}}&${{__url_time_range}}"
    link = {"title": f"Open {dashboard}", "url": url}
    heading = dict(panel.names)[column]
    return [{"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "links", "value": [link]}]}]


def _columns(panel: Panel) -> Json:
    """Only the columns that are named, in their order."""
    order = {label: place for place, (label, _) in enumerate(panel.names)}
    options = {
        "includeByName": dict.fromkeys(order, True),
        "indexByName": order,
        "renameByName": dict(panel.names),
        "excludeByName": {},
    }
    return {"id": "organize", "options": options}


def query_variable(name: str, label: str, query: str) -> Json:
    """A multi-select variable filled from the data source, with an All that means any."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def flow(rows: tuple[tuple[str, tuple[Panel, ...]], ...]) -> list[Json]:
    """Rows of panels, placed left to right and top to bottom."""
    placed: list[Json] = []
    y = 0
    for title, panels in rows:
        row_id = len(placed) + 1
        placed.append(
            {
                "id": row_id,
                "type": "row",
                "title": title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": GRID_COLUMNS, "h": 1},
                "panels": [],
            }
        )
        y += 1
        x = line_height = 0
        for panel in panels:
            if x + panel.width > GRID_COLUMNS:
                x, y, line_height = 0, y + line_height, 0
            placed.append(panel.render(len(placed) + 1, x, y))
            x += panel.width
            line_height = max(line_height, panel.height)
        y += line_height
    return placed
