# SPDX-License-Identifier: Apache-2.0
"""The frame of every dashboard: variables, the way to the others, alerts drawn over time."""

from typing import Final

from panels import DATASOURCE, Json, Panel, flow, query_variable

Rows = tuple[tuple[str, tuple[Panel, ...]], ...]

_NODE: Final = 'cluster=~"$cluster", job=~"$job", instance=~"$instance"'
_VARIABLES: Final = {
    "gpu": ("GPU", f"label_values(gpufeed_gpu_up{{{_NODE}}}, gpu)"),
    "job_id": ("Job id", f"label_values(gpufeed_gpu_job_info{{{_NODE}}}, job_id)"),
    "device": ("Device", f"label_values(gpufeed_ib_port_info{{{_NODE}}}, device)"),
    "kind": ("Kind", f"label_values(gpufeed_storage_info{{{_NODE}}}, kind)"),
    "target": ("Target", f'label_values(gpufeed_storage_info{{{_NODE}, kind=~"$kind"}}, target)'),
}


def dashboard(name: str, title: str, question: str, rows: Rows, variables: tuple[str, ...] = ()) -> Json:
    """One dashboard: the question it answers, its rows, and what can be chosen besides nodes."""
    return {
        "uid": f"gpufeed-{name}",
        "title": f"gpufeed / {title}",
        "description": question,
        "tags": ["gpufeed"],
        "schemaVersion": 42,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": [_alerts()]},
        "links": [_others()],
        "templating": {"list": [*_nodes(), *(query_variable(one, *_VARIABLES[one]) for one in variables)]},
        "panels": flow(rows),
    }


def _nodes() -> list[Json]:
    """`cluster` is a label that many sites do not have: All means any value, and none."""
    build = "gpufeed_build_info"
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}},
        {**query_variable("cluster", "Cluster", f"label_values({build}, cluster)"), "allValue": ".*"},
        query_variable("job", "Job", f'label_values({build}{{cluster=~"$cluster"}}, job)'),
        query_variable("instance", "Node", f'label_values({build}{{cluster=~"$cluster", job=~"$job"}}, instance)'),
    ]


def _others() -> Json:
    return {
        "title": "gpufeed",
        "type": "dashboards",
        "tags": ["gpufeed"],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
    }


def _alerts() -> Json:
    return {
        "name": "Alerts",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "#D55E00",
        "expr": f'ALERTS{{{_NODE}, alertstate="firing", severity=~"page|ticket"}}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{uuid}} {{device}}",
        "step": "30s",
    }
