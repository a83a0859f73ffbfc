# SPDX-License-Identifier: Apache-2.0
"""`gpufeed check-config`: every problem of a configuration file, or what it comes to."""

import argparse
import sys

from gpufeed.config.checks import remarks
from gpufeed.config.fingerprint import config_hash
from gpufeed.config.reference import reference
from gpufeed.daemon.configuration import read


def run(arguments: argparse.Namespace) -> int:
    """0 when the file is right, 2 when it is wrong (ConfigError) or none is named."""
    if arguments.reference:
        sys.stdout.write(reference())
        return 0
    if arguments.file is None:
        sys.stderr.write("gpufeed check-config: which FILE? (--reference prints every key there is)\n")
        return 2
    config = read(arguments.file)
    for remark in remarks(config):
        print(f"{arguments.file}: {remark}")
    print(f"{arguments.file}: ok, hash {config_hash(config)}")
    return 0
