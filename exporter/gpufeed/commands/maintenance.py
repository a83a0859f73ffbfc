# SPDX-License-Identifier: Apache-2.0
"""`gpufeed maintenance on|off`: while it is on, this node sends no alerts; it ends by itself."""

import argparse
import time

from gpufeed.commands.orders import EXIT_BAD_USE, failed, ordered
from gpufeed.config.duration import Duration
from gpufeed.units import seconds

NAME = "maintenance"


def run(arguments: argparse.Namespace) -> int:
    """0 when the daemon obeys, 1 when it refuses, 2 for a bad duration, 3 when none answers. Raises ConfigError."""
    if arguments.state == "off":
        told, code = ordered(NAME, arguments, "resume_duty")
        if told is not None:
            print("maintenance has ended" if told["was_on"] else "there was no maintenance")
        return code
    try:
        for_s = seconds(Duration.parse(arguments.maintain_for).ns)
    except ValueError as error:
        return failed(NAME, f"--for: {error}", EXIT_BAD_USE)
    told, code = ordered(NAME, arguments, "maintain", for_s=for_s)
    if told is not None:
        until = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(told["until"]))
        print(f"maintenance until {until}: this node sends no alerts; `gpufeed maintenance off` ends it before")
    return code
