# SPDX-License-Identifier: Apache-2.0
"""`gpufeed release`: the running daemon lets go of every GPU, so that a reset or a driver's unload can proceed."""

import argparse

from gpufeed.commands.orders import EXIT_BAD_USE, failed, ordered
from gpufeed.config.duration import Duration
from gpufeed.units import seconds

NAME = "release"


def run(arguments: argparse.Namespace) -> int:
    """0 when the daemon obeys, 1 when it refuses, 2 for a bad duration, 3 when none answers. Raises ConfigError."""
    if arguments.resume:
        _, code = ordered(NAME, arguments, "resume")
        if not code:
            print("NVML is opened again")
        return code
    try:
        for_s = seconds(Duration.parse(arguments.release_for).ns)
    except ValueError as error:
        return failed(NAME, f"--for: {error}", EXIT_BAD_USE)
    _, code = ordered(NAME, arguments, "release", for_s=for_s)
    if not code:
        print(f"NVML is closed for {arguments.release_for}; `gpufeed release --resume` takes it back before")
    return code
