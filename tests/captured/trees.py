# SPDX-License-Identifier: Apache-2.0
"""Files of a node as one text: tests/captures/*.tree.

`:: folder` begins the entries below a folder. An entry is `name value`, `name -> target` for a link, `name !` for a
file that refuses to be read (a folder stands there: every read raises OSError), or `name =` with lines that begin
with `|`. Names may hold slashes; ␀ stands for a byte of zero.
"""

from pathlib import Path

CAPTURES = Path(__file__).parents[1] / "captures"
OURS = tuple(sorted(path.stem for path in CAPTURES.glob("*.tree")))


def unpack(name: str, root: Path) -> Path:
    """Write the files of a tree below `root`, beside what is there."""
    return write((CAPTURES / f"{name}.tree").read_text(encoding="utf-8"), root)


def write(text: str, root: Path) -> Path:
    """The same with the text of a tree."""
    folder = file = root
    for line in text.replace("␀", "\0").split("\n"):
        if line.startswith("|"):
            with file.open("a", encoding="utf-8") as open_file:
                open_file.write(f"{line[1:]}\n")
        elif line.startswith(":: "):
            folder = root / line.removeprefix(":: ")
            folder.mkdir(parents=True, exist_ok=True)
        elif line and not line.startswith("#"):
            file = _entry(folder, line)
    return root


def _entry(folder: Path, line: str) -> Path:
    name, _, value = line.partition(" ")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if value == "!":
        (path / ".read-fails").mkdir(parents=True)
    elif value.startswith("-> "):
        path.symlink_to(value.removeprefix("-> "))
    elif value == "=":
        path.write_text("", encoding="utf-8")
    else:
        path.write_text(f"{value}\n" if value else "", encoding="utf-8")
    return path
