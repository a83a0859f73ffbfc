# SPDX-License-Identifier: Apache-2.0
"""A judged scenario: jobs, neighbours, troubles and incidents of a node, and what kind of answer is expected."""

from dataclasses import dataclass
from typing import Literal

from gpufeed.simulate.activity import Incident
from gpufeed.simulate.pipeline.workload import Job, Neighbour, Trouble

Family = Literal[
    "healthy", "storage", "checkpoint", "host", "link", "peer", "clock", "serving", "idle", "shared", "fault"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedScenario:
    """Data only: the same scenario and seed give the same node."""

    name: str
    family: Family
    description: str  # one line, for people
    jobs: tuple[Job, ...]
    troubles: tuple[Trouble, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    incidents: tuple[Incident, ...] = ()  # as of the simple scenarios: lost, hang, driver_absent, xid, port_down
    is_visible: bool = True  # false: nothing on the node shows the cause; unknown is the best answer
    models: tuple[str, ...] = ()  # on which it makes sense; empty: on all

    @property
    def is_healthy(self) -> bool:
        """Whether any starvation found in it is false but for what its truth says."""
        return self.family == "healthy"
