# SPDX-License-Identifier: Apache-2.0
"""Waiting time: which layer the job's pipeline stands in, scored from the host side; or unknown.

Every cause has its own terms, each 0 to 1, and a gate. The best one wins only if it is strong and clearly ahead: two
that are near each other are a tie, and a tie is unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from gpufeed.model.evidence import Evidence
from gpufeed.model.state import StateCause
from gpufeed.signals.features import RESIDENT_MIN, GpuFeatures
from gpufeed.signals.pipeline import Pipeline, Storage, Tasks
from gpufeed.signals.settings import Settings

IDLE_HELD: Final = StateCause("idle_held", "")
IDLE_FREE: Final = StateCause("idle_free", "")
UNDECIDED: Final = StateCause("starved", "unknown")

NO_KERNEL_MAX: Final = 0.02
QUIET_CORES: Final = 0.05
LAUNCHING_CORES: Final = 1.0
PEER_AHEAD: Final = 0.2
QUIET_PRESSURE: Final = 0.02
QUIET_BLOCKED: Final = 0.1
QUIET_COPY_BYTES_PER_S: Final = 10e6
QUIET_READ_BYTES_PER_S: Final = 1e6
QUIET_HOST_SHARE: Final = 0.02
"""Of the node's processors: the most that still counts as no work, where the job's own tasks cannot be seen."""
SERIAL_LOADERS_MAX: Final = 2.0
CACHED_SATURATION_MAX: Final = 0.3
WRITING: Final = 4.0
"""So many bytes written for one read: what is waited for is not a read."""
PCIE_WITHOUT_GPM_MAX: Final = 0.6


class Waiting(NamedTuple):
    """What waiting time is counted as, how sure that is, and the numbers that decided."""

    cause: StateCause
    confidence: float
    evidence: tuple[Evidence, ...] = ()
    runner_up: StateCause | None = None


class Score(NamedTuple):
    """A cause's score, and the terms it is the highest of."""

    value: float
    evidence: tuple[Evidence, ...] = ()


def waiting_cause(of: GpuFeatures, by: Pipeline, settings: Settings) -> Waiting:
    """Why a GPU without a kernel waits."""
    if is_quiet(of, by) or is_without_requests(of, by):
        return Waiting(IDLE_HELD, 0.8)
    if not by.has_evidence:
        return Waiting(UNDECIDED, 0.0)
    if by.tasks is not None and _is_serial_loader(by.tasks, by.storage):
        return Waiting(StateCause("starved", "host_cpu"), 0.5, _serial_evidence(by.tasks))
    scores = {cause: score(of, by) for cause, score in SCORES.items()}
    ranked = sorted(scores, key=lambda cause: scores[cause].value, reverse=True)
    best, second = ranked[0], ranked[1]
    lead = scores[best].value - scores[second].value
    runner_up = StateCause("starved", second) if scores[second].value > 0 else None
    if scores[best].value < settings.cause_score_min or lead < settings.cause_lead_min:
        return Waiting(UNDECIDED, 0.0, (*scores[best].evidence, *scores[second].evidence), runner_up)
    return Waiting(StateCause("starved", best), min(1.0, lead), scores[best].evidence, runner_up)


def is_quiet(of: GpuFeatures, by: Pipeline) -> bool:
    """No kernel, no copies, no processor time, no reads: the job does nothing that could be waited for."""
    if of.active > NO_KERNEL_MAX or (of.pcie_bytes_per_s or 0.0) > QUIET_COPY_BYTES_PER_S:
        return False
    if by.tasks is not None and by.tasks.cores is not None:
        return by.tasks.cores <= QUIET_CORES * by.tasks.gpus and by.tasks.blocked <= QUIET_BLOCKED
    if by.host_cores is None or by.host_cpus is None or by.storage is None:
        return False
    is_host_quiet = by.host_cores <= QUIET_HOST_SHARE * by.host_cpus
    return is_host_quiet and by.storage.read_bytes_per_s < QUIET_READ_BYTES_PER_S and by.storage.outstanding < 1


def is_without_requests(of: GpuFeatures, by: Pipeline) -> bool:
    """The job's processors work while the GPU does, and not beyond: between its kernels it has nothing to do.

    A thread that starts kernels uses about one processor while they run. A job that prepares the next ones uses more,
    and one that waits for its data has tasks that wait.
    """
    tasks = by.tasks
    if tasks is None or tasks.cores is None or of.active >= RESIDENT_MIN:
        return False
    is_copying = (of.pcie_bytes_per_s or 0.0) > QUIET_COPY_BYTES_PER_S
    is_waiting = tasks.blocked > QUIET_BLOCKED or (by.io_waiting or 0.0) > QUIET_PRESSURE
    if is_copying or is_waiting or of.peer_active > of.active + PEER_AHEAD:
        return False
    beyond = tasks.cores - LAUNCHING_CORES * of.active_around * tasks.gpus
    return beyond <= QUIET_CORES * tasks.gpus


def storage_score(_: GpuFeatures, by: Pipeline) -> Score:
    """Tasks wait for reads, reads take longer than usual, a target gives all it can."""
    storage = by.storage
    if storage is not None and not _is_read_from(storage):
        return Score(0.0)
    terms = [_term("io pressure", _not_for_memory(by.io_waiting, by), "ratio", 0.05, 0.25)]
    if by.tasks is not None:
        blocked = _not_for_memory(by.tasks.blocked_ratio, by)
        terms.append(_term("tasks in uninterruptible sleep", blocked, "ratio", 0.10, 0.40))
    if storage is not None:
        terms.append(_slow_reads(storage))
        terms.append(_term(f"{storage.target} reads of capacity", storage.read_saturation, "ratio", 0.6, 0.3))
    return _best(terms)


