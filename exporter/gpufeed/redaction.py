# SPDX-License-Identifier: Apache-2.0
"""Names and numbers that tell whose a node is, replaced: the same one by the same other one, everywhere in a capture.

What replaces a name has its form, so that whatever parsed the one parses the other. Pure: text in, text out.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

_HEX_GROUPS: Final = rb"[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}(?:(?::[0-9a-fA-F]{4}){4})?"
_MAC: Final = rb"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?:(?::[0-9a-fA-F]{2}){14})?"
_EDGE_BEFORE: Final = rb"(?<![0-9a-zA-Z:.])"
_EDGE_AFTER: Final = rb"(?![0-9a-zA-Z:])"
_SHOWN_ADDRESSES: Final = frozenset({b"0.0.0.0", b"127.0.0.1", b"255.255.255.255"})  # no address of anybody

_FORMS: Final[tuple[tuple[str, "re.Pattern[bytes]"], ...]] = (
    (
        "uuid",  # also behind letters, as in pod3e41639c_…
        re.compile(
            rb"[0-9a-fA-F]{8}(?P<dash>[-_])[0-9a-fA-F]{4}(?P=dash)[0-9a-fA-F]{4}(?P=dash)[0-9a-fA-F]{4}(?P=dash)"
            rb"[0-9a-fA-F]{12}" + _EDGE_AFTER
        ),
    ),
    ("guid", re.compile(_EDGE_BEFORE + _HEX_GROUPS + _EDGE_AFTER)),
    ("mac", re.compile(_EDGE_BEFORE + _MAC + _EDGE_AFTER)),
    ("hex id", re.compile(_EDGE_BEFORE + rb"[0-9a-f]{32}(?:[0-9a-f]{32})?" + _EDGE_AFTER)),
    ("address", re.compile(_EDGE_BEFORE + rb"\d{1,3}(?:\.\d{1,3}){3}(?![0-9a-zA-Z]|\.\d)")),
    (
        "address",
        re.compile(_EDGE_BEFORE + rb"(?:[0-9a-fA-F]{1,4}:){1,7}:(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?"),
    ),
)
_USER: Final = re.compile(rb"(?<=/home/)[^/\s\0,]+|(?<=/users/)[^/\s\0,]+")
_SERVER: Final = re.compile(rb"(?m)(?<=^device )[^\s/:\[\]]+(?=:/)|(?<=addr=)[^\s,:]*[g-zG-Z][^\s,]*(?=,|$)")
_ZEROS: Final = frozenset(b"0:-_.")


class Redaction:
    """Replaces by a key that is made for one capture and forgotten. `hosts`: names of this node."""

    def __init__(self, key: bytes, hosts: Iterable[str]) -> None:
        self._key = key
        names = sorted({name for host in hosts if len(name := host.strip()) > 1}, key=len, reverse=True)
        any_of = b"|".join(re.escape(name.encode()) for name in names)
        self._hosts = re.compile(rb"(?<![0-9A-Za-z])(?:" + any_of + rb")(?![0-9A-Za-z])") if names else None
        self.counts: Counter[str] = Counter()

    def data(self, data: bytes) -> bytes:
        """The same text with everything replaced."""
        for kind, form in _FORMS:
            data = form.sub(self._shaped(kind), data)
        data = _SERVER.sub(self._named("server"), data)
        data = _USER.sub(self._named("user"), data)
        return data if self._hosts is None else self._hosts.sub(self._named("host"), data)

    def text(self, text: str) -> str:
        """The same of a path or a name."""
        return self.data(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def name(self, kind: str, name: str) -> str:
        """All of a name that has no form of its own."""
        self.counts[kind] += 1
        return f"{kind}-{self._digest(name.encode('utf-8', 'surrogateescape')).hex()[:6]}"

    def _shaped(self, kind: str) -> Callable[["re.Match[bytes]"], bytes]:
        """Digits by other digits; everything else, and what is all zeros, stays."""

        def replace(match: "re.Match[bytes]") -> bytes:
            found = match.group()
            if set(found) <= _ZEROS or found in _SHOWN_ADDRESSES:
                return found
            self.counts[kind] += 1
            return self._address(found) if kind == "address" and b":" not in found else self._hex(found)

        return replace

    def _named(self, kind: str) -> Callable[["re.Match[bytes]"], bytes]:
        def replace(match: "re.Match[bytes]") -> bytes:
            self.counts[kind] += 1
            return f"{kind}-{self._digest(match.group()).hex()[:6]}".encode()

        return replace

    def _hex(self, found: bytes) -> bytes:
        digits = self._digest(found.lower().replace(b"_", b"-")).hex().encode() * 2
        taken = iter(digits)
        return bytes(next(taken) if chr(letter) in "0123456789abcdefABCDEF" else letter for letter in found)

    def _address(self, found: bytes) -> bytes:
        a, b, c, *_ = self._digest(found)
        return f"10.{a}.{b}.{c}".encode()

    def _digest(self, of: bytes) -> bytes:
        return blake2b(of, key=self._key, digest_size=32).digest()
