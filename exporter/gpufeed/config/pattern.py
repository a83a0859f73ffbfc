# SPDX-License-Identifier: Apache-2.0
"""Regular expressions that no name can make slow: the probe matches names of devices and mounts with them.

A matcher that backtracks tries every way to divide a name among what repeats. Few repetitions, none within another and
no choice within one, leave few ways.
"""

import re
from re import _parser as re_parser  # type: ignore[attr-defined]  # what a repetition holds, only its tree tells
from typing import Any, Final, NamedTuple

UNBOUNDED_MAX: Final = 3
VARIABLE_MAX: Final = 6
FEW: Final = 8
"""A repetition of at most so many times counts as variable; beyond, as unbounded."""
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})


class _Ways(NamedTuple):
    """Repetitions on one way through an expression, and whether there is any choice at all."""

    unbounded: int = 0
    variable: int = 0
    has_choice: bool = False

    def then(self, other: "_Ways") -> "_Ways":
        return _Ways(
            self.unbounded + other.unbounded, self.variable + other.variable, self.has_choice or other.has_choice
        )

    def instead(self, other: "_Ways") -> "_Ways":
        return _Ways(max(self.unbounded, other.unbounded), max(self.variable, other.variable), has_choice=True)


def check_pattern(text: str) -> None:
    """Raise ValueError, as the end of a sentence, for what is no regular expression or may take long to match."""
    try:
        re.compile(text)
        ways = _ways(re_parser.parse(text))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a regular expression: {error}") from None
    if ways.unbounded > UNBOUNDED_MAX or ways.variable > VARIABLE_MAX:
        raise ValueError(
            f"expected a regular expression with at most {UNBOUNDED_MAX} of * and + and {VARIABLE_MAX} of ? on a way"
        )


def _ways(part: Any) -> _Ways:  # noqa: ANN401  # a node of the parser's tree
    found = _Ways()
    for operation, argument in part:
        found = found.then(_of(str(operation), argument))
    return found


def _of(operation: str, argument: Any) -> _Ways:  # noqa: ANN401  # as above
    if operation in _REPEATS:
        least, most, body = argument
        inner = _ways(body)
        if most > 1 and inner.has_choice:
            raise ValueError(
                "expected a regular expression without a choice inside what repeats, as in (a+)+ or (a|b)*"
            )
        if most == least:
            return inner
        return inner.then(_Ways(int(most > FEW), int(most <= FEW), has_choice=True))
    if operation == "BRANCH":
        alternatives = [_ways(alternative) for alternative in argument[1]]
        whole = alternatives[0]
        for alternative in alternatives[1:]:
            whole = whole.instead(alternative)
        return whole
    if operation in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
        return _ways(argument[-1])
    if operation == "ATOMIC_GROUP":
        return _ways(argument)
    if operation == "GROUPREF_EXISTS":
        return _ways(argument[1]).instead(_ways(argument[2] or ()))
    return _Ways()
