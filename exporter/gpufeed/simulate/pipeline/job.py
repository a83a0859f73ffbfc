# SPDX-License-Identifier: Apache-2.0
"""A job on its GPUs: what its ranks share, and the processes that each of them is."""

from collections.abc import Sequence

from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.exchange import Exchanges, RemoteRanks
from gpufeed.simulate.pipeline.interludes import Interludes
from gpufeed.simulate.pipeline.loader import Loader
from gpufeed.simulate.pipeline.server import Server
from gpufeed.simulate.pipeline.site import COPY_REACH, Site
from gpufeed.simulate.pipeline.trainer import Trainer
from gpufeed.simulate.pipeline.workload import SLOWNESS, Collective, Input, Training


def start_training(of: Training, sites: Sequence[Site], seed: str) -> None:
    """Let the ranks of a training job begin, each on its GPU."""
    first = sites[0]
    model = first.model
    step_s = step_seconds(of, model)
    exchanges = Exchanges([site.gpu for site in sites], first.palette, first.conditions, first.calendar, first.speeds)
    if of.remote is not None:
        parts = max(1, sum(work.collective is not None for work in of.works))
        exchanges.remote = RemoteRanks(
            of.remote, step_s / parts, first.calendar, source(seed, "remote"), first.conditions
        )
    server = _server(of.input, sites, step_s, seed)
    interludes = Interludes(of, step_s)
    for site in sites:
        loader = None if of.input is None or server is None else Loader(site, of.input, server)
        site.calendar.start(Trainer(site, of, loader, exchanges, interludes).run())


def step_seconds(of: Training, model: GpuModel) -> float:
    """A step that nothing holds up: what is computed, and what is exchanged and cannot be hidden."""
    slowness = SLOWNESS[model.key]
    exchanged = sum(
        shown_seconds(work.collective, work.seconds * slowness, model) for work in of.works if work.collective
    )
    copied = of.input.copy_bytes / (model.pcie_bytes_per_s * COPY_REACH) if of.input else 0.0
    behind = of.input is None or of.input.copies_ahead
    return of.seconds * slowness + exchanged + of.loop_s + (0.0 if behind else copied)


def shown_seconds(of: Collective, computed_s: float, model: GpuModel) -> float:
    """Of an exchange on links that are well: the part that does not pass behind the computing."""
    whole = of.nvlink_bytes / (model.nvlink_bytes_per_s * of.nvlink_reach)
    whole += of.fabric_bytes / (model.nic_bytes_per_s * of.fabric_reach)
    return whole - min(of.overlap * whole, computed_s)


def _server(of: Input | None, sites: Sequence[Site], step_s: float, seed: str) -> Server | None:
    if of is None:
        return None
    wanted = len(sites) * of.batch_bytes / step_s
    rate = of.storage.bytes_per_s or of.storage.of_demand * wanted
    return Server(of.storage, rate, sites[0].calendar, source(seed, "server"), sites[0].speeds)
