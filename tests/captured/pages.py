# SPDX-License-Identifier: Apache-2.0
"""The page of a node whose files lie below a folder: by the real sources, fold and encoder, and by the command."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

from captured.second_reader import Series
from gpufeed.clock import read_frame_time
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config, Paths
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.desired import ProbeConfig
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.sources.contract import Source
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_S

HOST = tuple(source for source in BUILTIN if source.name != "nvml")
FORMATS = ("text", "openmetrics", "json")


def series_of(page: str, form: str = "text") -> Series:
    """Every series of a page, each once; by another parser than ours."""
    if form == "json":
        rows = [(family["name"], row["labels"], row["value"]) for family in json.loads(page) for row in family["rows"]]
        return {(name, frozenset(labels.items())): value for name, labels, value in rows}
    lines = [line.rsplit(" ", 1)[0] for line in page.splitlines() if not line.startswith("#")]
    assert [line for line, times in Counter(lines).items() if times > 1] == []
    found = openmetrics_families(page) if form == "openmetrics" else text_families(page)  # type: ignore[no-untyped-call] # the library has no types
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value for family in found for sample in family.samples
    }


def paths_of(root: Path) -> Paths:
    return Paths(procfs=str(root / "proc"), sysfs=str(root / "sys"), rootfs=str(root))


def page_of(root: Path, runtime: Path) -> str:
    """What a scrape of the node gives. No read may end in an exception that nobody expected."""
    return _page(probe_config(Config(paths=paths_of(root)), str(runtime), None), HOST, SteppedClock(), 1)


def page_of_job(root: Path, runtime: Path, pid: int) -> str:
    """The same, of a node with one simulated GPU that a process holds."""
    clock = SteppedClock()
    node = SteppedNode("healthy", gpus=1, root=runtime, clock=clock)
    node.keeps_trees = False
    with node as simulated:
        simulated.set_counts(0, processes=1, pid0=pid)
        config = probe_config(Config(paths=paths_of(root)), str(runtime / "run"), None)
        config = msgspec.structs.replace(config, simulated=simulated.config().simulated)
        return _page(config, BUILTIN, clock, 25)


def _page(config: ProbeConfig, sources: tuple[Source, ...], clock: SteppedClock, ticks: int) -> str:
    node = initial(Settings(), read_frame_time(clock))
    probe = InlineProbe(config, sources, clock)
    for _ in range(ticks):
        node = step(node, probe.tick())
        clock.advance(NS_PER_S)
    probe.close()
    assert [log.text for log in probe.logs() if "Traceback" in log.text] == []
    encoder = Encoder(profile="full", drop=(), max_series=100_000)
    return encoder.encode(families(node.state, ServerFacts())).page(Format.TEXT).decode()


def once(root: Path, form: str = "text") -> str:
    """What `gpufeed once` prints of the node."""
    paths = (f"--path.procfs={root / 'proc'}", f"--path.sysfs={root / 'sys'}", f"--path.rootfs={root}")
    command = [sys.executable, "-m", "gpufeed", "once", *paths, "--format", form]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=50).stdout
