# SPDX-License-Identifier: Apache-2.0
"""What was taken for what, as a picture: a row for every truth, a column for every answer, darker for more time."""

from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

CELL: Final = 46
LEFT: Final = 170
TOP: Final = 190
_FADED: Final = 0.45
"""Share of a row from which on its number is light on dark."""
_LEAST: Final = 0.005
_RIGHT, _WRONG = (31, 119, 100), (178, 60, 40)

ORDER: Final = (
    "busy", "communicating", "throttled", "idle_held", "idle_free", "fault", "starved/storage", "starved/checkpoint",
    "starved/host_cpu", "starved/host_memory", "starved/pcie", "starved/nvlink", "starved/fabric", "starved/peer",
    "starved/unknown", "unknown",
)  # fmt: skip


def picture(title: str, confusion: Mapping[str, float]) -> str:
    """An SVG file. `confusion`: seconds by "truth>answer"; each row is shown as shares of its truth."""
    cells = {tuple(key.split(">")): seconds for key, seconds in confusion.items()}
    names = [name for name in ORDER if any(name in key for key in cells)]
    width, height = LEFT + CELL * len(names) + 20, TOP + CELL * len(names) + 20
    body = "\n".join(_body(title, cells, names))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _body(title: str, cells: Mapping[tuple[str, ...], float], names: list[str]) -> Iterator[str]:
    yield f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)}</text>'
    yield '<text x="12" y="44" fill="#555">rows: what was true; columns: what was said; percent of each row</text>'
    for at, name in enumerate(names):
        middle = CELL * at + CELL // 2
        yield f'<text x="{LEFT - 8}" y="{TOP + middle + 4}" text-anchor="end">{escape(name)}</text>'
        x, y = LEFT + middle + 4, TOP - 8
        yield f'<text x="{x}" y="{y}" transform="rotate(-60 {x} {y})">{escape(name)}</text>'
    for row, true in enumerate(names):
        whole_s = sum(seconds for key, seconds in cells.items() if key[0] == true)
        for column, given in enumerate(names):
            share = cells.get((true, given), 0.0) / whole_s if whole_s else 0.0
            yield from _cell(LEFT + CELL * column, TOP + CELL * row, share, is_right=true == given)


def _cell(x: int, y: int, share: float, *, is_right: bool) -> Iterator[str]:
    hue = _RIGHT if is_right else _WRONG
    color = ",".join(str(round(255 - share * (255 - part))) for part in hue)
    yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="rgb({color})" stroke="#ddd"/>'
    if share >= _LEAST:
        ink = "#fff" if share > _FADED else "#222"
        middle = f'x="{x + CELL // 2}" y="{y + CELL // 2 + 4}"'
        yield f'<text {middle} text-anchor="middle" fill="{ink}">{100 * share:.0f}</text>'
