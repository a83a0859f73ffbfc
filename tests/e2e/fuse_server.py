# SPDX-License-Identifier: Apache-2.0
"""A file that hangs its reader for ever: a FUSE server that takes a READ and never answers it.

Needs root and /dev/fuse, no libraries. Started as `python fuse_server.py FILE`: mounts over FILE, prints `mounted`, and
serves until its standard input closes; its end aborts the connection and so frees every reader.
Message layout: Linux, include/uapi/linux/fuse.h, protocol 7.31.
"""

import ctypes
import errno
import os
import select
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, FORGET = 1, 3, 14, 15, 18, 25, 26, 36, 2
IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
INIT_REPLY = struct.pack("<IIIIHHIIHH", 7, 31, 0, 0, 12, 10, 4096, 1, 1, 0).ljust(64, b"\0")
"""struct fuse_init_out: version 7.31, no read-ahead, no flags, 12 requests in the background."""

DIRECT_IO = 1
"""FOPEN_DIRECT_IO: a READ is one request waited for in the kernel, not a page filled by read-ahead."""


def attributes() -> bytes:
    """struct fuse_attr_out of a regular file that says it holds 4096 bytes."""
    seconds_valid = struct.pack("<QII", 1, 0, 0)
    inode = struct.pack("<QQQQQQIIIIIIIIII", 1, 4096, 8, 0, 0, 0, 0, 0, 0, 0o100444, 1, 0, 0, 0, 4096, 0)
    return seconds_valid + inode


def answer(device: int, unique: int, body: bytes = b"", error: int = 0) -> None:
    os.write(device, OUT_HEADER.pack(OUT_HEADER.size + len(body), -error, unique) + body)


def serve_one(device: int) -> None:
    """Take one request; answer all but READ."""
    request = os.read(device, 1 << 17)
    _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
    if opcode == INIT:
        answer(device, unique, INIT_REPLY)
    elif opcode == GETATTR:
        answer(device, unique, attributes())
    elif opcode == OPEN:
        answer(device, unique, struct.pack("<QII", 1, DIRECT_IO, 0))
    elif opcode in (RELEASE, FLUSH):
        answer(device, unique)
    elif opcode not in (READ, INTERRUPT, FORGET):
        answer(device, unique, error=errno.ENOSYS)


def main() -> int:
    target = sys.argv[1].encode()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=100444,user_id=0,group_id=0,allow_other" % device
    if libc.mount(b"hang", target, b"fuse.hang", 0, options) != 0:
        sys.stdout.write(f"mount: {os.strerror(ctypes.get_errno())}\n")
        return 1
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    try:
        while True:
            ready, _, _ = select.select([device, 0], [], [])
            if 0 in ready and not os.read(0, 1):
                return 0
            if device in ready:
                serve_one(device)
    except OSError:
        return 0
    finally:
        libc.umount2(target, 2)  # MNT_DETACH
        os.close(device)


if __name__ == "__main__":
    sys.exit(main())
