# SPDX-License-Identifier: Apache-2.0
"""`gpufeed forget GPU`: a GPU was taken out on purpose and is missed no longer."""

import argparse

from gpufeed.commands.orders import ordered


def run(arguments: argparse.Namespace) -> int:
    """0 when the daemon obeys, 1 when it refuses, 3 when none answers. Raises ConfigError."""
    told, code = ordered("forget", arguments, "forget", gpu=arguments.gpu)
    if told is not None:
        print(f"GPU {told['index']} ({told['uuid']}) is forgotten: it is not expected any more")
    return code
