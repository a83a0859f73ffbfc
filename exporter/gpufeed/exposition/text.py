# SPDX-License-Identifier: Apache-2.0
"""Text that is safe to write: whatever a driver, a mount or a plug-in calls itself, the exposition stays valid.

Source: the text format 0.0.4 and OpenMetrics 1.0, sections on escaping and numbers.
"""

import re
from typing import Final
from zlib import crc32

MAX_LABEL_CHARACTERS: Final = 256

# C0 and C1 controls, lone surrogates (not encodable), and the two separators that some readers take for line ends.
_UNCLEAN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_SPECIAL_NUMBERS: Final = {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf", "True": "1", "False": "0"}


def clean(value: str) -> str:
    """Without characters that break lines, terminals or UTF-8; each becomes U+FFFD."""
    return value if value.isascii() and value.isprintable() else _UNCLEAN.sub("\ufffd", value)


def label_value(value: str) -> str:
    """Clean, at most 256 characters, escaped for between double quotes. What is cut keeps a checksum of all of it."""
    cleaned = clean(value)
    if len(cleaned) > MAX_LABEL_CHARACTERS:
        tail = f"…{crc32(cleaned.encode()):08x}"
        cleaned = cleaned[: MAX_LABEL_CHARACTERS - len(tail)] + tail
    return cleaned.replace("\\", "\\\\").replace('"', '\\"')


def help_text(value: str) -> str:
    """Clean and escaped for a HELP line of the text format; OpenMetrics wants quotes escaped besides."""
    return clean(value).replace("\\", "\\\\")


def number(value: float) -> str:
    """As Go reads it back: the shortest digits that give the same value; NaN, +Inf, -Inf."""
    digits = repr(value)
    return _SPECIAL_NUMBERS.get(digits, digits)
