# SPDX-License-Identifier: Apache-2.0
"""What Slurm leaves of a job's GPUs where it runs: its variables in a task, and the devices its cgroup may use.

Sources: slurm's sbatch(1), environment; the kernel's Documentation/admin-guide/cgroup-v1/devices.rst.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.parse.cgroup_job import CgroupJob
from gpufeed.parse.text import clean_text

_VARIABLE: Final = re.compile(rb"(?P<name>SLURM_[A-Z0-9_]{1,64})=(?P<value>[^\0]{0,4096})")
_JOB_ID: Final = re.compile(r"[0-9]{1,20}")
_STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {"4294967290": "interactive", "4294967291": "batch", "4294967292": "extern"}
)
"""Numbers of steps that have a name. Source: slurm.h, SLURM_BATCH_SCRIPT and those around it."""

_RANGES: Final = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")
_MAX_GPUS: Final = 64
_DEVICE: Final = re.compile(rb"(?P<kind>[abc]) (?P<major>\d{1,6}|\*):(?P<minor>\d{1,7}|\*) (?P<access>[rwm]{1,3})")
_NVIDIA_MAJOR: Final = b"195"
_LAST_GPU: Final = 254
"""Minor 255 is the control device, 254 the mode setting of displays: open to everybody."""


def parse_slurm_environ(data: bytes) -> dict[str, str]:
    """The variables that Slurm sets, from /proc/PID/environ. No other variable is looked at."""
    found = (_VARIABLE.fullmatch(entry) for entry in data.split(b"\0"))
    return {entry["name"].decode(): clean_text(entry["value"]) for entry in found if entry is not None}


def slurm_job_of(variables: Mapping[str, str]) -> CgroupJob | None:
    """The job and step of a task by its variables; None where they name no job."""
    job_id, step = variables.get("SLURM_JOB_ID", ""), variables.get("SLURM_STEP_ID", "")
    if _JOB_ID.fullmatch(job_id) is None:
        return None
    if _JOB_ID.fullmatch(step) is None:
        step = ""
    return CgroupJob(scheduler="slurm", job_id=job_id, step=_STEPS.get(step, step))


def parse_gpu_numbers(text: str) -> tuple[int, ...] | None:
    """Numbers of GPUs from SLURM_JOB_GPUS (`2,3`, `0-3`); None where it is no such list."""
    if _RANGES.fullmatch(text) is None:
        return None
    numbers: dict[int, None] = {}
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(dict.fromkeys(range(int(first), min(int(last or first), int(first) + _MAX_GPUS) + 1)))
    return tuple(sorted(numbers)[:_MAX_GPUS])


def parse_device_minors(data: bytes) -> tuple[int, ...] | None:
    """Minor numbers of the GPUs in `devices.list` of version 1; None where the cgroup may use every device."""
    minors: set[int] = set()
    for line in data.split(b"\n"):
        found = _DEVICE.fullmatch(line.strip())
        if found is None or found["kind"] == b"b" or found["access"] == b"m":  # a file may be made, not opened
            continue
        if found["major"] not in {b"*", _NVIDIA_MAJOR}:
            continue
        if b"*" in {found["major"], found["minor"]}:
            return None
        if int(found["minor"]) < _LAST_GPU:
            minors.add(int(found["minor"]))
    return tuple(sorted(minors))
