# SPDX-License-Identifier: Apache-2.0
"""The XID catalogue against the sets a site's runbook is made of."""

from typing import get_args

import pytest

from gpufeed.alerting.define import ACTIONS
from gpufeed.health.xid_catalogue import XIDS, XidWord, classify

UNUSABLE = {46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 158, 167}
CONTAINED = {63, 92, 93, 94, 121, 156, 157, 160, 161, 168}
APP = {8, 11, 13, 25, 31, 32, 39, 40, 41, 43, 45, 68, 69, 70, 71, 72, 75, 76, 77, 80, *range(126, 135)}
LINK = {74, 137, *range(144, 151), 155, 159}
INFO = {
    37, 38, 44, 54, 56, 57, 58, 60, 61, 65, 66, 67, 73, 78, 81, 88, 89, 96, 97, *range(122, 126), 141, 151, 154,
    *range(162, 167), 169, 170, 171, 172,
}  # fmt: skip


@pytest.mark.parametrize(
    ("word", "codes"),
    [("unusable", UNUSABLE), ("contained", CONTAINED), ("app", APP), ("link", LINK), ("info", INFO)],
)
def test_every_known_code_is_in_the_class_that_says_what_to_do(word: str, codes: set[int]) -> None:
    assert {xid for xid in XIDS if classify(xid).word == word} == codes


def test_only_what_a_gpu_cannot_work_after_fails_it() -> None:
    assert {xid for xid, of in XIDS.items() if of.level == 2} == UNUSABLE


@pytest.mark.parametrize("xid", [63, 93, 160, 137])
def test_what_was_handled_leaves_the_gpu_well(xid: int) -> None:
    assert classify(xid).level == 0


def test_a_code_that_nobody_has_heard_of_is_info_and_says_so() -> None:
    assert classify(9_999).word == "info"
    assert classify(9_999).level == 0
    assert "not in the catalogue" in classify(9_999).meaning


def test_every_entry_says_what_it_means_and_what_to_do() -> None:
    assert all(of.meaning and of.action in ACTIONS and of.word in get_args(XidWord) for of in XIDS.values())
