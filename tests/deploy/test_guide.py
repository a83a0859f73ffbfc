# SPDX-License-Identifier: Apache-2.0
"""docs/deployment.md, followed word for word on a fresh node."""

import re
from pathlib import Path

import pytest

from container import Container

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

SCRIPT = "/var/tmp/block.sh"  # noqa: S108 of the container
GUIDE = Path(__file__).parents[2] / "docs" / "deployment.md"
BLOCK = re.compile(r"^## (?P<title>.+?)$|^```sh\n(?P<script>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Every block of shell, with the title it stands under."""
    found, title = [], ""
    for match in BLOCK.finditer(GUIDE.read_text(encoding="utf-8")):
        title = match["title"] or title
        if match["script"]:
            found.append((title, match["script"]))
    return found


def test_every_command_of_the_guide_works_in_its_order(node: Container) -> None:
    node.run("sh", "-c", "dpkg -P gpufeed", check=False)  # what another file of tests left
    for title, script in blocks():
        (node.root / SCRIPT.lstrip("/")).write_text(f"set -eu\ncd /var/tmp\n{script}", encoding="utf-8")
        said = node.run("sh", SCRIPT, check=False, timeout_s=180)
        assert node.returncode == 0, f"{title}: {said}\n{node.shell('journalctl -n 30 --no-pager', check=False)}"
        if title != "Removal":
            node.until("systemctl is-active gpufeed", 30, f"the service after {title}")
