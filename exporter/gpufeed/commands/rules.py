# SPDX-License-Identifier: Apache-2.0
"""`gpufeed rules`: the alert rules for Prometheus, as they are in force under a configuration."""

import argparse
import sys

from gpufeed.alerting import site
from gpufeed.config.load import load


def run(args: argparse.Namespace) -> int:
    """Print the rules for the configuration in `args.config_file` (None: the defaults). Raises ConfigError."""
    sys.stdout.write(site.rules(load(args.config_file)))
    return 0
