# SPDX-License-Identifier: Apache-2.0
"""`python -m gpufeed` is the command."""

import sys

from gpufeed.cli import main

if __name__ == "__main__":
    sys.exit(main())
