# SPDX-License-Identifier: Apache-2.0
"""YAML nodes to the structs of the schema. Goes on after a problem, so that all of them are found at once.

A scalar is read by what its key expects, from the text as written: YAML's own guesses (`no` is false, `0777` is 511)
are not asked.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import yaml
from msgspec import NODEFAULT, Struct, inspect

from gpufeed.config.document import Problem, line_of
from gpufeed.config.duration import Duration
from gpufeed.config.keys import every_key, keys_of, struct_of, unmarked
from gpufeed.config.schema import Config

_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z", re.ASCII)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_WORDS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_MISSING: Final = object()

Path = tuple[str, ...]


class Decoder:
    """Decodes nodes of one file or flag; `problems` grows as it goes."""

    def __init__(self, file: str, root: type[Struct] = Config) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._root = root  # where a misplaced key is looked for

    def section(self, node: yaml.Node, section: type[Struct], at: Path = ()) -> Any:  # noqa: ANN401 a `section`
        """The struct that a mapping describes. Keys with problems keep their default."""
        if _is_null(node):
            return self._build(node, section, {}, at)
        if not isinstance(node, yaml.MappingNode):
            self._report(node, at, "expected keys with values")
            return self._build(node, section, {}, at)
        keys = {key.name: key for key in keys_of(section, at)}
        values: dict[str, Any] = {}
        for name, name_node, value_node in self._entries(node, at):
            key = keys.get(name)
            if key is None:
                self._report(name_node, (*at, name), _unknown(name, at, tuple(keys), self._root))
                continue
            value = self.value(value_node, key.kind, key.path, key.marks)
            values[key.attribute] = key.default if value is _MISSING else value
        return self._build(node, section, values, at)

    def value(self, node: yaml.Node, kind: inspect.Type, at: Path, marks: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """What a node says, as `kind` and within the marks; a sentinel after a problem."""
        section = struct_of(kind)
        if section is not None:
            return self.section(node, section, at)
        if isinstance(kind, inspect.UnionType):
            inner, _, inner_marks = unmarked(_not_null(kind))
            return None if _is_null(node) else self.value(node, inner, at, {**marks, **inner_marks})
        if isinstance(kind, inspect.VarTupleType):
            return self._sequence(node, kind, at)
        if isinstance(kind, inspect.DictType):
            return self._mapping(node, kind, at)
        if not isinstance(node, yaml.ScalarNode) or _is_null(node):
            return self._report(node, at, f"expected {_expected(kind)}")
        try:
            value = _scalar(node, kind)
            _within(value, marks)
        except ValueError as error:
            found = "" if marks.get("is_secret") else f", found {node.value[:80]!r}"
            return self._report(node, at, f"{error}{found}")
        return value

    def is_bad(self, value: object) -> bool:
        """Whether `value` came back from a node with a problem."""
        return value is _MISSING

    def _sequence(self, node: yaml.Node, kind: inspect.VarTupleType, at: Path) -> Any:  # noqa: ANN401
        if not isinstance(node, yaml.SequenceNode):
            return self._report(node, at, "expected a list")
        inner, _, marks = unmarked(kind.item_type)
        items = [self.value(item, inner, (*at, str(index)), marks) for index, item in enumerate(node.value)]
        return tuple(item for item in items if item is not _MISSING)

    def _mapping(self, node: yaml.Node, kind: inspect.DictType, at: Path) -> Any:  # noqa: ANN401
        if not isinstance(node, yaml.MappingNode):
            return self._report(node, at, "expected keys with values")
        inner, _, marks = unmarked(kind.value_type)
        name_kind, _, name_marks = unmarked(kind.key_type)
        found = {}
        for name, name_node, value_node in self._entries(node, at):
            path = (*at, name)
            is_named = self.value(name_node, name_kind, path, name_marks) is not _MISSING
            value = self.value(value_node, inner, path, marks)
            if is_named and value is not _MISSING:
                found[name] = value
        return found

    def _entries(self, node: yaml.MappingNode, at: Path) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        first: dict[str, yaml.Node] = {}
        for name_node, value_node in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                self._report(name_node, at, "a key must be a word")
                continue
            name = name_node.value
            if name in first:
                self._report(name_node, (*at, name), f"stands in {line_of(first[name], self._file)} already")
                continue
            first[name] = name_node
            yield name, name_node, value_node

    def _build(self, node: yaml.Node, section: type[Struct], values: dict[str, Any], at: Path) -> Any:  # noqa: ANN401
        for key in keys_of(section, at):
            if key.attribute not in values and key.default is NODEFAULT:
                self._report(node, key.path, "is missing")
                return _MISSING
        if NODEFAULT in values.values():  # a required key with a problem, reported already
            return _MISSING
        return section(**values)

    def _report(self, node: yaml.Node, at: Path, text: str) -> Any:  # noqa: ANN401 the sentinel
        self.problems.append(Problem(place=line_of(node, self._file), key=_clean(".".join(at)), text=text))
        return _MISSING


def suggest(word: str, known: Sequence[str]) -> str:
    """`; did you mean X?`, or nothing."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _unknown(name: str, at: Path, siblings: tuple[str, ...], root: type[Struct]) -> str:
    hint = suggest(name, siblings)
    if not hint:
        elsewhere = [key.dotted for key in every_key(root) if key.name == name]
        hint = f"; did you mean {elsewhere[0]}?" if elsewhere else ""
    if not hint:
        hint = f"; known here: {', '.join(siblings)}"
    elif at and "did you mean " in hint and "." not in hint:
        hint = hint.replace("did you mean ", f"did you mean {'.'.join(at)}.")
    return f"unknown key{hint}"


