# SPDX-License-Identifier: Apache-2.0
"""A driver's library that crashes the probe is left alone, ever longer, and tried again."""

import signal

import pytest

from gpufeed.units import NS_PER_S
from gpufeed.wire.quarantine import Quarantine


def crash(of: Quarantine, at_s: float, lived_s: float = 1.0, code: int = -signal.SIGSEGV) -> int:
    """How many crashes count just after this one."""
    of.note_end(code, lived_s, int(at_s * NS_PER_S))
    return of.crashes(int((at_s + 0.1) * NS_PER_S))


def test_one_crash_is_an_accident_and_two_are_the_library() -> None:
    quarantine = Quarantine()
    assert crash(quarantine, 10) == 0
    assert crash(quarantine, 12) == 2
    assert quarantine.left_s(12 * NS_PER_S) == pytest.approx(60)
    assert quarantine.crashes(73 * NS_PER_S) == 0  # tried again


def test_what_goes_on_crashing_is_tried_ever_more_rarely() -> None:
    quarantine = Quarantine()
    crash(quarantine, 1)
    pauses = []
    for at_s in (2, 100, 1000, 5000):
        crash(quarantine, at_s)
        pauses.append(quarantine.left_s(at_s * NS_PER_S))
    assert pauses == [60, 300, 1800, 1800]


@pytest.mark.parametrize("code", [0, 1, -signal.SIGKILL, -signal.SIGTERM])
def test_only_a_crash_is_one(code: int) -> None:
    quarantine = Quarantine()
    crash(quarantine, 1, code=code)
    assert crash(quarantine, 2, code=code) == 0


def test_a_probe_that_lived_long_has_shown_that_the_library_is_well() -> None:
    quarantine = Quarantine()
    crash(quarantine, 1)
    assert crash(quarantine, 500, lived_s=400) == 0
    quarantine.note_end(0, 100, 700 * NS_PER_S)
    assert crash(quarantine, 800) == 0
    quarantine.note_end(None, 5, 801 * NS_PER_S)  # left behind, alive: no crash
    assert crash(quarantine, 802) == 2
