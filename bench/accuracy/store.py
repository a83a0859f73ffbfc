# SPDX-License-Identifier: Apache-2.0
"""What was worked out before, by what it was worked out from: a run that was interrupted goes on where it was."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import gpufeed

PACKAGE: Final = Path(gpufeed.__file__).parent
BENCH: Final = Path(__file__).parent
NOT_SIMULATING: Final = ("sensors", "nvml", "trees")
"""Parts of the simulator that show the truth and do not make it."""


def simulator_hash() -> str:
    """Of all that makes the truth, and of what is kept of it."""
    files = [path for path in (PACKAGE / "simulate").rglob("*.py") if path.parent.name not in NOT_SIMULATING]
    return _hash([*files, BENCH / "verdicts.py"])


def frames_hash() -> str:
    """Of all that makes what a node shows."""
    seen = [*(PACKAGE / "simulate").rglob("*.py"), *(PACKAGE / "model").rglob("*.py")]
    return _hash([*seen, *(BENCH / name for name in ("recording.py", "timeline.py"))])


def answer_hash(classifier: str) -> str:
    """Of all that an answer, and its score, depends on."""
    seen = [*(PACKAGE / "simulate").rglob("*.py"), *(PACKAGE / "model").rglob("*.py"), *BENCH.glob("*.py")]
    if classifier == "step":
        seen += [PACKAGE / "step.py", PACKAGE / "units.py"]
        seen += [path for part in ("signals", "health") for path in (PACKAGE / part).rglob("*.py")]
    return _hash([*seen, *BENCH.glob("*.toml")])


def read_json(path: Path) -> Any:  # noqa: ANN401  # whatever was written
    """What was written there; None where nothing is, or only a part of it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: object) -> None:
    """All of it or nothing, also where two processes write at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    draft.write_text(json.dumps(value, separators=(",", ":")), encoding="utf-8")
    draft.replace(path)


def _hash(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(set(files)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
