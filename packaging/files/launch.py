# SPDX-License-Identifier: Apache-2.0
"""Start of an installed package: its own library tree first, nothing from the environment."""

import sys

sys.path.insert(0, "/usr/lib/gpufeed/lib")

from gpufeed.cli import main

sys.exit(main())
