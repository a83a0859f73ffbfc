# SPDX-License-Identifier: Apache-2.0
"""One bucket of tokens for all requests together."""

from gpufeed.web.access.schema import RateLimit, go_duration_s


class Bucket:
    """Holds `burst` tokens at most; one comes back every interval."""

    def __init__(self, limit: RateLimit, now_s: float) -> None:
        self.limit = limit
        self._interval_s = go_duration_s(limit.interval)
        self._tokens = float(limit.burst)
        self._at_s = now_s

    def take(self, now_s: float) -> bool:
        """Whether one more request may pass at `now_s` (a monotonic clock)."""
        if self._interval_s <= 0:
            return True
        self._tokens = min(self._tokens + (now_s - self._at_s) / self._interval_s, float(self.limit.burst))
        self._at_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
