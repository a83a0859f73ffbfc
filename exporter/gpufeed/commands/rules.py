# SPDX-License-Identifier: Apache-2.0
"""`gpufeed rules`: the alert rules for Prometheus, as they are in force under a configuration."""

import argparse
import sys

from gpufeed.alerting import site
from gpufeed.daemon.configuration import read


def run(args: argparse.Namespace) -> int:
    """Print the rules for the configuration in `args.config_file` (None: the defaults). Raises ConfigError."""
    sys.stdout.write(site.rules(read(args.config_file)))
    return 0