def _scalar(node: yaml.ScalarNode, kind: inspect.Type) -> object:
    text, is_plain = node.value, not node.style
    reader = _READERS.get(type(kind))
    if isinstance(kind, inspect.LiteralType):
        return _literal(text, kind)
    if reader is None:
        return _duration(text)
    return reader(text, is_plain)


def _boolean(text: str, is_plain: bool) -> bool:  # noqa: FBT001 a reader's form
    if not is_plain or text not in _WORDS:
        raise ValueError("expected true or false")
    return _WORDS[text]


def _integer(text: str, is_plain: bool) -> int:  # noqa: FBT001
    if not is_plain or _INTEGER.match(text) is None:
        raise ValueError("expected a whole number")
    return int(text)


def _number(text: str, is_plain: bool) -> float:  # noqa: FBT001
    if not is_plain or _NUMBER.match(text) is None or math.isinf(float(text)):
        raise ValueError("expected a number")
    return float(text)


def _text(text: str, is_plain: bool) -> str:  # noqa: FBT001, ARG001
    if not text.isprintable():
        raise ValueError("expected text without control characters")
    return text


def _raw(text: str, is_plain: bool) -> bytes:  # noqa: FBT001, ARG001
    return text.encode("utf-8")


def _literal(text: str, kind: inspect.LiteralType) -> object:
    if text not in kind.values:
        raise ValueError(f"expected {_expected(kind)}{suggest(text, tuple(map(str, kind.values)))}")
    return text


def _duration(text: str) -> Duration:
    return Duration.parse(text)


_READERS: Final[Mapping[type[inspect.Type], Callable[[str, bool], object]]] = {
    inspect.BoolType: _boolean,
    inspect.IntType: _integer,
    inspect.FloatType: _number,
    inspect.StrType: _text,
    inspect.BytesType: _raw,
}


def _within(value: object, marks: Mapping[str, Any]) -> None:
    check = marks.get("check")
    if check is not None:
        check(value)
    if isinstance(value, int | float):
        if "ge" in marks and value < marks["ge"]:
            raise ValueError(f"expected at least {marks['ge']}")
        if "gt" in marks and value <= marks["gt"]:
            raise ValueError(f"expected more than {marks['gt']}")
        if "le" in marks and value > marks["le"]:
            raise ValueError(f"expected at most {marks['le']}")


def _expected(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.LiteralType):
        return f"one of {', '.join(map(str, kind.values))}"
    words = {
        inspect.BoolType: "true or false",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
        inspect.StrType: "text",
        inspect.BytesType: "text",
    }
    return words.get(type(kind), "a duration such as 10s")


def _not_null(kind: inspect.UnionType) -> inspect.Type:
    return next(one for one in kind.types if not isinstance(one, inspect.NoneType))


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS


def _clean(text: str) -> str:
    shown = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return shown[:200]
