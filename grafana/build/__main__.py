# SPDX-License-Identifier: Apache-2.0
"""Write every dashboard anew: `python grafana/build [FOLDER]`."""

import json
import sys
from pathlib import Path

from fabric import fabric
from fleet import fleet
from gpu import gpu
from itself import itself
from job import job
from node import node
from storage import storage

DASHBOARDS = {
    "fleet.json": fleet,
    "node.json": node,
    "gpu.json": gpu,
    "job.json": job,
    "fabric.json": fabric,
    "storage.json": storage,
    "itself.json": itself,
}


def main(folder: Path) -> None:
    """Write the dashboards into `folder`, keys sorted, so that a change shows as one."""
    for name, dashboard in DASHBOARDS.items():
        (folder / name).write_text(json.dumps(dashboard(), indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "dashboards")
