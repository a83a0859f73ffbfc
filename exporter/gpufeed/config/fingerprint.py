# SPDX-License-Identifier: Apache-2.0
"""A configuration as others may see it: placeholders filled in, secrets out, and a short hash to compare nodes by."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, json, structs, to_builtins

from gpufeed.config.duration import Duration
from gpufeed.config.keys import keys_of
from gpufeed.config.schema import Config

_SECRET: Final = "<secret>"  # noqa: S105 what stands in its place
_HASH_DIGITS: Final = 12


def expand(config: Config, fillings: Mapping[str, Callable[[], str]]) -> Config:
    """The configuration with `{hostname}`, `{fqdn}`, `{credentials}` filled in wherever they stand.

    Each is asked for only when it does.
    """

    def fill(text: str) -> str:
        for name, ask in fillings.items():
            if f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", ask())
        return text

    expanded: Config = _mapped(config, fill)
    return expanded


def redacted(config: Struct) -> dict[str, Any]:
    """Keys and values as plain objects, durations as text, secrets replaced."""
    found: dict[str, Any] = {}
    for key in keys_of(type(config)):
        value = getattr(config, key.attribute)
        is_kept = value is None or not key.marks.get("is_secret")
        found[key.name] = _plain(value) if is_kept else _SECRET
    return found


def config_hash(config: Config) -> str:
    """Twelve hexadecimal digits that are equal where everything but the secrets is."""
    return hashlib.sha256(json.encode(redacted(config), order="deterministic")).hexdigest()[:_HASH_DIGITS]


def _plain(value: Any) -> Any:  # noqa: ANN401 any value of the schema
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, Struct):
        return redacted(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return to_builtins(value)


def _mapped(value: Any, fill: Callable[[str], str]) -> Any:  # noqa: ANN401 any value of the schema
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, Struct):
        changed = {name: _mapped(getattr(value, name), fill) for name in value.__struct_fields__}
        return structs.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(_mapped(item, fill) for item in value)
    if isinstance(value, dict):
        return {fill(name): _mapped(item, fill) for name, item in value.items()}
    return value
