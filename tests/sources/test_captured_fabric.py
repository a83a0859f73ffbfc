# SPDX-License-Identifier: Apache-2.0
"""Fabric and network of real nodes, where captures of them are at hand: GPUFEED_CAPTURES names their directory.

Expected values are taken from the files here, by other means than the parsers'.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from gpufeed.model.desired import ProbeConfig
from gpufeed.model.fabric import IbCounters, IbErrors, IbPort
from gpufeed.model.network import NetEvents, NetInterface
from gpufeed.model.sample import Sample
from gpufeed.parse.ethtool import parse_ethtool_text
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.sources.builtin import BUILTIN

S = TypeVar("S", bound=Sample)

FABRIC = tuple(source for source in BUILTIN if source.name in {"infiniband", "ethernet"})
FOLDER = os.environ.get("GPUFEED_CAPTURES")

pytestmark = pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")


def captured(pattern: str) -> list[Path]:
    return sorted(path for path in Path(FOLDER).glob(pattern) if path.is_dir()) if FOLDER else []


def read_all(root: Path, runtime: Path) -> list[Sample]:
    config = ProbeConfig(procfs=str(root / "proc"), sysfs=str(root / "sys"), rootfs=str(root), runtime_dir=str(runtime))
    probe = InlineProbe(config, FABRIC, SteppedClock())
    frame = probe.tick()
    probe.close()
    assert not [log.text for log in probe.logs() if "Traceback" in log.text]
    assert all("Is a directory" in failure.detail for failure in frame.failures)
    return [sample for one in frame.readings for sample in one.samples]


def of(samples: list[Sample], kind: type[S]) -> dict[object, S]:
    return {sample.subject: sample for sample in samples if isinstance(sample, kind)}


def ports(root: Path) -> Iterator[tuple[str, int, Path]]:
    """Device, number and directory of each port; class links may be kept as files."""
    for entry in sorted((root / "sys/class/infiniband").iterdir()):
        home = entry
        if entry.is_file():
            home = Path(os.path.normpath(entry.parent / entry.read_text(encoding="ascii").strip()))
        for port in sorted(home.glob("ports/*")):
            yield entry.name, int(port.name), port


def text(path: Path) -> str | None:
    return path.read_text(encoding="ascii").strip() or None if path.is_file() else None


def count(path: Path) -> int | None:
    found = text(path)
    return int(found) if found is not None and found.isdigit() else None


@pytest.mark.parametrize("root", captured("infiniband/*"), ids=lambda path: path.name)
def test_every_port_of_a_captured_node_has_what_its_files_say(root: Path, tmp_path: Path) -> None:
    samples = read_all(root, tmp_path)
    states, counters, errors = of(samples, IbPort), of(samples, IbCounters), of(samples, IbErrors)
    listed = list(ports(root))
    assert {(key.port.device, key.port.port) for key in states.values()} == {(name, port) for name, port, _ in listed}
    by_name = {(sample.port.device, sample.port.port): sample for sample in states.values()}
    moved = {(sample.port.device, sample.port.port): sample for sample in counters.values()}
    counted = {(sample.port.device, sample.port.port): sample for sample in errors.values()}
    for name, number, path in listed:
        state, moves, faults = by_name[name, number], moved[name, number], counted[name, number]
        assert state.link_layer == text(path / "link_layer")
        for value, file in ((state.state_id, "state"), (state.physical_state_id, "phys_state")):
            said = text(path / file)
            assert value == (None if said is None else int(said.partition(":")[0]))
        rate = text(path / "rate")
        gigabits = None if rate is None else float(re.match(r"[0-9.]+", rate)[0])  # type: ignore[index] # all begin so
        assert state.rate_bytes_per_s == (None if not gigabits else gigabits * 1e9 / 8)
        words = count(path / "counters/port_rcv_data")
        if words is not None:
            assert moves.receive_bytes == 4 * words
        for file, value in faults.errors.items():
            assert value == count(path / "counters" / file)
        assert faults.hw_events == {
            file.name: count(file)
            for file in (path / "hw_counters").glob("*")
            if file.name != "lifespan" and not re.search("octets|bytes", file.name, re.IGNORECASE)
        }


@pytest.mark.parametrize("root", captured("infiniband/h100*"), ids=lambda path: path.name)
def test_counters_that_count_no_further_are_named(root: Path, tmp_path: Path) -> None:
    for sample in of(read_all(root, tmp_path), IbErrors).values():
        assert "excessive_buffer_overrun_errors" in (sample.saturated or ())
        assert ("link_downed" in (sample.saturated or ())) == (sample.errors["link_downed"] == 255)


@pytest.mark.parametrize("root", captured("net/*"), ids=lambda path: path.name)
def test_an_interface_of_a_captured_node_has_what_its_files_say(root: Path, tmp_path: Path) -> None:
    samples = read_all(root, tmp_path)
    for sample in of(samples, NetInterface).values():
        path = root / "sys/class/net" / sample.device
        assert sample.is_up == (text(path / "operstate") == "up")
        megabits = count(path / "speed")
        assert sample.speed_bytes_per_s == (None if megabits is None else megabits * 125_000)
        assert sample.carrier_changes == count(path / "carrier_changes")
    assert of(samples, NetEvents) == {}  # nobody else's driver is asked


@pytest.mark.parametrize("root", captured("net/*/ethtool/*"), ids=lambda path: path.name)
def test_captured_statistics_of_a_driver_are_read(root: Path) -> None:
    data = (root / "statistics").read_bytes() if (root / "statistics").is_file() else b""
    parsed = parse_ethtool_text(data)
    pairs = re.findall(r"^ +(.*): (\d+)$", data.decode(), re.MULTILINE)
    assert [(name, str(value)) for name, value in parsed.rows if f" {name}: " in data.decode()][: len(pairs)] == pairs
