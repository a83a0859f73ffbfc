# SPDX-License-Identifier: Apache-2.0
"""What a key is besides its type.

A sentence of help, the flag that sets it too, whether a change needs a restart, and, where this version takes a key
but does nothing with it yet, that it says so.
"""

from typing import Any

from msgspec import Meta

from gpufeed.config.duration import Duration


def key(description: str, **marks: Any) -> Meta:  # noqa: ANN401 marks are what the readers of Meta.extra look for
    """The marks of a key: `flag`, `needs_restart`, `is_secret`, `not_yet`, `check`; `ge`, `gt`, `le` bound a number."""
    return Meta(description=description, extra=marks)


def lasting(text: str) -> Duration:
    """A duration, for defaults."""
    return Duration.parse(text)
