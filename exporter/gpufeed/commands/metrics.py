# SPDX-License-Identifier: Apache-2.0
"""`gpufeed metrics`: every metric this version can export, as METRICS.md or as JSON."""

import argparse
import json
import sys
from dataclasses import asdict

from gpufeed.catalogue import METRICS, markdown


def run(args: argparse.Namespace) -> int:
    """Print the catalogue in `args.format`: markdown or json. Always 0."""
    sys.stdout.write(_json() if args.format == "json" else markdown.render())
    return 0


def _json() -> str:
    return json.dumps([asdict(definition) for definition in METRICS.values()], indent=2, ensure_ascii=False) + "\n"
