# SPDX-License-Identifier: Apache-2.0
"""YAML text to nodes that remember their line, with the parts of YAML refused that do not belong into a configuration.

No anchors, aliases, tags or second documents; no depth that could exhaust the stack; nothing is resolved to a value
here, so that `no`, `0777` and `12:30:45` stay the text that was written.
"""

from dataclasses import dataclass
from typing import Any, Final

import yaml

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 24
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: where, which key, what was expected."""

    place: str  # gpufeed.yml:12, or flag --web.max-requests
    key: str  # dotted; empty for the document
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.key, self.text) if part)


def compose(data: bytes, file: str) -> tuple[yaml.Node | None, tuple[Problem, ...]]:
    """The root node of a document (None when it is empty), and what is wrong with it as YAML."""
    if len(data) > MAX_BYTES:
        return None, (Problem(place=file, key="", text=f"larger than {MAX_BYTES} bytes"),)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, (Problem(place=f"{file}:{line}", key="", text="not UTF-8"),)
    try:
        problems = _refused(text, file)
        if problems:
            return None, problems
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        return None, (_syntax(error, text, file),)
    return node, ()


def line_of(node: yaml.Node | yaml.events.Event, file: str) -> str:
    """`file:line` of a node or an event."""
    return f"{file}:{node.start_mark.line + 1}" if node.start_mark is not None else file


def _refused(text: str, file: str) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        what = _refusal(event)
        if isinstance(event, yaml.events.DocumentStartEvent):
            documents += 1
            what = "a second document" if documents > 1 else what
        elif isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
            what = "nested too deeply" if depth > MAX_DEPTH else what
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1
        if what:
            problems.append(Problem(place=line_of(event, file), key="", text=f"{what}: not allowed here"))
        if depth > MAX_DEPTH or documents > 1:
            break
    return tuple(problems)


def _refusal(event: yaml.events.Event) -> str:
    if isinstance(event, yaml.events.AliasEvent):
        return f"alias *{event.anchor}"
    if isinstance(event, yaml.events.NodeEvent) and event.anchor:
        return f"anchor &{event.anchor}"
    if isinstance(event, yaml.events.ScalarEvent | yaml.events.CollectionStartEvent) and event.tag:
        return f"tag {event.tag}"
    return ""


def _syntax(error: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", None)
    if mark is not None:
        line = mark.line + 1
    elif isinstance(position, int):
        line = text.count("\n", 0, position) + 1
    else:
        return Problem(place=file, key="", text=f"not YAML: {error}"[:200])
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    return Problem(place=f"{file}:{line}", key="", text=f"not YAML: {what}")
