# SPDX-License-Identifier: Apache-2.0
"""`gpufeed explain`: where the GPUs' time went and why, from this machine's daemon or one at a URL."""

import argparse
import json
import os
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any, Final

from gpufeed.commands.orders import EXIT_BAD_USE, EXIT_REFUSED, EXIT_UNREACHABLE, failed, ordered, socket_of
from gpufeed.config.duration import Duration
from gpufeed.config.web import DEFAULT_PORT

NAME: Final = "explain"
_LOCAL: Final = f"http://127.0.0.1:{DEFAULT_PORT}"
_LONGEST_S: Final = 1800
_WITHIN_S: Final = 10
_OLD: Final = "its daemon is older than this command, or its page is switched off"
_MAX_BYTES: Final = 8 * 1024 * 1024


def run(arguments: argparse.Namespace) -> int:
    """0 when there is an answer, 1 when it is refused, 2 for bad use, 3 when no daemon answers. Raises ConfigError."""
    try:
        window_s = round(Duration.parse(arguments.window).seconds)
    except ValueError as error:
        return failed(NAME, f"--window: {error}", EXIT_BAD_USE)
    if not 1 <= window_s <= _LONGEST_S:
        return failed(NAME, "--window: from 1s to 30m; Prometheus knows what was before", EXIT_BAD_USE)
    if arguments.url is None and os.access(socket_of(arguments), os.W_OK):
        told, code = ordered(NAME, arguments, "explain", window_s=window_s)
    else:
        told, code = _fetched(arguments.url or _LOCAL, window_s)
    return code if told is None else _print(told, arguments)


def _fetched(url: str, window_s: int) -> tuple[Any, int]:
    address = f"{url.rstrip('/')}/api/v1/explain?window_seconds={window_s}"
    if not address.startswith(("http://", "https://")):
        return None, failed(NAME, f"{url}: expected http://… or https://…", EXIT_BAD_USE)
    try:
        with urllib.request.urlopen(address, timeout=_WITHIN_S) as answer:  # noqa: S310 the scheme was looked at
            return json.loads(answer.read(_MAX_BYTES)), 0
    except urllib.error.HTTPError as error:
        why = _OLD if error.code == HTTPStatus.NOT_FOUND else error.reason
        return None, failed(NAME, f"{url}: {error.code}: {why}", EXIT_REFUSED)
    except OSError as error:
        reason = getattr(error, "reason", error)
        return None, failed(NAME, f"{url}: {reason}: is gpufeed running? Other ports: --url", EXIT_UNREACHABLE)
    except ValueError:
        return None, failed(NAME, f"{url}: whoever answers there is not gpufeed", EXIT_UNREACHABLE)


def _print(told: dict[str, Any], arguments: argparse.Namespace) -> int:
    if arguments.gpu is not None:
        return _print_one(told, arguments)
    if arguments.json:
        print(json.dumps(told))
        return 0
    print(f"{told['hostname']}{' (simulated: nothing of it exists)' if told['simulated'] else ''}")
    print("\n".join(told["lines"]))
    return 0


def _print_one(told: dict[str, Any], arguments: argparse.Namespace) -> int:
    wanted = arguments.gpu
    of = [one for one in told["gpus"] if wanted in one["uuids"] or one["name"].split(" instance")[0] == f"GPU {wanted}"]
    if not of:
        known = ", ".join(one["name"] for one in told["gpus"])
        return failed(NAME, f"--gpu {wanted}: there are {known or 'none'}", EXIT_BAD_USE)
    if arguments.json:
        print(json.dumps(of))
        return 0
    for one in of:
        print(f"{one['name']}{' (' + one['job'] + ')' if one['job'] else ''}: {one['summary']}.")
        for name in ("why", "next", "alike"):
            if one[name]:
                print(f"  {name}: {one[name]}")
    return 0
