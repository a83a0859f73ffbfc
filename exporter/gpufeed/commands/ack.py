# SPDX-License-Identifier: Apache-2.0
"""`gpufeed ack GPU`: a latched fault was dealt with in a way that the node cannot see."""

import argparse

from gpufeed.commands.orders import ordered


def run(arguments: argparse.Namespace) -> int:
    """0 when the daemon obeys, 1 when it refuses, 3 when none answers. Raises ConfigError."""
    told, code = ordered("ack", arguments, "ack", gpu=arguments.gpu)
    if told is not None:
        print(f"GPU {told['index']} ({told['uuid']}): its latched fault is cleared; it latches again if it comes again")
    return code
