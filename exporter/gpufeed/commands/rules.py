# SPDX-License-Identifier: Apache-2.0
"""`gpufeed rules`: the alert rules for Prometheus, as they are in force under a configuration."""

import argparse
import sys

from gpufeed.alerting import site
from gpufeed.config.load import load
from gpufeed.errors import ConfigError


def run(args: argparse.Namespace) -> int:
    """Print the rules for the configuration in `args.config_file` (None: the defaults). 2 where it is wrong."""
    try:
        text = site.rules(load(args.config_file))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(text)
    return 0
