# SPDX-License-Identifier: Apache-2.0
"""Jobs that mostly do nothing: notebooks, and memory that is held for no reason."""

from collections.abc import Sequence
from typing import Final

from gpufeed.simulate.activity import Activity
from gpufeed.simulate.pipeline.calendar import Process
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.stages import Stage
from gpufeed.simulate.pipeline.workload import Notebook, Quiet

QUIET_CORES: Final = 0.004
_HELD: Final = Activity(truth=("idle_held", ""), memory=0.5, power=0.1, temperature_c=38.0)
_CELL: Final = Activity(
    truth=("busy", "other"), graphics=0.9, sm=0.4, occupancy=0.2, tensor=0.08, dram=0.25, power=0.35, temperature_c=52.0
)
_SHARES: Final = {("busy", "other"): 0.9, ("starved", "host_cpu"): 0.1}
_LEAST_NS: Final = 1_000_000


def start_notebook(of: Notebook, sites: Sequence[Site]) -> None:
    """One on each GPU, each with a person of its own."""
    for site in sites:
        site.start(_think_and_run(of, site))


def start_quiet(of: Quiet, sites: Sequence[Site]) -> None:
    """For ever."""
    for site in sites:
        if of.is_held:
            hold(site)


def hold(site: Site) -> None:
    """Memory held, and nothing done."""
    site.begin(site.palette.known("held") or site.palette.make(_HELD, key="held"), QUIET_CORES)


def _think_and_run(of: Notebook, site: Site) -> Process:
    random = site.random("notebook")
    while True:
        think_s, cell_s = random.expovariate(1 / of.think_s), random.expovariate(1 / of.cell_s)
        is_on_host = random.random() < of.host_share
        hold(site)
        yield site.speeds.ns(Stage.REQUESTS, think_s)
        if is_on_host:
            site.wait_for(Stage.HOST_CPU, 1.0)
            yield max(_LEAST_NS, site.speeds.ns(Stage.HOST_CPU, cell_s))
        else:
            level = site.palette.known("cell") or site.palette.make(_CELL, _SHARES, "cell")
            site.begin(level, 0.9)
            yield max(_LEAST_NS, int(cell_s * site.slowness * 1e9))
        site.finish()
