# SPDX-License-Identifier: Apache-2.0
"""The reference of all keys, as a configuration file in which every default stands commented out.

Lines that begin with `##` are prose; taking one `#` off every other line gives a file that says the defaults.
"""

import textwrap
from collections.abc import Iterator
from typing import Any, Final

import yaml
from msgspec import inspect

from gpufeed.config.duration import Duration
from gpufeed.config.keys import Key, keys_of, struct_of, unmarked
from gpufeed.config.schema import Config

_WIDTH: Final = 100
_HEADER: Final = """\
## Configuration of gpufeed: every key with its default. Made from the schema; `gpufeed check-config --reference`
## prints it. Take the # off what you change. Durations: 200ms, 10s, 5m, 1h30m. Sizes and rates in base units.
## {hostname}, {fqdn} and {credentials} (where systemd's LoadCredential= leaves secrets) are filled in everywhere.
"""


def reference() -> str:
    """The text of `systemd/gpufeed.yml`."""
    return _HEADER + "".join(f"{line}\n" for key in keys_of(Config) for line in ("", *_lines(key, 0)))


def _lines(key: Key, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield from _prose(f"{key.help}{_remarks(key)}", indent)
    if key.section is None:
        yield f"#{indent}{key.name}: {_value(key.default)}"
        yield from _items(key, indent)
        return
    yield f"#{indent}{key.name}:"
    for inner in keys_of(key.section, key.path):
        yield from _lines(inner, depth + 1)


def _items(key: Key, indent: str) -> Iterator[str]:
    item = _item_of(key.kind)
    section = struct_of(item) if item is not None else None
    if section is None:
        return
    names = ", ".join(f"{one.name} ({one.help.rstrip('.')})" for one in keys_of(section))
    yield from _prose(f"  Keys of each: {names}.", indent)


def _item_of(kind: inspect.Type) -> inspect.Type | None:
    if isinstance(kind, inspect.VarTupleType):
        return unmarked(kind.item_type)[0]
    if isinstance(kind, inspect.DictType):
        return unmarked(kind.value_type)[0]
    return None


def _remarks(key: Key) -> str:
    choices = _choices(key.kind)
    remarks = (
        f" {', '.join(choices)}." if choices else "",
        f" Flag --{key.marks['flag']}." if "flag" in key.marks else "",
        " A change needs a restart." if key.marks.get("needs_restart") else "",
        " Has no effect in this version." if key.marks.get("not_yet") else "",
    )
    return "".join(remarks)


def _choices(kind: inspect.Type) -> tuple[str, ...]:
    if isinstance(kind, inspect.UnionType):
        return tuple(choice for one in kind.types for choice in _choices(one))
    return tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()


def _prose(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, _WIDTH, initial_indent=f"## {indent}", subsequent_indent=f"## {indent}")


def _value(value: Any) -> str:  # noqa: ANN401 any default of the schema
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, tuple):
        value = list(value)
    dumped = yaml.safe_dump(value, default_flow_style=True, width=_WIDTH * 10, sort_keys=False)
    return dumped.removesuffix("...\n").strip()
