# SPDX-License-Identifier: Apache-2.0
"""The log: one line a record on standard error, as logfmt or JSON, and only what has changed.

What comes from outside (device names, driver texts, requests) may hold anything: every value is cut and its control
characters are escaped, so that a record is one line, always.
"""

import json
import logging
import sys
from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from gpufeed.clock import Clock
from gpufeed.units import seconds

MAX_VALUE_CHARACTERS: Final = 1_000
MAX_TRACE_CHARACTERS: Final = 4_000
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_WORDS: Final = {logging.WARNING: "warn", logging.CRITICAL: "error"}


_ESCAPED = "".encode("unicode_escape")
"""Loads the codec now: it is a file, and there may be no descriptor left when the log has to say so."""


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send every record of `level` (debug, info, warn, error) and above to `stream` as `form` (logfmt, json)."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(Formatter(form))
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[level])
    logging.captureWarnings(capture=True)


def fields(**values: object) -> Mapping[str, Any]:
    """For `extra=` of a logging call: values that stand beside the text, `log.info("…", extra=fields(lane=lane))`."""
    return {"fields": values}


class Formatter(logging.Formatter):
    """Records as lines."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """One line, without its end."""
        parts = self._parts(record)
        if self._is_json:
            return json.dumps(parts, ensure_ascii=True)
        return " ".join(f"{name}={_quoted(value)}" for name, value in parts.items())

    def _parts(self, record: logging.LogRecord) -> dict[str, str]:
        at = datetime.fromtimestamp(record.created, UTC)
        parts = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": _WORDS.get(record.levelno, record.levelname.lower()),
            "logger": record.name,
            "msg": clean(record.getMessage()),
        }
        given: Mapping[str, object] = getattr(record, "fields", {})
        parts.update({name: clean(str(value)) for name, value in given.items() if name not in parts})
        if record.exc_info:
            parts["trace"] = clean(self.formatException(record.exc_info), MAX_TRACE_CHARACTERS)
        return parts


class Transitions:
    """Says a failure once when it starts and once when it ends, however often it is reported in between."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._since_ns: dict[Hashable, int] = {}

    def failed(self, key: Hashable, text: str, **values: object) -> None:
        """`key` fails: logged when it did not fail before."""
        if key not in self._since_ns:
            self._since_ns[key] = self._clock.monotonic_ns()
            self._logger.warning("%s", text, extra=fields(**values))

    def recovered(self, key: Hashable, text: str, **values: object) -> None:
        """`key` works: logged, with the length of the outage, when it failed before."""
        since_ns = self._since_ns.pop(key, None)
        if since_ns is not None:
            outage_s = seconds(self._clock.monotonic_ns() - since_ns)
            self._logger.info("%s", text, extra=fields(**values, outage=f"{outage_s:.1f}s"))


def clean(text: str, limit: int = MAX_VALUE_CHARACTERS) -> str:
    """A text on one line: control characters escaped, cut after `limit` characters."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    if cut.isprintable():
        return cut
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "backslashreplace").decode("ascii") for one in cut
    )


def _quoted(value: str) -> str:
    if value and value.isprintable() and not any(one in ' ="\\' for one in value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
