# SPDX-License-Identifier: Apache-2.0
"""What interrupts training: its start, checkpoints, evaluations, an optimizer on the host."""

from gpufeed.simulate.pipeline.calendar import Process
from gpufeed.simulate.pipeline.site import Site
from gpufeed.simulate.pipeline.workload import Training


class Interludes:
    """Of one job; counted in steps, so that they come at the same work whatever the speed."""

    def __init__(self, of: Training, step_s: float) -> None:
        self.of = of
        self._step_s = step_s

    def start(self, site: Site) -> Process:
        """Before the first step."""
        yield from self._none(site)

    def between(self, site: Site, number: int) -> Process:
        """After step `number`."""
        if number < 0:
            yield from self._none(site)

    def _none(self, site: Site) -> Process:
        if site.gpu < 0:
            yield 0
