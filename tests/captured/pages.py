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
from gpufeed.model.frame import InputStatus
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
    scraped = Scraped(probe_config(Config(paths=paths_of(root)), str(runtime), None))
    text = scraped.text()
    scraped.close()
    return text


def page_of_job(root: Path, runtime: Path, pid: int) -> str:
    """The same, of a node with one simulated GPU that a process holds."""
    clock = SteppedClock()
    node = SteppedNode("healthy", gpus=1, root=runtime, clock=clock)
    node.keeps_trees = False
    with node as simulated:
        simulated.set_counts(0, processes=1, pid0=pid)
        config = probe_config(Config(paths=paths_of(root)), str(runtime / "run"), None)
        config = msgspec.structs.replace(config, simulated=simulated.config().simulated)
        scraped = Scraped(config, BUILTIN, clock)
        text = scraped.text(25)
        scraped.close()
        return text


class Scraped:
    """A node whose files may change between one scrape and the next."""

    def __init__(
        self, config: ProbeConfig, sources: tuple[Source, ...] = HOST, clock: SteppedClock | None = None
    ) -> None:
        self._clock = clock or SteppedClock()
        self._node = initial(Settings(), read_frame_time(self._clock))
        self._probe = InlineProbe(config, sources, self._clock)

    def text(self, ticks: int = 1) -> str:
        """The page after so many seconds. No read may end in an exception that nobody expected."""
        for _ in range(ticks):
            self._node = step(self._node, self._probe.tick())
            self._clock.advance(NS_PER_S)
        assert [log.text for log in self._probe.logs() if "Traceback" in log.text] == []
        encoder = Encoder(profile="full", drop=(), max_series=100_000)
        return encoder.encode(families(self._node.state, ServerFacts())).page(Format.TEXT).decode()

    def series(self, ticks: int = 1) -> Series:
        return series_of(self.text(ticks))

    def inputs(self) -> dict[tuple[str, str], InputStatus]:
        """What the sources say of what they read."""
        return dict(self._node.state.inputs)

    def close(self) -> None:
        self._probe.close()


def once(root: Path, form: str = "text") -> str:
    """What `gpufeed once` prints of the node."""
    paths = (f"--path.procfs={root / 'proc'}", f"--path.sysfs={root / 'sys'}", f"--path.rootfs={root}")
    command = [sys.executable, "-m", "gpufeed", "once", *paths, "--format", form]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=50).stdout
