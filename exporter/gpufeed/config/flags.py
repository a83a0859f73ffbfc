# SPDX-License-Identifier: Apache-2.0
"""Flags in node_exporter's spelling. Each sets a key of the configuration, and wins over the file."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from msgspec import Struct, inspect, structs

from gpufeed.config.decode import Decoder
from gpufeed.config.document import Problem
from gpufeed.config.keys import Key, every_key, keys_of
from gpufeed.config.schema import Config

_DESTINATION: Final = "config_flags"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as given: the key it sets, its spelling, and the texts in order."""

    key: Key
    spelling: str
    texts: tuple[str, ...]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--config.file` and a flag for every key that has one."""
    parser.add_argument("--config.file", dest="config_file", metavar="FILE", help="Configuration file.")
    for key in every_key():
        name = _flag_of(key)
        if name is None:
            continue
        is_switch = isinstance(key.kind, inspect.BoolType)
        spellings = [f"--{name}", f"--no-{name}"] if is_switch else [f"--{name}"]
        parser.add_argument(
            *spellings,
            action=_Keep,
            nargs=0 if is_switch else None,
            dest=_DESTINATION,
            default=(),
            const=key,
            metavar=None if is_switch else key.name.upper(),
            help=_help(key),
        )


def given(arguments: argparse.Namespace) -> tuple[Flag, ...]:
    """The flags of a command line, each key once."""
    found: dict[tuple[str, ...], Flag] = {}
    for flag in getattr(arguments, _DESTINATION, ()):
        earlier = found.get(flag.key.path)
        texts = (*earlier.texts, *flag.texts) if earlier is not None and _repeats(flag.key) else flag.texts
        found[flag.key.path] = Flag(flag.key, flag.spelling, texts)
    return tuple(found.values())


def apply(config: Config, flags: Sequence[Flag]) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration with the flags' keys replaced, and what is wrong with the flags."""
    problems: list[Problem] = []
    for flag in flags:
        decoder = Decoder(f"flag {flag.spelling}")
        value = decoder.value(_node(flag), flag.key.kind, flag.key.path, flag.key.marks)
        problems.extend(decoder.problems)
        if not decoder.problems:
            config = _replaced(config, flag.key.path, value)
    return config, tuple(problems)


class _Keep(argparse.Action):
    """Collects flags in the order given; the texts are judged later, all together."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 argparse calls with these
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401
        option_string: str | None = None,
    ) -> None:
        spelling = option_string or ""
        text = values if isinstance(values, str) else ("false" if spelling.startswith("--no-") else "true")
        flag = Flag(self.const, spelling, (text,))
        setattr(namespace, _DESTINATION, (*getattr(namespace, _DESTINATION, ()), flag))


def _flag_of(key: Key) -> str | None:
    if len(key.path) == 3 and key.path[0] == "collectors" and key.name == "enabled":  # noqa: PLR2004 its depth
        return f"collector.{key.path[1]}"
    flag = key.marks.get("flag")
    return flag if isinstance(flag, str) else None


def _help(key: Key) -> str:
    text = f"{key.help} Key {key.dotted}."
    return text.replace("%", "%%")


def _repeats(key: Key) -> bool:
    return isinstance(key.kind, inspect.VarTupleType)


def _node(flag: Flag) -> yaml.Node:
    scalars = [yaml.ScalarNode("", text) for text in flag.texts]
    return yaml.SequenceNode("", scalars) if _repeats(flag.key) else scalars[-1]


def _replaced(section: Any, path: tuple[str, ...], value: Any) -> Any:  # noqa: ANN401 a struct of the schema, changed
    kind: type[Struct] = type(section)
    attribute = next(key.attribute for key in keys_of(kind) if key.name == path[0])
    inner = value if len(path) == 1 else _replaced(getattr(section, attribute), path[1:], value)
    return structs.replace(section, **{attribute: inner})
