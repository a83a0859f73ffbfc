# SPDX-License-Identifier: Apache-2.0
"""The unit: systemd takes it, scores it, and it keeps what the daemon's design leans on."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1] / "systemd" / "gpufeed.service"


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
