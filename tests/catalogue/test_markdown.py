# SPDX-License-Identifier: Apache-2.0
"""METRICS.md is what the catalogue says, and people can read it."""

import argparse
import json
import re
from pathlib import Path

import pytest

from gpufeed.catalogue import METRICS, markdown
from gpufeed.commands import metrics

PAGE = Path(__file__).parents[2] / "exporter" / "METRICS.md"


def test_the_committed_page_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics.run(argparse.Namespace(format="markdown")) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, (
        "run: gpufeed metrics --format markdown > exporter/METRICS.md"
    )


def test_the_page_has_a_row_for_every_metric_and_every_table_is_square() -> None:
    rows = [line for line in markdown.render().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7}
    named = {match[1] for line in rows if (match := re.match(r"\| `(\w+)` \|", line))}
    assert named == {name.removeprefix("gpufeed_") for name in METRICS}


def test_the_page_says_what_differs_within_a_metric() -> None:
    row = next(line for line in markdown.render().splitlines() if line.startswith("| `gpu_power_limit_watts`"))
    assert "**G**, `limit`" in row
    assert "default for limit `enforced`; full for others" in row


def test_the_page_marks_what_may_still_change_and_shows_buckets() -> None:
    page = markdown.render()
    assert "Experimental: may still change." in page
    assert "histogram, le 0.001 0.005" in page


def test_json_has_every_field_of_every_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics.run(argparse.Namespace(format="json")) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(METRICS)
    assert listed["gpufeed_gpu_up"]["labels"] == ["gpu", "uuid"]
    assert listed["gpufeed_storage_read_bytes_total"]["row_profile"]["others"] == "default"
