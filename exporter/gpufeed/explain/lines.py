# SPDX-License-Identifier: Apache-2.0
"""An explanation as a tired person reads it: what, why, what it would bring, where to look, what else it could be."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from gpufeed.explain.numbers import span
from gpufeed.explain.shape import Part

WIDTH: Final = 110
_SPOKEN: Final = frozenset({"busy", "communicating", "idle_free"})
_DETAILED: Final = 3
_SURE: Final = 0.75
_FAIRLY: Final = 0.4


def lines(
    parts: Sequence[Part], unseen: Sequence[str], unwell: Sequence[str], window_s: float, *, is_probe_up: bool
) -> Iterator[str]:
    """The lines, without their ends."""
    if not is_probe_up:
        yield "Nothing is being read now: the probe is down. What follows is what was seen before."
    if not parts:
        yield "No GPU is known. `gpufeed doctor` says what is missing."
        return
    watched_s = max(one.watched_seconds for one in parts)
    since = f"; watched for {span(watched_s)} of them" if watched_s < window_s - 10 else ""
    yield f"The last {span(window_s)}{since}:"
    for number, one in enumerate(parts):
        job = f" ({one.job})" if one.job else ""
        yield from _wrapped(f"{one.name}{job}: {one.summary}.", "", "    ")
        if one.state not in _SPOKEN and number < _DETAILED:
            yield from _details(one)
    if unwell:
        more = f"; and {len(unwell) - 2} more, see `gpufeed check`" if len(unwell) > 2 else ""  # noqa: PLR2004 two
        yield from _wrapped(f"Not well: {'; '.join(unwell[:2])}{more}.", "", "    ")
    if unseen:
        more = f"; and {len(unseen) - 1} more, see `gpufeed doctor`" if len(unseen) > 1 else ""
        yield from _wrapped(f"Not measured: {unseen[0]}{more}.", "", "    ")


def told(sentence: str) -> list[str]:
    """A sentence of its own, on as many lines as it takes."""
    return _wrapped(f"{sentence}.", "", "    ")


def _details(one: Part) -> Iterator[str]:
    sure = _sureness(one.confidence)
    if one.why:
        yield from _wrapped(f"{one.why}{f' [{sure}]' if sure else ''}", "  why:  ", "        ")
    if one.gain_at_most is not None:
        yield f"  gain: at most {one.gain_at_most:.1f} times the work, if this were gone and nothing took its place"
    if one.next:
        yield from _wrapped(one.next, "  next: ", "        ")
    if one.alike:
        yield from _wrapped(f"{one.alike} look the same from this node", "  note: ", "        ")


def _sureness(confidence: float | None) -> str:
    if confidence is None:
        return ""
    word = "sure" if confidence >= _SURE else "fairly sure" if confidence >= _FAIRLY else "not sure"
    return f"{word}, {confidence:.2f}"


def _wrapped(text: str, first: str, later: str) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
