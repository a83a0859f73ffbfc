# SPDX-License-Identifier: Apache-2.0
"""Rows as text that a person reads in a terminal, and as numbers that another program reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bench.accuracy.held import Held
from bench.accuracy.summary import Bar, Row, by_view, pooled, said

_HEAD: Final = f"{'scenario':26}{'error 50%':>10}{'95%':>8}{'starved':>9}{'wrong':>8}{'false':>8}{'unknown':>9}"


def table(rows: Iterable[Row]) -> str:
    """A part for each view, and a line for all its scenarios together."""
    return "\n\n".join("\n".join(_part(of)) for of in by_view(rows).values())


def judgement(bars: Sequence[Bar], held: Held | None = None) -> str:
    """What was asked for and what was found; with `held`, also how far it may be off for now."""
    return "\n".join(_judged(bar, held) for bar in bars)


def _judged(bar: Bar, held: Held | None) -> str:
    line = f"{'met' if bar.is_met else 'MISSED':8}{bar.title:76}{bar.found:9.4f}  (≤ {bar.most:.4g})"
    if held is None or bar.is_met:
        return line
    return f"{line}  {'no worse than it was' if held.allows(bar) else 'WORSE than it was'}: ≤ {held.most(bar):.4g}"


def numbers(rows: Iterable[Row], bars: Iterable[Bar]) -> Mapping[str, Any]:
    """For JSON."""
    return {
        "rows": [
            {
                "scenario": row.scenario,
                "inputs": row.view.inputs,
                "period_ms": row.view.period_ms,
                "is_day": row.is_day,
                "share_error_median": row.error_median,
                "share_error_p95": row.error_p95,
                "seconds": row.total,
                "starved_seconds": row.starved,
                "wrong_cause_seconds": row.wrong,
                "false_starvation_seconds": row.false,
                "unknown_seconds": row.unknown,
                "alerts": row.alarms,
                "confusion_seconds": dict(row.confusion),
            }
            for row in rows
        ],
        "bars": [
            {"name": bar.name, "scenario": bar.of, "found": bar.found, "most": bar.most, "is_met": bar.is_met}
            for bar in bars
        ],
    }


def _part(rows: Sequence[Row]) -> Iterator[str]:
    yield said(rows[0])
    yield _HEAD
    yield from (_line(row.scenario, row) for row in rows)
    yield _line("all", pooled(rows))


def _line(name: str, row: Row) -> str:
    total = row.total or 1.0
    cells = f"{row.error_median:10.3f}{row.error_p95:8.3f}{row.starved / total:9.3f}"
    wrong = f"{row.wrong_ratio:8.3f}" if row.wrong_ratio else f"{'':8}"
    return f"{name:26}{cells}{wrong}{row.false_ratio:8.4f}{row.unknown_ratio:9.3f}"
