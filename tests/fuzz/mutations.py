# SPDX-License-Identifier: Apache-2.0
"""Ways in which a file of real shape may come otherwise: cut, torn, doubled, too large, another kernel's, garbage."""

import random
import re
from collections.abc import Callable, Sequence

MAX_BYTES = 20_000
WORDS = (
    b"0", b"-1", b"1", b"255", b"65535", b"4294967295", b"4294967296", b"9223372036854775807",
    b"9223372036854775808", b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"9" * 40,
    b"9" * 5000, b"1e308", b"1e999", b"nan", b"inf", b"0x10", b"0x", b"N/A (no PMA)", b"N/A", b"", b"\xff\xfe",
    b"\x00", b"\xe2\x80\xa8", b"\\040", b"\\377", b"some", b"full", b"total=", b"nfs4", b"device", b"(unknown)",
    b"1_000", b"\xd9\xa3", b"+5", b"5.5", b"../../..", b"/", b":", b"::", b"=", b"{}", b"[]", b'"',
)  # fmt: skip
"""What a word becomes: ends of integers, spellings of nothing, other scripts' digits, separators."""

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def mutate(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """`data` bent one to four times. `others`: contents of files to take pieces from."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        data = chance.choice(MUTATIONS)(data, chance, others)
    return data[:MAX_BYTES]


def _cut(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    return data[: chance.randint(0, len(data))]


def _flip(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]


def _word(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    found = list(re.finditer(rb"[^\s:=,]+", data))
    if not found:
        return chance.choice(WORDS)
    word = chance.choice(found)
    return data[: word.start()] + chance.choice(WORDS) + data[word.end() :]


def _insert(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + chance.choice((chance.choice(WORDS), chance.randbytes(chance.randint(1, 12)))) + data[at:]


def _lines(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        case 2:
            chance.shuffle(lines)
        case _:
            lines[at] = lines[at] * chance.choice((2, 50))
    return b"\n".join(lines)


def _blanks(data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    return data.replace(chance.choice((b" ", b"\n", b"\t", b":")), chance.choice((b"", b"  ", b"\t", b"\r\n", b"\0")))


def _splice(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others) if others else b""
    begin = chance.randint(0, len(other))
    at = chance.randint(0, len(data))
    return data[:at] + other[begin : begin + chance.randint(0, 400)] + data[at:]


def _garbage(_data: bytes, chance: random.Random, _others: Sequence[bytes]) -> bytes:
    return chance.randbytes(chance.choice((0, 1, 8, 300, 5000)))


MUTATIONS: tuple[Mutation, ...] = (
    _cut,
    _flip,
    _word,
    _word,
    _word,
    _insert,
    _lines,
    _lines,
    _blanks,
    _splice,
    _garbage,
)
