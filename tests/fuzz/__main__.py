# SPDX-License-Identifier: Apache-2.0
"""`make fuzz`: bend inputs for so long. What fails is written to the corpus, where the suite finds it from then on."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz import nodes, parsers

_MEMORY = "/dev/shm"  # noqa: S108 - a private folder is made below it: thousands of small files are written


def main() -> int:
    """0: nothing found; 1: something was."""
    parsed = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parsed.add_argument("--seconds", type=float, default=600, help="in total (default 600)")
    parsed.add_argument("--seed", type=int, default=None, help="of the order of things; by default another each time")
    parsed.add_argument("--keep", action="store_true", help="keep inputs that went a way no kept one goes")
    arguments = parsed.parse_args()
    seed = time.time_ns() if arguments.seed is None else arguments.seed
    folder = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="gpufeed-fuzz-", dir=folder) as root:
        try:
            runs, found = parsers.fuzz(arguments.seconds / 2, seed, Path(root) / "parsers")
            bent = nodes.fuzz(arguments.seconds / 2, seed, Path(root) / "nodes")
        except parsers.ParserError as failure:
            print(f"fuzz: seed {seed}: {failure}\n  kept as {parsers.keep(failure.name, failure.data)}")
            return 1
        except AssertionError as error:
            print(f"fuzz: seed {seed}: {error}", *getattr(error, "__notes__", ()), sep="\n  ")
            return 1
    if arguments.keep:
        for name, inputs in found.items():
            for data in inputs:
                parsers.keep(name, data)
    new = sum(map(len, found.values()))
    print(f"fuzz: seed {seed}: {runs} inputs of parsers ({new} new ways), {bent} files of a node: nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
