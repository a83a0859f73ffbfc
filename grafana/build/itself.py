# SPDX-License-Identifier: Apache-2.0
"""The dashboard of gpufeed itself: can the others be believed, and what does it cost."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import NODE, rate

_GOOD, _BAD = "#009E73", "#D55E00"
_NODE: Final = "{{instance}}"

NOW: Final = (
    Panel(
        title="Probes up",
        description="Nodes whose probe sends frames.",
        queries=((f"sum(gpufeed_probe_up{{{NODE}}})", "up"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
    ),
    Panel(
        title="Lanes stuck",
        description="Readings whose driver or kernel call has not returned.",
        queries=((f"count(gpufeed_lane_stuck_seconds{{{NODE}}} > 0) or vector(0)", "stuck"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="Configurations refused",
        description="Nodes where the last configuration was wrong and the old one stays.",
        queries=((f"count(gpufeed_config_last_reload_successful{{{NODE}}} == 0) or vector(0)", "refused"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, _GOOD), (1, _BAD)),
    ),
    Panel(
        title="Versions and configurations",
        description="More than one row is a roll-out under way, or forgotten.",
        queries=((f"count by (version, simulated) (gpufeed_build_info{{{NODE}}})", ""),),
        unit="short",
        kind="table",
        width=6,
        height=4,
        names=(("version", "Version"), ("simulated", "Simulated"), ("Value", "Nodes")),
    ),
)

TRUST: Final = (
    Panel(
        title="Age of the newest reading",
        description="By collector. What is too old is not exported.",
        queries=((f"max by (collector) (gpufeed_sample_age_seconds{{{NODE}}})", "{{collector}}"),),
        unit="s",
    ),
    Panel(
        title="Read errors",
        description="Reads, or devices of a read, that gave nothing.",
        queries=((f"sum by (collector, reason) ({rate('collector_errors_total', NODE)})", "{{collector}} {{reason}}"),),
        unit="short",
    ),
    Panel(
        title="Inputs of the attribution",
        description="Share of nodes that can read each: a missing one makes causes unknown.",
        queries=((f"avg by (input) (gpufeed_attribution_input_available{{{NODE}}})", "{{input}}"),),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Alerts sent",
        description="By receiver and outcome. Nothing where no receiver is configured.",
        queries=((f"sum by (receiver, outcome) ({rate('alert_sends_total', NODE)})", "{{receiver}} {{outcome}}"),),
        unit="short",
    ),
)

COST: Final = (
    Panel(
        title="Processor time", description="Share of one core, of the probe and of the server.",
        queries=((rate("probe_cpu_seconds_total", NODE), f"{_NODE} probe"),
                 (f"rate(process_cpu_seconds_total{{{NODE}}}[$__rate_interval])", f"{_NODE} server")),
        unit="percentunit",
    ),
    Panel(
        title="Memory", description="Resident memory of the probe and of the server.",
        queries=((f"gpufeed_probe_resident_memory_bytes{{{NODE}}}", f"{_NODE} probe"),
                 (f"process_resident_memory_bytes{{{NODE}}}", f"{_NODE} server")), unit="bytes",
    ),
    Panel(
        title="Driver calls and files", description="What the probe asks of the driver and the kernel, per second.",
        queries=((rate("probe_nvml_calls_total", NODE), f"{_NODE} driver calls"),
                 (rate("probe_file_reads_total", NODE), f"{_NODE} files")), unit="ops",
    ),
    Panel(
        title="Series", description="Series exported; what was shed to stay below the limit.",
        queries=((f"gpufeed_series{{{NODE}}}", f"{_NODE} exported"),
                 (f"sum by (instance) (gpufeed_series_shed{{{NODE}}})", f"{_NODE} shed")), unit="short",
    ),
    Panel(
        title="Time to answer a scrape", description="99 of 100 scrapes are answered within this time.",
        queries=((
            ("histogram_quantile(0.99, sum by (instance, le) "
            f"(rate(gpufeed_scrape_duration_seconds_bucket{{{NODE}}}[$__rate_interval])))"), _NODE,
        ),),
        unit="s",
    ),
    Panel(
        title="Probes replaced", description="Times the probe process was started anew.",
        queries=((f"increase(gpufeed_probe_restarts_total{{{NODE}}}[$__rate_interval])", _NODE),), unit="short",
    ),
)  # fmt: skip


def itself() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "itself", "gpufeed itself", "Can the other dashboards be believed, and what does it cost?",
        (("Now", NOW), ("Can it be believed", TRUST), ("What it costs", COST)),
    )  # fmt: skip
