# SPDX-License-Identifier: Apache-2.0
"""A job on its GPUs: what its ranks share, and the processes that each of them is."""

from collections.abc import Sequence

from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.pipeline.chance import source
from gpufeed.simulate.pipeline.exchange import Exchanges, RemoteRanks
from gpufeed.simulate.pipeline.interludes import Interludes
from gpufeed.simulate.pipeline.loader import Loader
from gpufeed.simulate.pipeline.notebook import start_notebook, start_quiet
from gpufeed.simulate.pipeline.server import Server
from gpufeed.simulate.pipeline.serving import start_serving
from gpufeed.simulate.pipeline.site import COPY_REACH, Site
from gpufeed.simulate.pipeline.trainer import Trainer
from gpufeed.simulate.pipeline.workload import (
    SLOWNESS,
    Collective,
    Notebook,
    Serving,
    Storage,
    Training,
    Workload,
)


def start(of: Workload, sites: Sequence[Site], seed: str) -> None:
    """Let a job begin, each of its ranks on its GPU."""
    match of:
        case Training():
            start_training(of, sites, seed)
        case Serving():
            start_serving(of, sites, seed)
        case Notebook():
            start_notebook(of, sites)
        case _:
            start_quiet(of, sites)


def start_training(of: Training, sites: Sequence[Site], seed: str) -> None:
    """Ranks that train, in step where they exchange anything."""
    first = sites[0]
    step_s = step_seconds(of, first.model, first.slowness)
    exchanges = Exchanges([site.gpu for site in sites], first.palette, first.conditions, first.calendar, first.speeds)
    if of.remote is not None:
        meetings = max(1, sum(work.collective is not None for work in of.works))
        exchanges.remote = RemoteRanks(
            of.remote, of.seconds * first.slowness / meetings, first.calendar, source(seed, "remote"), first.conditions
        )
    wanted = len(sites) * of.input.batch_bytes / step_s if of.input is not None else 1.0
    storage = of.input.storage if of.input is not None else Storage()
    server = _server(storage, wanted, first, seed)
    saved = of.checkpoint.storage if of.checkpoint is not None else None
    interludes = Interludes(of, step_s, exchanges, server, _server(saved, 1.0, first, seed) if saved else server)
    for site in sites:
        loader = None if of.input is None else Loader(site, of.input, server)
        site.start(Trainer(site, of, loader, exchanges, interludes).run())


def step_seconds(of: Training, model: GpuModel, slowness: float) -> float:
    """A step that nothing holds up: what is computed, and what is exchanged and cannot be hidden."""
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


def slowness_of(model: GpuModel) -> float:
    """How much longer than an H100 a board computes."""
    return SLOWNESS.get(model.key, 1.0)


def _server(storage: Storage, wanted: float, site: Site, seed: str) -> Server:
    rate = storage.bytes_per_s or storage.of_demand * wanted
    return Server(storage, rate, site.calendar, source(seed, "server", storage.kind), site.speeds)
