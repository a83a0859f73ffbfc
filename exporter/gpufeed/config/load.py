# SPDX-License-Identifier: Apache-2.0
"""A configuration from a file and flags: the whole of it, or a ConfigError that names everything wrong with it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import yaml

from gpufeed.config.checks import contradictions
from gpufeed.config.decode import Decoder
from gpufeed.config.document import MAX_BYTES, Problem, compose, line_of
from gpufeed.config.flags import Flag, apply
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError
from gpufeed.regular_file import read_regular

Check = Callable[[Config], Iterable[tuple[str, str]]]
"""What else is wrong with a configuration that is right in itself: dotted keys, and texts."""


def _nothing(_: Config) -> Iterable[tuple[str, str]]:
    return ()


def load(path: Path | str | None, flags: Sequence[Flag] = (), also: Check = _nothing) -> Config:
    """The configuration in a file (None: the defaults), with flags on top. Raises ConfigError."""
    if path is None:
        return parse(b"", "defaults", flags, also)
    file = Path(path)
    try:
        data = read_regular(file, MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError((f"{file}: cannot be read: {reason}",)) from None
    return parse(data, str(file), flags, also)


def parse(data: bytes, file: str, flags: Sequence[Flag] = (), also: Check = _nothing) -> Config:
    """The configuration that `data` describes. `file` is its name in problems. Raises ConfigError."""
    node, problems = compose(data, file)
    config = Config()
    found = list(problems)
    if node is not None:
        decoder = Decoder(file)
        config = decoder.section(node, Config)
        found += decoder.problems
    config, wrong_flags = apply(config, flags)
    found += wrong_flags
    if not found:
        found += [
            Problem(place=_place(node, key, file, flags), key=key, text=text)
            for key, text in (*contradictions(config), *also(config))
        ]
    if found:
        raise ConfigError(tuple(str(problem) for problem in found))
    return config


def _place(root: yaml.Node | None, dotted: str, file: str, flags: Sequence[Flag]) -> str:
    for flag in flags:
        if flag.key.dotted == dotted:
            return f"flag {flag.spelling}"
    node, rest = root, dotted
    while node is not None and rest:
        found = _child(node, rest)
        if found is None:
            break
        node, rest = found
    return line_of(node, file) if node is not None else file


def _child(node: yaml.Node, rest: str) -> tuple[yaml.Node, str] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if rest == name.value or rest.startswith(f"{name.value}."):
                return value, rest[len(name.value) + 1 :]
    if isinstance(node, yaml.SequenceNode):
        head, _, tail = rest.partition(".")
        if head.isdigit() and int(head) < len(node.value):
            return node.value[int(head)], tail
    return None
