# SPDX-License-Identifier: Apache-2.0
"""What an explanation is: the form of /api/v1/explain. Fields are only ever added; null: not known."""

from msgspec import Struct


class Share(Struct, frozen=True):
    """Part of the time that was looked at, 0 to 1."""

    state: str
    cause: str
    ratio: float


class Number(Struct, frozen=True):
    """One number that decided; `usual` is what it is on other days."""

    input: str
    value: float
    unit: str
    usual: float | None = None


class Part(Struct, frozen=True, kw_only=True):
    """One GPU, all GPUs of a job, or GPUs of a job that fare alike."""

    name: str
    uuids: tuple[str, ...]
    job: str  # empty: nobody's, not known, or not to be named here
    watched_seconds: float  # of each GPU, within the window
    shares: tuple[Share, ...]  # the largest first
    state: str  # what matters most
    cause: str
    confidence: float | None
    evidence: tuple[Number, ...]
    gain_at_most: float | None  # times the work, if this cause were gone and nothing took its place
    summary: str
    why: str
    next: str  # what to look at
    alike: str  # what looks the same from this node


class Explanation(Struct, frozen=True, kw_only=True):
    """Where the time of a node's GPUs went, and why."""

    hostname: str
    simulated: bool
    time_seconds: float
    window_seconds: float
    parts: tuple[Part, ...]  # GPUs that fare alike, together; the worst first
    gpus: tuple[Part, ...]
    jobs: tuple[Part, ...]
    not_measured: tuple[str, ...]
    lines: tuple[str, ...]  # all of it for a person
    disagreements: tuple[str, ...] = ()  # of jobs that report something else than was seen
