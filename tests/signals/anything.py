# SPDX-License-Identifier: Apache-2.0
"""Any well-typed value of a message type, wild ones included: what could come over the wire."""

import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

WORDS = (
    "",
    "GPU-0",
    "GPU-1",
    "gpu0",
    "gpu1",
    "nvml.fast",
    "jobs.fast",
    "ok",
    "link_downed",
    "/job_1/a",
    "0000:18:00.0",
)
INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 40)
FLOATS = st.floats() | st.floats(0, 1)

SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    int: INTS,
    float: FLOATS,
    str: st.sampled_from(WORDS),
    bool: st.booleans(),
    type(None): st.none(),
}


@cache
def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type built of structs, unions, literals, tuples, dicts and scalars."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    if isinstance(hint, typing.NewType):
        return any_of(hint.__supertype__)
    origin, args = get_origin(hint), get_args(hint)
    builders: Mapping[Any, Callable[[], st.SearchStrategy[Any]]] = {
        Literal: lambda: st.sampled_from(args),
        Union: lambda: st.one_of([any_of(arg) for arg in args]),
        types.UnionType: lambda: st.one_of([any_of(arg) for arg in args]),
        tuple: lambda: _any_tuple(args),
        dict: lambda: st.dictionaries(any_of(args[0]), any_of(args[1]), max_size=3),
    }
    if origin in builders:
        return builders[origin]()
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{name: any_of(hints[name]) for name in hint.__struct_fields__})
    raise TypeError(f"no strategy for {hint!r}")


def _any_tuple(args: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if len(args) == 2 and args[1] is ...:
        return st.lists(any_of(args[0]), max_size=4).map(tuple)
    return st.tuples(*(any_of(arg) for arg in args))
