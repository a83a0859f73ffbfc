# SPDX-License-Identifier: Apache-2.0
"""`gpufeed capture`: the raw files that this node's readings come from, redacted, in one archive."""

import argparse
import asyncio
import io
import os
import secrets
import socket
import stat
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gpufeed
from gpufeed import logs
from gpufeed.clock import SystemClock
from gpufeed.config.flags import given
from gpufeed.config.fold import settings
from gpufeed.config.probe import probe_config
from gpufeed.daemon.collecting import Collected, collect
from gpufeed.daemon.configuration import read
from gpufeed.daemon.loop import new_event_loop
from gpufeed.daemon.places import Places
from gpufeed.errors import ConfigError
from gpufeed.redaction import Redaction

EXIT_OK: Final = 0
EXIT_NOTHING: Final = 3
_README: Final = """A capture of a node's raw files by gpufeed {version}.

procfs, sysfs and rootfs hold the files that were read, links as links. A folder .read-fails: reading that file fails.
Look at it as the daemon would, from where it is unpacked:
  gpufeed once --path.procfs=$PWD/procfs --path.sysfs=$PWD/sysfs --path.rootfs=$PWD/rootfs
Replaced, the same by the same: {replaced}. Read it before you send it.
"""


def run(arguments: argparse.Namespace) -> int:
    """0: written; 3: nothing could be read. Raises ConfigError."""
    config = read(arguments.config_file, given(arguments))
    logs.configure("error", config.log.format)
    out = Path(arguments.out)
    places = Places.settle(config, os.environ)
    sys.stderr.write("gpufeed capture: reading, up to 10 s …\n")
    try:
        with tempfile.TemporaryDirectory(prefix="gpufeed-capture-") as folder:
            told = probe_config(config, str(places.runtime), None, capture_dir=folder)
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                collected = runner.run(collect(told, settings(config), SystemClock()))
            redaction = Redaction(secrets.token_bytes(32), _own_names())
            count = _pack(Path(folder), out, redaction)
    finally:
        places.leave()
    for lane, call in collected.silent:
        sys.stderr.write(f"gpufeed capture: {lane} did not answer within 10 s{f', in {call}' if call else ''}\n")
    return _said(collected, out, count, redaction)


def _said(collected: Collected, out: Path, count: int, redaction: Redaction) -> int:
    if collected.why_nothing or count == 0:
        sys.stderr.write(f"gpufeed capture: nothing was read: {collected.why_nothing or 'no file is there'}\n")
        return EXIT_NOTHING
    print(f"{out}: {count} files, {out.stat().st_size} bytes; replaced: {_replaced(redaction)}")
    print("Read it before you send it.")
    return EXIT_OK


def _own_names() -> set[str]:
    name = socket.gethostname()
    return {name, name.partition(".")[0]} - {"localhost", ""}


def _replaced(redaction: Redaction) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(redaction.counts.items())) or "nothing"


def _pack(folder: Path, out: Path, redaction: Redaction) -> int:
    """Write the archive; how many files are in it. Raises ConfigError where it cannot be written."""
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            count = sum(1 for entry in _entries(folder, redaction) if _add(archive, *entry))
            text = _README.format(version=gpufeed.__version__, replaced=_replaced(redaction))
            _add(archive, tarfile.TarInfo("README.txt"), text.encode())
    except OSError as error:
        raise ConfigError((f"{out}: {error.strerror or error}",)) from None
    return count


def _entries(folder: Path, redaction: Redaction) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for where, names, files in os.walk(folder):
        for name in sorted((*names, *files)):
            path = Path(where) / name
            entry = tarfile.TarInfo(redaction.text(str(path.relative_to(folder))))
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                entry.type, entry.linkname = tarfile.SYMTYPE, redaction.text(str(path.readlink()))
                yield entry, b""
            elif stat.S_ISDIR(mode):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                yield entry, b""
            else:
                yield entry, redaction.data(path.read_bytes())


def _add(archive: tarfile.TarFile, entry: tarfile.TarInfo, data: bytes) -> bool:
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
    return entry.isfile()
