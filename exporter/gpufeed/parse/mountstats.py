# SPDX-License-Identifier: Apache-2.0
"""NFS mounts of /proc/PID/mountstats. Source: fs/nfs/super.c nfs_show_stats, net/sunrpc/stats.c, net/sunrpc/xprtsock.c.

Each mount is a block that begins with a `device` line; blocks of other file systems are one line and passed over.
Two versions live in a block: `statvers` is the block's, `RPC iostats version` that of the operation lines. Neither is
needed: what is there is read, and what newer kernels append is left alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from gpufeed.errors import ParseError
from gpufeed.parse.number import counts, parse_count
from gpufeed.parse.table import Parsed
from gpufeed.parse.text import PATH_LIMIT, clean_text, unescape_octal
from gpufeed.units import MS_PER_S

FSTYPES: Final = frozenset({b"nfs", b"nfs4"})
"""The client's types, exactly: `nfsd` is the server's control file system."""

_HEADER: Final = re.compile(
    rb"device (?P<source>[^ ]+) mounted on (?P<mountpoint>[^ ]+) with fstype (?P<fstype>[^ ]+)", re.DOTALL
)
_OPERATIONS: Final = b"per-op statistics"
_FIELDS_OF_OPERATION: Final = 8
_PLACE_OF_SENDS: Final = MappingProxyType({b"tcp": 5, b"rdma": 5, b"local": 4, b"udp": 2})
"""Before the sends stand port and binds, and where there are connections: connects, connect time, idle time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsBytes:
    """The `bytes:` line. Server bytes are what crossed the network; the others include the page cache."""

    normal_read: int
    normal_write: int
    direct_read: int
    direct_write: int
    server_read: int
    server_write: int


class NfsOperation(Struct, frozen=True, kw_only=True):
    """One operation since the mount: calls, and where their time went, summed over calls.

    A Struct because a node with twenty mounts makes hundreds of these at every read.
    """

    calls: int
    transmissions: int  # more than calls: retransmitted
    timeouts: int  # major ones: all retries used up
    sent_bytes: int
    received_bytes: int
    queue_s: float  # waiting in the client for a slot and a socket
    round_trip_s: float  # network and server
    execute_s: float  # all of it
    errors: int | None = None  # iostats 1.1, since kernel 5.3


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsTransport:
    """One connection. Mounts of one server share them: never added up over mounts."""

    protocol: str
    sends: int
    receives: int
    bad_ids: int
    request_queue_sum: int  # summed at every send: divided by sends it is the mean length
    backlog_sum: int  # likewise, for the slot table


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsMount:
    """One NFS mount. None where a block lacks the line, as those of a lazily unmounted file system do."""

    source: str  # server:/export
    mountpoint: str
    fstype: str
    options: Mapping[str, str] = field(default_factory=dict)
    age_s: int | None = None
    transferred: NfsBytes | None = None
    operations: Mapping[str, NfsOperation] | None = None  # those that were called at least once
    transports: tuple[NfsTransport, ...] = ()


def parse_mountstats(data: bytes) -> Parsed[NfsMount]:
    """One row per NFS mount, in the order of the mount table; a block that makes no sense is a reject, alone."""
    rows: list[NfsMount] = []
    rejects: list[ParseError] = []
    for header, body in _blocks(data):
        try:
            mount = _parse_block(header, body)
        except ParseError as error:
            rejects.append(error)
        else:
            if mount is not None:
                rows.append(mount)
    return Parsed(rows=tuple(rows), rejects=tuple(rejects))


def _blocks(data: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    """Every header with the lines below it. A file system without a source begins with `no device`."""
    header = b""
    body: list[bytes] = []
    for raw in data.split(b"\n"):
        line = raw.strip(b" \t")
        if line.startswith((b"device ", b"no device ")):
            if header:
                yield header, body
            header, body = line, []
        else:
            body.append(line)
    if header:
        yield header, body


def _parse_block(header: bytes, body: list[bytes]) -> NfsMount | None:
    """The block, or None where its file system is another one."""
    if header.startswith(b"no "):
        return None
    found = _HEADER.match(header)
    if found is None:
        raise ParseError("'device X mounted on Y with fstype Z'", header, "mountstats")
    if found["fstype"] not in FSTYPES:
        return None
    mountpoint = _path(found["mountpoint"])
    where = f"mountstats {mountpoint}"
    end = body.index(_OPERATIONS) if _OPERATIONS in body else None
    lines: dict[bytes, list[bytes]] = {}
    for line in body[:end]:
        key, _, rest = line.partition(b":")
        lines.setdefault(key, []).append(rest.strip())
    return NfsMount(
        source=_path(found["source"]),
        mountpoint=mountpoint,
        fstype=found["fstype"].decode(),
        options=_options(lines.get(b"opts", [b""])[0]),
        age_s=parse_count(lines.get(b"age", [b""])[0].partition(b" ")[0], where),
        transferred=_bytes(lines[b"bytes"][0], where) if b"bytes" in lines else None,
        operations=None if end is None else _operations(body[end + 1 :], where),
        transports=tuple(filter(None, map(_transport, lines.get(b"xprt", [])))),
    )


def _path(data: bytes) -> str:
    return clean_text(unescape_octal(data), PATH_LIMIT)


@lru_cache(maxsize=1024)
def _options(data: bytes) -> Mapping[str, str]:
    """A mount has the same ones all its life."""
    pairs = (word.partition(b"=") for word in data.split(b",") if word)
    return MappingProxyType({clean_text(key): clean_text(unescape_octal(value)) for key, _, value in pairs})


def _bytes(data: bytes, where: str) -> NfsBytes:
    value = counts(data.split(), 6, where)
    return NfsBytes(
        normal_read=value[0],
        normal_write=value[1],
        direct_read=value[2],
        direct_write=value[3],
        server_read=value[4],
        server_write=value[5],
    )


def _operations(lines: list[bytes], where: str) -> dict[str, NfsOperation]:
    """Most of the sixty operations of a mount never happen; their lines are passed over before they cost anything."""
    operations: dict[str, NfsOperation] = {}
    for line in lines:
        name, _, rest = line.partition(b":")
        if not rest.strip(b" 0"):
            continue
        value = counts(rest.split(), _FIELDS_OF_OPERATION, where)
        operations[_operation_name(name)] = NfsOperation(
            calls=value[0],
            transmissions=value[1],
            timeouts=value[2],
            sent_bytes=value[3],
            received_bytes=value[4],
            queue_s=value[5] / MS_PER_S,
            round_trip_s=value[6] / MS_PER_S,
            execute_s=value[7] / MS_PER_S,
            errors=value[8] if len(value) > _FIELDS_OF_OPERATION else None,
        )
    return operations


@lru_cache(maxsize=256)
def _operation_name(data: bytes) -> str:
    """The same sixty names come again and again."""
    return clean_text(data)


def _transport(data: bytes) -> NfsTransport | None:
    """None for a protocol or a layout we do not know: a transport says nothing that the mount stands on."""
    protocol, *words = data.split() or [b""]
    sends = _PLACE_OF_SENDS.get(protocol)
    if sends is None:
        return None
    try:
        value = counts(words[sends : sends + 5], 5, "xprt")
    except ParseError:
        return None
    return NfsTransport(
        protocol=protocol.decode(),
        sends=value[0],
        receives=value[1],
        bad_ids=value[2],
        request_queue_sum=value[3],
        backlog_sum=value[4],
    )
