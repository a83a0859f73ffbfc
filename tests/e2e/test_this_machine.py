# SPDX-License-Identifier: Apache-2.0
"""`gpufeed run` and `once` on this machine, with its real disks and pressure, and with drivers of all kinds."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import Starter, fetch, poll

DRIVER = Path(__file__).with_name("one_gpu_driver.c")
SECTOR_BYTES = 512
SLACK = 1e-9  # of a decimal fraction
Counts = dict[str, dict[str, float]]


def once(*flags: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpufeed", "once", *flags], check=True, capture_output=True, text=True, timeout=50
    )
    return done.stdout


def disks() -> Counts:
    """By disk: bytes and calls of the whole line."""
    lines = Path("/proc/diskstats").read_text(encoding="ascii").splitlines()
    return {
        fields[2]: {
            "gpufeed_storage_reads_total": int(fields[3]),
            "gpufeed_storage_read_bytes_total": int(fields[5]) * SECTOR_BYTES,
            "gpufeed_storage_read_seconds_total": int(fields[6]) / 1000,
            "gpufeed_storage_writes_total": int(fields[7]),
            "gpufeed_storage_write_bytes_total": int(fields[9]) * SECTOR_BYTES,
            "gpufeed_storage_write_seconds_total": int(fields[10]) / 1000,
            "gpufeed_storage_busy_seconds_total": int(fields[12]) / 1000,
            "gpufeed_storage_queue_seconds_total": int(fields[13]) / 1000,
        }
        for fields in map(str.split, lines)
    }


def pressure() -> Counts:
    """By resource. `full` of the processors says nothing of a whole node, and is not shown."""
    names = {"some": "gpufeed_pressure_waiting_seconds_total", "full": "gpufeed_pressure_stalled_seconds_total"}
    found: Counts = {}
    for file in sorted(Path("/proc/pressure").glob("*")):
        totals = re.findall(r"^(some|full) .*total=(\d+)", file.read_text(encoding="ascii"), re.MULTILINE)
        shown = {kind: int(total) / 1e6 for kind, total in totals if (file.name, kind) != ("cpu", "full")}
        found[file.name] = {names[kind]: total for kind, total in shown.items()}
    return found


def interfaces() -> Counts:
    """By interface with hardware behind it."""
    files = {
        "gpufeed_net_receive_bytes_total": "statistics/rx_bytes",
        "gpufeed_net_transmit_bytes_total": "statistics/tx_bytes",
        "gpufeed_net_carrier_changes_total": "carrier_changes",
    }
    return {
        path.name: {name: int((path / file).read_text(encoding="ascii")) for name, file in files.items()}
        for path in sorted(Path("/sys/class/net").iterdir())
        if (path / "device").exists()
    }


@pytest.fixture
def compiled_driver(tmp_path: Path) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for a libnvidia-ml.so.1")
    library = tmp_path / "built" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(DRIVER)]
    subprocess.run(command, check=True)
    return library


def test_each_disk_pressure_and_interface_has_counted_between_what_the_kernel_said_before_and_after() -> None:
    """Disks that are parts or made of others are not shown; what is shown has all of its counters."""
    looks: dict[str, Callable[[], Counts]] = {"target": disks, "resource": pressure, "device": interfaces}
    before = {label: look() for label, look in looks.items()}
    text = once("--format", "text")
    after = {label: look() for label, look in looks.items()}
    shown: dict[str, Counts] = {label: {} for label in looks}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for label, seen in shown.items():
                thing = sample.labels.get(label, "")
                if sample.name in before[label].get(thing, {}):
                    seen.setdefault(thing, {})[sample.name] = sample.value
    assert shown["target"]
    for label in ("resource", "device"):
        assert shown[label].keys() == {thing for thing, counts in before[label].items() if counts}
    for label, things in shown.items():
        for thing, counts in things.items():
            assert counts.keys() == before[label][thing].keys()
            for name, value in counts.items():
                assert before[label][thing][name] - SLACK <= value <= after[label][thing][name] + SLACK, (thing, name)


def test_promtool_finds_nothing_to_say_about_the_metrics() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    text = once("--format", "text")
    lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")


def test_run_without_a_driver_is_ready_and_says_why_there_are_no_gpus(starter: Starter) -> None:
    daemon = starter.gpufeed("run")
    poll(lambda: daemon.values("gpufeed_pressure_available"), 15, "pressure")
    assert daemon.value("gpufeed_collector_success", collector="nvml") == 0
    assert daemon.values("gpufeed_gpu_up") == {}
    assert "libnvidia-ml.so.1" in daemon.text()
    assert daemon.stop() == 0


def test_run_reads_whatever_driver_library_the_loader_finds(starter: Starter, compiled_driver: Path) -> None:
    daemon = starter.gpufeed("run", environment={"LD_LIBRARY_PATH": str(compiled_driver.parent)})
    poll(lambda: daemon.value("gpufeed_gpu_power_watts") == 123.456, 15, "the power of the one GPU")
    assert daemon.value("gpufeed_gpu_utilization_ratio") == 0.37
    assert daemon.values("gpufeed_gpu_energy_joules_total") == {}


def test_run_finds_a_driver_that_appears_later(starter: Starter, compiled_driver: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.mkdir()
    daemon = starter.gpufeed("run", environment={"LD_LIBRARY_PATH": str(later)})
    poll(lambda: daemon.value("gpufeed_collector_success", collector="nvml") == 0, 15, "that the driver is missing")
    shutil.copy(compiled_driver, later / "libnvidia-ml.so.1")
    poll(lambda: daemon.value("gpufeed_gpu_up") == 1, 60, "the GPU of the driver that came")


@pytest.fixture
def crashing_driver(tmp_path: Path) -> Path:
    """A libnvidia-ml.so.1 whose initialisation writes where nothing is."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for a libnvidia-ml.so.1")
    source, library = tmp_path / "crash.c", tmp_path / "crash" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    source.write_text("int nvmlInitWithFlags(unsigned f) { *(volatile int *)0 = 1; return 0; }\n")
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library.parent


@pytest.mark.timeout(150)
def test_a_driver_library_that_crashes_its_process_does_not_take_the_node_away(
    starter: Starter, crashing_driver: Path
) -> None:
    daemon = starter.gpufeed("run", environment={"LD_LIBRARY_PATH": str(crashing_driver)})
    poll(lambda: daemon.values("gpufeed_pressure_available"), 60, "pressure, read by a probe without the driver")
    poll(lambda: "is left alone" in fetch(daemon.url + "/"), 15, "the reason, on the page")
    assert daemon.value("gpufeed_collector_success", collector="nvml") in {0, None}
    assert daemon.stop() == 0


def test_a_closed_standard_error_is_no_reason_to_read_nothing() -> None:
    command = f"{sys.executable} -m gpufeed once 2>&-"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0
    assert "gpufeed_pressure_available" in done.stdout


def test_once_says_that_nothing_was_read_and_why(crashing_driver: Path) -> None:
    # within its ten seconds it may find out that the rest can be read: then it says that, and names the driver
    command = [sys.executable, "-m", "gpufeed", "once"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(crashing_driver)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, env=environment)
    said = "nothing was read: the probe is down" in done.stderr
    assert (done.returncode == 1) is said
    assert said or "is left alone" in done.stderr
