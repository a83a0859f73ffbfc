# SPDX-License-Identifier: Apache-2.0
"""The schema as a flat list of keys: what flags, reload, reference and suggestions are made from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from msgspec import NODEFAULT, Struct, inspect

from gpufeed.config.duration import Duration
from gpufeed.config.schema import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a section: its dotted path as written in the file, its type without marks, and its marks."""

    path: tuple[str, ...]
    attribute: str  # the field's name in Python: differs where the key is a keyword
    kind: inspect.Type
    help: str
    marks: Mapping[str, Any]
    default: Any  # NODEFAULT where the key is required

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path[-1]

    @property
    def dotted(self) -> str:
        """`web.max_requests`."""
        return ".".join(self.path)

    @property
    def section(self) -> type[Struct] | None:
        """The struct behind a section; None for a value."""
        return struct_of(self.kind)


_NO_MARKS: Final[Mapping[str, Any]] = {}


def unmarked(kind: inspect.Type) -> tuple[inspect.Type, str, Mapping[str, Any]]:
    """A type without its marks, its help, and the marks."""
    if not isinstance(kind, inspect.Metadata):
        return kind, "", _NO_MARKS
    inner, _, _ = unmarked(kind.type)
    return inner, (kind.extra_json_schema or {}).get("description", ""), kind.extra or _NO_MARKS


def struct_of(kind: inspect.Type) -> type[Struct] | None:
    """The struct that a type is, if it is one with keys."""
    if isinstance(kind, inspect.StructType) and kind.cls is not Duration:
        return kind.cls
    return None


@cache
def keys_of(section: type[Struct], at: tuple[str, ...] = ()) -> tuple[Key, ...]:
    """The keys of one section, in the order of the schema."""
    found = inspect.type_info(section)
    if not isinstance(found, inspect.StructType):
        raise TypeError(section.__name__)
    return tuple(_key(one, at) for one in found.fields)


@cache
def every_key(section: type[Struct] = Config, at: tuple[str, ...] = ()) -> tuple[Key, ...]:
    """All keys below a section that have a fixed path, sections before their keys."""
    return tuple(_walk(section, at))


def value_at(config: Struct, key: Key) -> Any:  # noqa: ANN401 the key knows its type, we do not
    """What a configuration has for a key of `every_key`."""
    value: Any = config
    section: type[Struct] = type(config)
    for part in key.path:
        attribute = next(one.attribute for one in keys_of(section) if one.name == part)
        value = getattr(value, attribute)
        section = type(value)
    return value


def _walk(section: type[Struct], at: tuple[str, ...]) -> Iterator[Key]:
    for key in keys_of(section, at):
        yield key
        if key.section is not None:
            yield from _walk(key.section, key.path)


def _key(one: inspect.Field, at: tuple[str, ...]) -> Key:
    kind, text, marks = unmarked(one.type)
    default = one.default
    if default is NODEFAULT and one.default_factory is not NODEFAULT:
        default = one.default_factory()
    return Key(path=(*at, one.encode_name), attribute=one.name, kind=kind, help=text, marks=marks, default=default)
