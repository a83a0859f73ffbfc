# SPDX-License-Identifier: Apache-2.0
"""/etc/passwd: names of the users of this node. Source: passwd(5). Directories elsewhere may hang: not asked."""

from gpufeed.parse.text import clean_text

_FIELDS = 7


def parse_users(data: bytes) -> dict[int, str]:
    """Names by number; of several names for one number the first. Lines that are none are passed over."""
    users: dict[int, str] = {}
    for line in data.split(b"\n"):
        fields = line.split(b":")
        if len(fields) == _FIELDS and fields[0] and fields[2].isdigit() and len(fields[2]) <= len("4294967295"):
            users.setdefault(int(fields[2]), clean_text(fields[0]))
    return users
