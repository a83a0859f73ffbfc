# SPDX-License-Identifier: Apache-2.0
"""The lane that keeps state over a restart: named blobs in the state directory, written whole or not at all."""

import contextlib
import os
import re
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from gpufeed.errors import Broken
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.sources.contract import Desk, Group, LanePlan, Outcome
from gpufeed.units import NS_PER_MS
from gpufeed.wire.messages import MAX_MESSAGE_BYTES, Blob, BlobSaved

MAX_BLOB_BYTES: Final = MAX_MESSAGE_BYTES // 2
SUFFIX: Final = ".blob"
LOOK_EVERY_NS: Final = 250 * NS_PER_MS

_MAGIC: Final = b"gpufeed1"
_CHECKSUM_BYTES: Final = 4
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


class StateSpec(Struct, frozen=True):
    """Where blobs lie; None: nowhere."""

    state_dir: str | None


class Mailbox:
    """Takes the server's orders from the main thread, hands them to the lane, sends the answers. A source, too."""

    name = "state"

    def __init__(self, send: Callable[[Blob | BlobSaved], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._orders: dict[str, Blob] = {}

    def put(self, order: Blob) -> None:
        """Save a blob, or with no data load it. Only the newest order for a name counts."""
        with self._lock:
            self._orders[order.name] = order

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """The state lane under a configuration."""
        group = Group(name=GroupName("state.orders"), collector="self", period_ns=LOOK_EVERY_NS)
        spec = StateSpec(state_dir=config.state_dir)
        return (LanePlan(lane=LaneId("state"), groups=(group,), open=self.open, spec=spec),)

    def open(self, spec: StateSpec, desk: Desk) -> "StateKeeper":
        """The lane's reader."""
        return StateKeeper(self, spec, desk)

    def take(self) -> tuple[Blob, ...]:
        """The orders that wait."""
        with self._lock:
            orders = tuple(self._orders.values())
            self._orders.clear()
        return orders

    def answer(self, message: Blob | BlobSaved) -> None:
        """Send what became of an order."""
        self._send(message)


class StateKeeper:
    """Carries out orders."""

    def __init__(self, mailbox: Mailbox, spec: StateSpec, desk: Desk) -> None:
        self._mailbox = mailbox
        self._folder = None if spec.state_dir is None else Path(spec.state_dir)
        self._desk = desk

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 - there is one group
        """Carry out the orders that wait. Raises Broken where a blob could be read but not understood."""
        for order in self._mailbox.take():
            self._desk.call = f"{order.name}{SUFFIX}"
            if order.data is None:
                self._load(order.name)
            else:
                self._save(order.name, order.data)
        return Outcome()

    def close(self) -> None:
        """The last orders: the server saves just before it ends."""
        self.read(GroupName(""))

    def _save(self, name: str, data: bytes) -> None:
        error = ""
        try:
            save_blob(self._folder, name, data)
        except (OSError, ValueError) as problem:
            error = str(problem)
        self._mailbox.answer(BlobSaved(name=name, error=error))

    def _load(self, name: str) -> None:
        data = None
        try:
            data = load_blob(self._folder, name)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as problem:
            raise Broken(f"{name}: {problem}") from problem
        finally:
            self._mailbox.answer(Blob(name=name, data=data))


def save_blob(folder: Path | None, name: str, data: bytes) -> None:
    """Write a blob so that after a crash there is the old one or the new one. Raises OSError, ValueError."""
    path = _path(folder, name)
    if len(data) > MAX_BLOB_BYTES:
        raise ValueError(f"{len(data)} bytes are over the cap of {MAX_BLOB_BYTES}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    try:
        with fresh.open("wb") as file:
            file.write(_MAGIC + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big") + data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def load_blob(folder: Path | None, name: str) -> bytes:
    """A blob. Raises FileNotFoundError, OSError; ValueError where it is not what was written."""
    path = _path(folder, name)
    if path.stat().st_size > MAX_BLOB_BYTES + len(_MAGIC) + _CHECKSUM_BYTES:
        raise ValueError(f"{path} is larger than any blob")
    text = path.read_bytes()
    checksum_end = len(_MAGIC) + _CHECKSUM_BYTES
    data = text[checksum_end:]
    if not text.startswith(_MAGIC) or text[len(_MAGIC) : checksum_end] != zlib.crc32(data).to_bytes(4, "big"):
        raise ValueError(f"{path} is damaged")
    return data


def _path(folder: Path | None, name: str) -> Path:
    if _NAME.match(name) is None:
        raise ValueError(f"{name!r} cannot be the name of a blob")
    if folder is None:
        raise FileNotFoundError("no state directory is configured")
    return folder / f"{name}{SUFFIX}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
