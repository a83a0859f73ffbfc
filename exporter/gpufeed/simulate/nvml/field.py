# SPDX-License-Identifier: Apache-2.0
"""What a field value is, and the usual ways in which one follows from the truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.hardware import GpuModel
from gpufeed.simulate.nvml.library import INVALID_ARGUMENT, NOT_SUPPORTED, Gpu, Status
from gpufeed.simulate.nvml.personality import Version
from gpufeed.simulate.nvml.readings import NS_PER_S

UINT: Final = 1
U64: Final = 3
INT: Final = 5
MEMBERS: Final = {UINT: "uiVal", U64: "ullVal", INT: "siVal"}
"""nvmlValueType_t, and the member of the union it is written to."""

VOLTA: Final = 5
AMPERE: Final = 7
HOPPER: Final = 9
BLACKWELL: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One id: the type of its value, how it follows from the truth, which drivers know it. `value` raises Status."""

    kind: int  # nvmlValueType_t
    value: Callable[[Gpu, int], int]  # GPU and scope
    since: Version = (0, 0)


Fields = Mapping[int, Field]


def whole(name: str, kind: int = U64, since: Version = (0, 0)) -> Field:
    """A whole number of the truth."""
    return Field(kind=kind, value=lambda gpu, _scope: gpu.moment.whole(name), since=since)


def fixed(value: int, kind: int = UINT) -> Field:
    """The same always."""
    return Field(kind=kind, value=lambda _gpu, _scope: value)


def nanoseconds(*names: str) -> Field:
    """How long clock-event reasons held, together."""
    return Field(
        kind=U64,
        value=lambda gpu, _scope: int(NS_PER_S * sum(gpu.moment.value(f"{name}_s") for name in names)),
    )


def where(has: Callable[[GpuModel], bool], field: Field) -> Field:
    """The field on boards of models that have it."""

    def value(gpu: Gpu, scope: int) -> int:
        require(has(gpu.board.model))
        return field.value(gpu, scope)

    return Field(kind=field.kind, value=value, since=field.since)


def of_link(of: Callable[[Gpu, int], int], kind: int = UINT, since: Version = (0, 0)) -> Field:
    """A field that wants the number of a link as its scope."""

    def value(gpu: Gpu, scope: int) -> int:
        require_link(gpu, scope)
        return of(gpu, scope)

    return Field(kind=kind, value=value, since=since)


def require(has: bool) -> None:  # noqa: FBT001  # the name says it
    """Raise Status where the board has not what is asked for."""
    if not has:
        raise Status(NOT_SUPPORTED)


def require_link(gpu: Gpu, link: int) -> None:
    """Raise Status where the board has no links, or not this one."""
    require(gpu.board.model.nvlink_links > 0)
    if link >= gpu.board.model.nvlink_links:
        raise Status(INVALID_ARGUMENT)
