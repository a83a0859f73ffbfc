# SPDX-License-Identifier: Apache-2.0
"""A reading with fallbacks: refusals are remembered, failures pass, and what is about the device goes up."""

from collections.abc import Callable

import pytest

from gpufeed.errors import Absent, Broken, Denied, DeviceLost, DeviceResetRequired, SourceError, Unsupported
from gpufeed.sources.nvml.faults import HandleGone, InvalidArgument
from gpufeed.sources.nvml.getter import Getter


class Script:
    """Answers in turn; the last one for ever."""

    def __init__(self, *answers: int | SourceError) -> None:
        self._answers = list(answers)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, SourceError):
            raise answer
        return answer


@pytest.mark.parametrize("refusal", [Unsupported, Denied, InvalidArgument])
def test_a_refused_call_gives_way_to_the_next_and_is_not_made_again(refusal: type[SourceError]) -> None:
    newer, older = Script(refusal("no")), Script(7)
    getter = Getter(newer, older)
    failures: list[SourceError] = []

    assert [getter.read(failures) for _ in range(3)] == [7, 7, 7]
    assert (newer.calls, older.calls) == (1, 3)
    assert not failures
    assert not getter.is_missing


def test_what_every_call_refuses_is_missing_for_good_and_says_why() -> None:
    call = Script(Unsupported("not here"))
    getter = Getter(call)

    assert [getter.read([]) for _ in range(3)] == [None] * 3
    assert call.calls == 1
    assert getter.is_missing
    assert str(getter.refusal) == "not here"


def test_a_passing_failure_loses_the_value_of_that_read_only() -> None:
    getter = Getter(Script(5, Broken("hiccup"), 6))
    failures: list[SourceError] = []

    assert [getter.read(failures) for _ in range(3)] == [5, None, 6]
    assert [str(failure) for failure in failures] == ["hiccup"]


def test_a_refusal_after_answers_counts_for_that_read_only() -> None:
    getter = Getter(Script(5, Unsupported("MIG is on"), 6))

    assert [getter.read([]) for _ in range(3)] == [5, None, 6]


def test_nothing_to_list_is_neither_failure_nor_refusal() -> None:
    failures: list[SourceError] = []

    assert Getter(Script(Absent("no samples"), 4)).read(failures) is None
    assert not failures


@pytest.mark.parametrize("error", [DeviceLost, DeviceResetRequired, HandleGone])
@pytest.mark.parametrize("first", [(), (3,)], ids=["at once", "after an answer"])
def test_what_is_about_the_device_goes_up(error: type[SourceError], first: tuple[int, ...]) -> None:
    getter = Getter(Script(*first, error("gone")))
    for value in first:
        assert getter.read([]) == value

    with pytest.raises(error):
        getter.read([])


def test_an_invalid_argument_after_answers_means_that_the_handle_is_gone() -> None:
    getter = Getter(Script(3, InvalidArgument("handle")))
    getter.read([])

    with pytest.raises(InvalidArgument):
        getter.read([])


def test_no_call_at_all_is_missing() -> None:
    nothing: tuple[Callable[[], int], ...] = ()

    assert Getter(*nothing).is_missing
