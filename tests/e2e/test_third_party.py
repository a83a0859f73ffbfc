# SPDX-License-Identifier: Apache-2.0
"""A source from another package, found by its entry point: named in the configuration, it is read; else it is not."""

import os
from pathlib import Path

from running import Starter, poll

SOURCE = '''
"""Counts how often it was asked."""

from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.sample import Extension
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome


class Reader:
    def __init__(self, spec: NoSpec, desk: Desk) -> None:
        self.asked = 0

    def read(self, group: str) -> Outcome:
        self.asked += 1
        value = Extension(source="tally", metric="asked_total", labels=(("who", "probe"),), value=self.asked,
                          help="Times asked.", is_counter=True)
        return Outcome(samples=(value,))

    def close(self) -> None:
        pass


class Source:
    name = "tally"

    def plan(self, config):
        group = Group(name=GroupName("tally.fast"), collector="extra", period_ns=500_000_000)
        return (LanePlan(lane=LaneId("tally"), groups=(group,), open=Reader),)


TALLY = Source()
'''


def install(folder: Path) -> None:
    """What `pip install` leaves behind for a package with one module and one entry point."""
    info = folder / "gpufeed_tally-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "gpufeed_tally.py").write_text(SOURCE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpufeed-tally\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[gpufeed.sources]\ntally = gpufeed_tally:TALLY\n", encoding="utf-8")


def test_a_source_of_another_package_is_exported_when_the_config_names_it(starter: Starter, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install(packages)
    config = tmp_path / "gpufeed.yml"
    config.write_text("sources: {extra: [tally]}\n", encoding="utf-8")
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    named = starter.gpufeed("run", f"--config.file={config}", environment={"PYTHONPATH": path})
    silent = starter.gpufeed("run", environment={"PYTHONPATH": path})
    poll(lambda: (named.value("gpufeed_ext_tally_asked_total", who="probe") or 0) > 1, 15, "the other package's series")
    assert silent.values("gpufeed_ext_tally_asked_total") == {}
