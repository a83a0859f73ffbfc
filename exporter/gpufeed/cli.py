# SPDX-License-Identifier: Apache-2.0
"""The command line: which command, which flags; no logic."""


def main() -> int:
    """Run the command named by the arguments; the return value is the exit code."""
    return 0
