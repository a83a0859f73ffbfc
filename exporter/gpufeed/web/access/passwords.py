# SPDX-License-Identifier: Apache-2.0
"""Basic authentication against bcrypt hashes, which take long on purpose: on a thread of their own, one at a time."""

import base64
import binascii
import hashlib
import hmac
import os
import random
from collections.abc import Mapping
from typing import Final

import bcrypt

from gpufeed.wire.server_lane import ServerLane

_CHECK_WITHIN_S: Final = 10.0
_KEPT: Final = 100
_DROPPED: Final = 10
_MAX_PASSWORD_BYTES: Final = 72  # bcrypt takes no more, and must not be given a part
_NOBODY: Final = b"$2b$10$2JpWnFKeop8X3z85ndiU6eeboj1chlRdNb385gCPP7iHJKZucYrn."
"""Compared against where there is no such user, so that the time taken does not tell who exists."""


class Passwords:
    """Remembers results, wrong ones too, under a key that does not give the password away."""

    def __init__(self) -> None:
        self._lane = ServerLane("passwords")
        self._secret = os.urandom(32)
        self._known: dict[bytes, bool] = {}

    async def are_right(self, header: str | None, users: Mapping[str, str]) -> bool:
        """Whether an Authorization header names a user with their password.

        Raises TimeoutError or LaneStuck when too many ask at once.
        """
        given = _credentials(header)
        if given is None:
            return False
        user, password = given
        stored = users.get(user)
        hashed = stored.encode("ascii") if stored is not None else _NOBODY
        digest = hmac.new(self._secret, b"\0".join((user.encode(), hashed, password)), hashlib.sha256).digest()
        known = self._known.get(digest)
        if known is None:
            matches = await self._lane.run(_matches, password, hashed, timeout_s=_CHECK_WITHIN_S)
            known = matches and stored is not None
            self._remember(digest, is_right=known)
        return known

    def _remember(self, digest: bytes, *, is_right: bool) -> None:
        if len(self._known) >= _KEPT:
            for one in random.sample(list(self._known), _DROPPED):
                del self._known[one]
        self._known[digest] = is_right


def _matches(password: bytes, hashed: bytes) -> bool:
    if len(password) > _MAX_PASSWORD_BYTES:
        return False
    try:
        return bcrypt.checkpw(password, hashed)
    except ValueError:  # a NUL within the password
        return False


def _credentials(header: str | None) -> tuple[str, bytes] | None:
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (user.decode("utf-8"), password) if colon else None
    except (binascii.Error, ValueError):
        return None
