# SPDX-License-Identifier: Apache-2.0
"""`gpufeed run` and `once` on this machine, with its real disks and pressure, and with drivers of all kinds."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import Starter, poll

DRIVER = Path(__file__).with_name("one_gpu_driver.c")
SECTOR_BYTES = 512


def once(*flags: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gpufeed", "once", *flags], check=True, capture_output=True, text=True, timeout=50
    )
    return done.stdout


def sectors_read() -> dict[str, int]:
    lines = Path("/proc/diskstats").read_text(encoding="ascii").splitlines()
    return {fields[2]: int(fields[5]) for fields in map(str.split, lines)}


@pytest.fixture
def compiled_driver(tmp_path: Path) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for a libnvidia-ml.so.1")
    library = tmp_path / "built" / "libnvidia-ml.so.1"
    library.parent.mkdir()
    command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", str(library), str(DRIVER)]
    subprocess.run(command, check=True)
    return library


def test_each_disk_has_read_between_what_the_kernel_said_before_and_after() -> None:
    before = sectors_read()
    text = once("--format", "text")
    after = sectors_read()
    read = {
        sample.labels["target"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "gpufeed_storage_read_bytes_total" and sample.labels["kind"] == "block"
    }
    assert read
    for disk, read_bytes in read.items():
        assert before[disk] * SECTOR_BYTES <= read_bytes <= after[disk] * SECTOR_BYTES


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
