# SPDX-License-Identifier: Apache-2.0
"""A GPU's recent past as a picture: a column for every slot, filled with its states from the bottom up.

One path for each colour, so that half an hour of eight GPUs is a few kilobytes.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from gpufeed.palette import CAUSE_COLOURS, name_of
from gpufeed.web.markup import Markup, tag
from gpufeed.web.shape import SlotView, StateSeconds
from gpufeed.web.words import css_class, label, percent

COLUMNS: Final = 180
_HEIGHT: Final = 40
_BAR_WIDTH: Final = 1000
_SPANS_S: Final = (5 * 60, 15 * 60, 30 * 60)
LONGEST_S: Final = _SPANS_S[-1]

Names = dict[str, float]
"""Time by entry of the palette."""


def span_s(oldest_s: float, now_s: float) -> int:
    """The shortest span that shows all there is: a picture that is almost empty says little."""
    return next((span for span in _SPANS_S if oldest_s >= now_s - span), _SPANS_S[-1])


def timeline(slots: Sequence[SlotView], end_s: float, shown_s: int) -> Markup:
    """The picture of `shown_s` seconds up to `end_s`. What it shows is told in words beside it."""
    columns = _columns(slots, end_s, shown_s)
    shapes = [_shape(name, columns) for name in CAUSE_COLOURS if any(name in column for column in columns)]
    size = {"viewBox": f"0 0 {COLUMNS} {_HEIGHT}", "preserveAspectRatio": "none"}
    spoken = spoken_shares(one for slot in slots if slot.time_seconds >= end_s - shown_s for one in slot.states)
    name = f"Last {shown_s // 60} minutes: {spoken or 'nothing decided'}"
    return tag("svg", *shapes, class_="timeline", role="img", aria_label=name, **size)


def bar(states: Sequence[StateSeconds]) -> Markup:
    """One bar of all the time, in the order of the palette."""
    named = _named(states)
    total, parts, left = sum(named.values()), [], 0.0
    for name in CAUSE_COLOURS:
        width = named.get(name, 0.0) / total * _BAR_WIDTH if total > 0 else 0.0
        if width > 0:
            geometry = {"x": f"{left:.1f}", "width": f"{width:.1f}", "height": "10"}
            parts.append(tag("rect", tag("title", f"{_shown(name)} {percent(width / _BAR_WIDTH)}"),
                             class_=css_class(name), **geometry))  # fmt: skip
            left += width
    size = {"viewBox": f"0 0 {_BAR_WIDTH} 10", "preserveAspectRatio": "none"}
    return tag("svg", *parts, class_="bar", role="img", aria_label=spoken_shares(states) or "nothing decided", **size)


def legend(states: Sequence[StateSeconds]) -> Markup:
    """Colours, names and shares, the largest first: a picture without it would be a riddle."""
    named = _named(states)
    total = sum(named.values())
    largest_first = sorted(named.items(), key=lambda item: -item[1])
    items = (
        tag("li", swatch(name), _shown(name), " ", tag("b", percent(spent / total)))
        for name, spent in largest_first
        if spent > 0
    )
    return tag("ul", *items, class_="legend", aria_label="Share of the last five minutes of all GPUs")


def swatch(name: str) -> Markup:
    """A square of a colour; says nothing by itself."""
    square = tag("rect", width="12", height="12", class_=css_class(name))
    return tag("svg", square, class_="swatch", viewBox="0 0 12 12", aria_hidden="true")


def spoken_shares(states: Iterable[StateSeconds]) -> str:
    """`starved: storage 62 %, busy: tensor 38 %`."""
    sums: dict[tuple[str, str], float] = {}
    for one in states:
        sums[one.state, one.cause] = sums.get((one.state, one.cause), 0.0) + one.seconds
    total = sum(sums.values())
    largest_first = sorted(sums.items(), key=lambda item: -item[1])
    return ", ".join(f"{label(*key)} {percent(spent / total)}" for key, spent in largest_first if spent > 0)


def _columns(slots: Sequence[SlotView], end_s: float, shown_s: int) -> list[Names]:
    """What each column is filled with; one slot may be several columns wide, and the other way round."""
    columns: list[Names] = [{} for _ in range(COLUMNS)]
    width_s = shown_s / COLUMNS
    began_s = end_s - shown_s
    slot_s = max(width_s, 5.0)
    for slot in slots:
        named = _named(slot.states)
        first = max(int((slot.time_seconds - began_s) / width_s), 0)
        last = min(int((slot.time_seconds + slot_s - began_s) / width_s - 1e-9), COLUMNS - 1)
        for column in columns[first : last + 1]:
            for name, spent in named.items():
                column[name] = column.get(name, 0.0) + spent
    return columns


def _shape(name: str, columns: Sequence[Names]) -> Markup:
    """The area of one colour, as rectangles of columns that are alike."""
    path, run = [], (0, 0, 0)  # first column, top, height
    for number, column in enumerate([*columns, {}]):
        top, height = _extent(name, column)
        if (top, height) != run[1:]:
            if run[2]:
                path.append(f"M{run[0]} {run[1]}h{number - run[0]}v{run[2]}h{run[0] - number}z")
            run = (number, top, height)
    return tag("path", tag("title", _shown(name)), class_=css_class(name), d="".join(path))


def _extent(name: str, column: Names) -> tuple[int, int]:
    total = sum(column.values())
    if total <= 0 or name not in column:
        return (0, 0)
    below = 0.0
    for other in CAUSE_COLOURS:
        if other == name:
            break
        below += column.get(other, 0.0)
    bottom = _HEIGHT - round(below / total * _HEIGHT)
    top = _HEIGHT - round((below + column[name]) / total * _HEIGHT)
    return (top, bottom - top)


def _named(states: Iterable[StateSeconds]) -> Names:
    named: Names = {}
    for one in states:
        name = name_of(one.state, one.cause)
        named[name] = named.get(name, 0.0) + one.seconds
    return named


def _shown(name: str) -> str:
    state, _, cause = name.partition(" ")
    return label(state, cause)
