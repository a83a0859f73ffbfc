# SPDX-License-Identifier: Apache-2.0
"""The house rules that a linter does not know."""

import ast
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "exporter" / "gpufeed"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = [path for path in SOURCES if path.name != "__init__.py"]
PYTHON = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_stay_small_median_130_most_300_none_over_400() -> None:
    sizes = sorted(lines_of(path) for path in MODULES)
    assert statistics.median(sizes) <= 130
    assert sizes[int(len(sizes) * 0.9)] <= 300
    over = {str(path.relative_to(ROOT)): lines_of(path) for path in MODULES if lines_of(path) > 400}
    assert not over


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} {node.end_lineno - node.lineno + 1} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > 40 + docstring_lines(node)
    ]
    assert not long


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return len((ast.get_docstring(node) or "").splitlines())


@pytest.mark.parametrize("word", ["utils", "helpers", "helper", "manager", "managers", "common", "commons", "misc"])
def test_no_file_is_named_after_nothing(word: str) -> None:
    assert not [path for path in PYTHON if word in (path.stem, path.parent.name)]


def test_every_file_names_its_licence_and_says_what_it_is() -> None:
    bare = [
        str(path.relative_to(ROOT))
        for path in PYTHON
        if not path.read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: Apache-2.0\n")
        or ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
    ]
    assert not bare


def test_no_marker_of_unfinished_work_lands() -> None:
    marker = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|NotImplemented" r"Error|pragma: no " r"cover)\b")
    hits = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in PYTHON
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marker.search(line)
    ]
    assert not hits


def test_only_the_lane_catches_everything() -> None:
    broad = {
        str(path.relative_to(PACKAGE))
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
    }
    # the simulated NVML is called from C, where an exception that leaves the callback becomes a random status code
    assert {path for path in broad if not path.startswith("simulate/nvml/")} <= {"probe/lane.py"}
