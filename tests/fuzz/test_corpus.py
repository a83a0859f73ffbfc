# SPDX-License-Identifier: Apache-2.0
"""What fuzzing has found worth keeping, each time; and a little of the fuzzing itself. The rest is `make fuzz`."""

from pathlib import Path

import pytest

from fuzz import nodes
from fuzz.parsers import CORPUS, contents_of_ours, kept, seeds_of
from fuzz.targets import TARGETS, fault, unfit


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_give_values_or_one_error(name: str, tmp_path: Path) -> None:
    inputs = [*kept(name), *seeds_of(TARGETS[name], contents_of_ours(tmp_path))]
    assert [wrong for data in inputs if (wrong := fault(TARGETS[name], data)) is not None] == []


def test_every_kept_input_is_of_a_parser() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)


@pytest.mark.parametrize(
    "value", [-1, 2**64, float("nan"), -0.5, float("inf"), "a\x1b[2J", ("x", [{"y": -3}]), object()]
)
def test_what_may_not_stand_on_a_page_is_seen(value: object) -> None:
    assert unfit(value) is not None


def test_a_bent_file_loses_nothing_of_anybody_else_and_all_is_right_again_after(tmp_path: Path) -> None:
    assert nodes.fuzz(2, 1, tmp_path) >= nodes.FILES_AT_ONCE
