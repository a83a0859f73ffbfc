# SPDX-License-Identifier: Apache-2.0
"""`gpufeed run`: the daemon on this node, whatever of it there is to read."""

import argparse

from gpufeed.config.flags import given
from gpufeed.config.schema import Config
from gpufeed.daemon.configuration import read
from gpufeed.daemon.main import serve


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal. Raises ConfigError; 3 where an address is taken."""

    def read_again() -> Config:
        return read(arguments.config_file, given(arguments))

    return serve(read_again(), read_again)
