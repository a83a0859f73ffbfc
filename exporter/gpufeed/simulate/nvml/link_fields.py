# SPDX-License-Identifier: Apache-2.0
"""Fields of NVLink and C2C. Each generation counts errors under ids of its own.

Until Ampere there is an id for each link and a total; on Hopper the totals still answer, always with zero; Blackwell
knows only the ids that NVLink 5 brought.
"""

from collections.abc import Callable
from typing import Final

from gpufeed.simulate.nvml.field import (
    AMPERE,
    BLACKWELL,
    HOPPER,
    U64,
    UINT,
    Field,
    of_link,
    require,
    require_link,
    where,
)
from gpufeed.simulate.nvml.library import INVALID_ARGUMENT, Gpu, Status

_ALL_LINKS: Final = 0xFFFF_FFFF
_KIB: Final = 1024
_C2C_SINCE: Final = (535, 0)
_C2C_ERRORS_SINCE: Final = (575, 0)
_NVLINK5_SINCE: Final = (560, 0)


def errors_of(gpu: Gpu, link: int, kind: str) -> int:
    """What a link has counted of a kind: all errors are those of one link."""
    return gpu.moment.whole(f"nvlink_{kind}") if link == gpu.moment.whole("nvlink_bad_link") else 0


def _kib(name: str) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        require(gpu.board.model.nvlink_links > 0)
        total = gpu.moment.value(name) / _KIB
        if scope == _ALL_LINKS:
            return int(total)
        require_link(gpu, scope)
        return int(total / gpu.board.model.nvlink_links)

    return Field(kind=U64, value=value)


def _lane(link: int, kind: str) -> Field:
    """An id that belongs to one link."""

    def value(gpu: Gpu, _scope: int) -> int:
        require_link(gpu, link)
        return errors_of(gpu, link, kind)

    return where(lambda model: model.architecture <= AMPERE, Field(kind=U64, value=value))


def _total(kind: str) -> Field:
    def value(gpu: Gpu, _scope: int) -> int:
        require(gpu.board.model.nvlink_links > 0)
        return gpu.moment.whole(f"nvlink_{kind}") if gpu.board.model.architecture <= AMPERE else 0

    return Field(kind=U64, value=value)


def _of_hopper(kind: str) -> Field:
    return where(lambda model: model.architecture == HOPPER, of_link(lambda gpu, link: errors_of(gpu, link, kind), U64))


def _of_nvlink5(of: Callable[[Gpu, int], int], kind: int = U64) -> Field:
    return where(lambda model: model.architecture >= BLACKWELL, of_link(of, kind, _NVLINK5_SINCE))


def _counted(kind: str) -> Field:
    return _of_nvlink5(lambda gpu, link: errors_of(gpu, link, kind))


def _bytes(name: str) -> Field:
    return _of_nvlink5(lambda gpu, _link: int(gpu.moment.value(name) / gpu.board.model.nvlink_links))


def _of_c2c(of: Callable[[Gpu, int], int], kind: int = UINT, since: tuple[int, int] = _C2C_SINCE) -> Field:
    def value(gpu: Gpu, scope: int) -> int:
        require(gpu.board.model.c2c_links > 0)
        if scope >= gpu.board.model.c2c_links:
            raise Status(INVALID_ARGUMENT)
        return of(gpu, scope)

    return Field(kind=kind, value=value, since=since)


def _c2c_errors(kind: str) -> Field:
    """All on the first link."""
    return _of_c2c(lambda gpu, link: 0 if link else gpu.moment.whole(f"c2c_{kind}"), U64, _C2C_ERRORS_SINCE)


_LANES: Final = {"crc_flit": (32, 96), "crc_data": (39, 102), "replay": (46, 108), "recovery": (53, 114)}
"""Kind → the first id of links 0 to 5, with the total behind them, and that of links 6 to 11."""

LANE_FIELDS: Final = {
    **{first + link: _lane(link, kind) for kind, (first, _) in _LANES.items() for link in range(6)},
    **{first + link: _lane(6 + link, kind) for kind, (_, first) in _LANES.items() for link in range(6)},
    **{first + 6: _total(kind) for kind, (first, _) in _LANES.items()},
}

LINK_FIELDS: Final = {
    90: where(
        lambda model: model.nvlink_links > 0,
        Field(kind=UINT, value=lambda gpu, _scope: gpu.board.model.nvlink_link_mb_per_s),
    ),
    91: Field(kind=UINT, value=lambda gpu, _scope: gpu.board.model.nvlink_links),
    138: _kib("nvlink_transmit_bytes"),
    139: _kib("nvlink_receive_bytes"),
    140: _kib("nvlink_transmit_bytes"),
    141: _kib("nvlink_receive_bytes"),
    161: _of_hopper("replay"),
    162: _of_hopper("recovery"),
    163: _of_hopper("crc"),
    164: of_link(lambda gpu, _link: gpu.board.model.nvlink_link_mb_per_s),
    165: of_link(lambda gpu, link: int(link < gpu.moment.whole("links_up"))),
    166: of_link(lambda gpu, _link: gpu.board.model.nvlink_version),
    202: _bytes("nvlink_transmit_bytes"),
    204: _bytes("nvlink_receive_bytes"),
    **{at: _of_nvlink5(lambda _gpu, _link: 0) for at in range(206, 213)},
    213: _counted("recovery"),
    214: _counted("recovery_failed"),
    215: _of_nvlink5(lambda gpu, link: errors_of(gpu, link, "recovery") + errors_of(gpu, link, "recovery_failed")),
    219: _counted("effective"),
    220: _of_nvlink5(lambda gpu, _link: gpu.moment.whole("nvlink_effective_ber"), UINT),
    221: _counted("symbol"),
    222: _of_nvlink5(lambda gpu, _link: gpu.moment.whole("nvlink_symbol_ber"), UINT),
    170: Field(kind=UINT, value=lambda gpu, _scope: gpu.board.model.c2c_links, since=_C2C_SINCE),
    171: _of_c2c(lambda gpu, link: int(link < gpu.moment.whole("c2c_links_up"))),
    172: _of_c2c(lambda gpu, _link: gpu.board.model.c2c_link_mb_per_s),
    231: _c2c_errors("crc"),
    232: _c2c_errors("replay"),
    233: _c2c_errors("replay_b2b"),
}
