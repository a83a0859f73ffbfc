# SPDX-License-Identifier: Apache-2.0
"""One colour for every state and cause, wherever it is shown: the page, the dashboards.

Hues after Okabe and Ito, told apart by people with any of the common colour-vision deficiencies; causes of one state
differ in lightness too. Nothing is said by colour alone.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CAUSE_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "busy tensor": "#009E73",
        "busy memory": "#4DBB9B",
        "busy other": "#99D8C8",
        "communicating": "#56B4E9",
        "starved storage": "#D55E00",
        "starved checkpoint": "#A04600",
        "starved host_cpu": "#E69F00",
        "starved host_memory": "#B87F00",
        "starved pcie": "#F0C75E",
        "starved nvlink": "#0072B2",
        "starved fabric": "#004C77",
        "starved peer": "#CC79A7",
        "starved unknown": "#8C8C8C",
        "throttled": "#F0E442",
        "fault": "#B00020",
        "idle_held": "#C7C7C7",
        "idle_free": "#E6E6E6",
        "unknown": "#5F5F5F",
    }
)
"""By `state cause`, or by state alone where all its causes share a colour; in the order they are stacked."""


def name_of(state: str, cause: str) -> str:
    """The entry that colours a state and cause."""
    whole = f"{state} {cause}"
    return whole if whole in CAUSE_COLOURS else state if state in CAUSE_COLOURS else "unknown"
