# SPDX-License-Identifier: Apache-2.0
"""The unit: systemd takes it, scores it, and it keeps what the daemon's design leans on."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "systemd"
UNIT = FOLDER / "gpufeed.service"
PROBE_UNIT = FOLDER / "gpufeed-probe.service"
DROP_INS = sorted((FOLDER / "drop-ins").glob("*.conf"))


@pytest.fixture
def analysed(tmp_path: Path) -> Path:
    """The unit with a command that exists on any machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = UNIT.read_text(encoding="utf-8")
    assert "ExecStart=/usr/bin/gpufeed run " in text
    unit = tmp_path / "gpufeed.service"
    unit.write_text(text.replace("/usr/bin/gpufeed", "/bin/true"), encoding="utf-8")
    return unit


def test_systemd_finds_nothing_wrong(analysed: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", analysed], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exposure_stays_below_2_5_of_10(analysed: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(analysed)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Type", "notify"),  # not notify-reload: older systemd takes it for simple
        ("KillMode", "mixed"),
        ("RuntimeDirectoryPreserve", "yes"),  # locks of hanging lanes outlive us
        ("ProtectHome", "read-only"),  # yes hides NFS homes
        ("TasksMax", "256"),
        ("Restart", "always"),  # an upgrade ends us with 0
    ],
)
def test_the_unit_keeps_what_the_design_leans_on(key: str, value: str) -> None:
    parser = configparser.RawConfigParser(strict=False, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign] # the documented way to keep case
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    assert parser["Service"][key] == value
    assert "PrivateDevices" not in parser["Service"]


def _exposure(text: str, folder: Path) -> float:
    """Out of 10, by systemd's own count; a directive that stands twice counts as systemd reads it."""
    unit = folder / "scored.service"
    unit.write_text(text.replace("/usr/bin/gpufeed", "/bin/true"), encoding="utf-8")
    command = ["systemd-analyze", "security", "--offline=true", str(unit)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None, done.stderr
    return float(found.group(1))


def test_the_probes_unit_holds_the_rights_and_no_network(analysed: Path) -> None:
    folder = analysed.parent
    text = PROBE_UNIT.read_text(encoding="utf-8")
    assert _exposure(text, folder) <= 2.8
    unit = folder / PROBE_UNIT.name
    unit.write_text(text.replace("/usr/bin/gpufeed", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CAP_SYSLOG" in text
    assert "IPAddressDeny=any" in text


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda path: path.name)
def test_a_drop_in_is_taken_and_scores_what_it_says(analysed: Path, drop_in: Path) -> None:
    folder, text = analysed.parent, drop_in.read_text(encoding="utf-8")
    shutil.copy(FOLDER / "gpufeed.socket", folder)
    (folder / "gpufeed.service.d").mkdir()
    (folder / "gpufeed.service.d" / drop_in.name).write_text(text.replace("/usr/bin/gpufeed", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", analysed], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    claimed = re.search(r"Exposure ([0-9.]+) instead of 1\.9", text)
    shutil.rmtree(folder / "gpufeed.service.d")
    assert _exposure(UNIT.read_text(encoding="utf-8") + text, folder) == float(claimed.group(1) if claimed else "1.9")
