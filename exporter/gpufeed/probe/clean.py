# SPDX-License-Identifier: Apache-2.0
"""Text on its way out of the probe: valid UTF-8, no control characters, bounded. Names come from drivers and mounts."""

from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Struct, inspect

MAX_TEXT: Final = 1024
MAX_LOG: Final = 8192

T = TypeVar("T")

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """The text with what is not printable replaced, cut to `limit` characters."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_fit(character) else _REPLACEMENT for character in text)


def clean_log(text: str) -> str:
    """A log text: its lines are kept, each of them clean."""
    if len(text) > MAX_LOG:
        text = text[: MAX_LOG - 1] + "…"
    return "\n".join(clean_text(line, MAX_LOG) for line in text.split("\n"))


def clean(value: T) -> T:
    """The value with every text inside it clean; the very same object where nothing had to change."""
    return cast("T", _clean(value))


def _clean(value: Any) -> Any:  # noqa: ANN401 - any value that may cross the wire
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Struct):
        return _clean_struct(value)
    if isinstance(value, tuple | list):
        items = [_clean(item) for item in value]
        return value if all(map(_is_same, items, value)) else type(value)(items)
    if isinstance(value, dict):
        pairs = {_clean(key): _clean(item) for key, item in value.items()}
        return value if pairs == value else pairs
    return value


def _clean_struct(value: Struct) -> Struct:
    changed = {}
    for name in _text_fields(type(value)):
        before = getattr(value, name)
        after = _clean(before)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(value, **changed) if changed else value


def _is_same(one: object, other: object) -> bool:
    return one is other


def _is_fit(character: str) -> bool:
    return character.isprintable() or character == " "


@cache
def _text_fields(kind: type[Struct]) -> tuple[str, ...]:
    """Fields that may hold text somewhere: most samples are numbers and are passed over."""
    described = inspect.type_info(kind)
    fields = described.fields if isinstance(described, inspect.StructType) else ()
    return tuple(item.name for item in fields if _may_hold_text(item.type))


def _may_hold_text(kind: inspect.Type) -> bool:
    numbers = (inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.NoneType, inspect.LiteralType)
    if isinstance(kind, inspect.UnionType):
        return any(_may_hold_text(member) for member in kind.types)
    return not isinstance(kind, numbers)