def _slow_reads(storage: Storage) -> Evidence | None:
    """By how often longer than usual a read takes; told as the time it takes. No score before the usual is learned."""
    if storage.latency_s is None:
        return None
    takes = Evidence(input=f"{storage.target} read latency", value=storage.latency_s, unit="seconds")
    slower = _term(takes.input, storage.slowdown, takes.unit, 1.5, 2.0)
    return replace(takes, score=slower.score, usual=storage.latency_usual_s) if slower is not None else takes


def _not_for_memory(waiting: float | None, by: Pipeline) -> float | None:
    """What is left of waiting for input and output: a task that waits for a page of memory to be found waits so too."""
    if waiting is None or not by.io_waiting or by.memory_waiting is None:
        return waiting
    return waiting * max(0.0, 1.0 - by.memory_waiting / by.io_waiting)


def _is_read_from(storage: Storage) -> bool:
    """Reads are under way, or so many end that the pipeline may stand on them; writes are not what is waited for."""
    if storage.outstanding >= 1:
        return True
    is_written_to = storage.write_bytes_per_s > WRITING * storage.read_bytes_per_s
    return storage.read_bytes_per_s > QUIET_READ_BYTES_PER_S and not is_written_to


def checkpoint_score(of: GpuFeatures, by: Pipeline) -> Score:
    """More is written than read, while tasks wait for it or the GPU has just been copied from."""
    storage = by.storage
    if storage is None or storage.write_bytes_per_s <= storage.read_bytes_per_s:
        return Score(0.0)
    is_waiting = (by.io_waiting or 0.0) >= PRESSURE_SOME or (by.tasks is not None and by.tasks.blocked_ratio >= SOME)
    if not (is_waiting or (of.pcie_transmit or 0.0) >= COPY_MIN):
        return Score(0.0)
    return _best(
        [
            _term("writes of capacity", storage.write_saturation, "ratio", 0.2, 0.4),
            _term("writes", storage.write_bytes_per_s, "bytes_per_second", 50e6, 150e6),
        ]
    )


PRESSURE_SOME, SOME, COPY_MIN = 0.1, 0.2, 0.02


def host_cpu_score(_: GpuFeatures, by: Pipeline) -> Score:
    """The processors of the job are full, or one thread is all there is; and storage is not what it reads from."""
    saturation = by.storage.read_saturation if by.storage is not None else None
    if saturation is not None and saturation >= CACHED_SATURATION_MAX:
        return Score(0.0)
    terms = [_term("cpu pressure", by.cpu_waiting, "ratio", 0.10, 0.30)]
    if by.tasks is not None:
        terms.append(_term("processors of the job in use", by.tasks.cpu_ratio, "ratio", 0.80, 0.15))
        terms.append(_term("busiest thread", by.tasks.busiest, "ratio", 0.85, 0.10))
    return _best(terms)


def host_memory_score(_: GpuFeatures, by: Pipeline) -> Score:
    """Tasks wait for memory to be reclaimed or swapped in."""
    return _best([_term("memory pressure", by.memory_waiting, "ratio", 0.05, 0.20)])


def pcie_score(of: GpuFeatures, _: Pipeline) -> Score:
    """Copies to the GPU fill the link as it is now."""
    score = _best([_term("PCIe receive of achievable", of.pcie_receive, "ratio", 0.5, 0.3)])
    return score if of.has_gpm else Score(min(score.value, PCIE_WITHOUT_GPM_MAX), score.evidence)


SCORES: Final[Mapping[str, Callable[[GpuFeatures, Pipeline], Score]]] = MappingProxyType(
    {
        "storage": storage_score,
        "checkpoint": checkpoint_score,
        "host_cpu": host_cpu_score,
        "host_memory": host_memory_score,
        "pcie": pcie_score,
    }
)


SERIAL_MIN, SERIAL_MAX, SERIAL_CPU_MIN = 0.85, 1.15, 0.3
SERIAL_SATURATION_MAX, SERIAL_SLOWDOWN_MAX = 0.6, 1.5


def _is_serial_loader(tasks: Tasks, storage: Storage | None) -> bool:
    """One loader that reads, then computes, then reads.

    Faster storage or a faster processor would both cure it, and so would a second loader: that is the least. Calling
    it storage sends the wrong team.
    """
    loaders = tasks.running + tasks.blocked
    if tasks.busiest is None or tasks.busiest < SERIAL_CPU_MIN or loaders > SERIAL_LOADERS_MAX * tasks.gpus:
        return False
    if tasks.blocked == 0 or not SERIAL_MIN <= tasks.blocked_ratio + tasks.busiest <= SERIAL_MAX:
        return False
    if storage is not None and not _is_read_from(storage):
        return False
    saturation = (storage.read_saturation if storage is not None else None) or 0.0
    slowdown = (storage.slowdown if storage is not None else None) or 1.0
    return saturation < SERIAL_SATURATION_MAX and slowdown < SERIAL_SLOWDOWN_MAX


def _serial_evidence(tasks: Tasks) -> tuple[Evidence, ...]:
    return (
        Evidence(input="tasks in uninterruptible sleep", value=tasks.blocked_ratio, unit="ratio"),
        Evidence(input="busiest thread", value=tasks.busiest or 0.0, unit="ratio"),
    )


def _term(name: str, value: float | None, unit: str, begins: float, width: float) -> Evidence | None:
    """A reading as a score: 0 up to `begins`, 1 from `begins + width` on. None: not read."""
    if value is None:
        return None
    return Evidence(input=name, value=value, unit=unit, score=min(1.0, max(0.0, (value - begins) / width)))


def _best(terms: list[Evidence | None]) -> Score:
    known = [term for term in terms if term is not None]
    return Score(max((term.score or 0.0 for term in known), default=0.0), tuple(known))
