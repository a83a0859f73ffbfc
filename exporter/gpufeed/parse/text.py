# SPDX-License-Identifier: Apache-2.0
"""Text of the kernel, made fit for a label: the kernel promises neither UTF-8 nor the absence of control characters."""

import re
from typing import Final

TEXT_LIMIT: Final = 256
PATH_LIMIT: Final = 512

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_OCTAL: Final = re.compile(rb"\\([0-3][0-7]{2})")


def clean_text(data: bytes, limit: int = TEXT_LIMIT) -> str:
    r"""Valid UTF-8 of at most `limit` characters without control characters or white space around it.

    What is not UTF-8, or is a control character, is spelled `\xNN`, so that two names that differ stay different.
    """
    text = data.decode("utf-8", "backslashreplace").strip()
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)[:limit]


def unescape_octal(data: bytes) -> bytes:
    r"""Undo the escapes that the mount tables use for blanks, tabs, line ends and backslashes, such as `\040`."""
    return _OCTAL.sub(lambda found: bytes((int(found.group(1), 8),)), data)
