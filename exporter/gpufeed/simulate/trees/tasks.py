# SPDX-License-Identifier: Apache-2.0
"""Processes that hold GPUs and their data loaders: /proc/PID, and the cgroup that Slurm puts each rank in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.activity import LOADERS
from gpufeed.simulate.trees.kernel import TICKS_PER_S, pressure
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth, NodeTruth

JOB_ID: Final = 4242
JOB_CGROUP: Final = f"/system.slice/slurmstepd.scope/job_{JOB_ID}"

_STEP_PID: Final = 3990
_USER_ID: Final = 1000
_MASK_BITS: Final = 32
_HELPERS: Final = ("cuda-EvtHandlr", "pt_autograd_0")
_STATE_WORDS: Final = {"R": "running", "S": "sleeping", "D": "disk sleep"}
_SPINS_FROM: Final = 0.5
"""Cores from which on the trainer's main thread counts as running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A thread; the first of a process has the process's own number."""

    number: int
    process: int
    parent: int
    name: str
    state: str
    cpu_s: float
    threads: int = 1


def cgroup_of(gpu: GpuTruth) -> str:
    """Of the rank that uses a GPU."""
    return f"{JOB_CGROUP}/step_0/user/task_{gpu.board.index}"


class TaskTree:
    """Remembers which ranks have processes, to take their directories away when they end."""

    def __init__(self, tree: TreeWriter) -> None:
        self._tree = tree
        self._ranks: dict[int, tuple[int, ...]] = {}

    def write(self, truth: NodeTruth) -> None:
        """Processes as they are now."""
        for gpu in truth.gpus:
            if gpu.activity.occupant == "held":
                self._write_rank(gpu, truth.host.cpus)
            elif gpu.board.index in self._ranks:
                self._end_rank(gpu)
        if self._ranks:
            self._write_pressure(JOB_CGROUP, truth.gpus)

    def _write_rank(self, gpu: GpuTruth, cpus: int) -> None:
        tasks = list(_tasks(gpu))
        processes = tuple(sorted({task.process for task in tasks}))
        for task in tasks:
            self._tree.write(f"proc/{task.process}/task/{task.number}/stat", _stat_line(task))
            self._tree.write(f"proc/{task.process}/task/{task.number}/comm", f"{task.name}\n")
            if task.number == task.process:
                self._write_process(task, tasks, gpu, cpus)
        cgroup = cgroup_of(gpu)
        self._tree.write(f"sys/fs/cgroup{cgroup}/cgroup.procs", "".join(f"{pid}\n" for pid in processes))
        self._write_pressure(cgroup, [gpu])
        self._ranks[gpu.board.index] = processes

    def _write_process(self, main: Task, tasks: Sequence[Task], gpu: GpuTruth, cpus: int) -> None:
        own = [task for task in tasks if task.process == main.process]
        children = [task.process for task in tasks if task.parent == main.process and task.number == task.process]
        path = f"proc/{main.process}"
        whole = Task(
            number=main.number, process=main.process, parent=main.parent, name=main.name, state=main.state,
            cpu_s=sum(task.cpu_s for task in own), threads=len(own),
        )  # fmt: skip
        self._tree.write(f"{path}/stat", _stat_line(whole))
        self._tree.write(f"{path}/comm", f"{main.name}\n")
        self._tree.write(f"{path}/cgroup", f"0::{cgroup_of(gpu)}\n")
        self._tree.write(f"{path}/status", _status(whole, gpu.board.index, cpus))
        self._tree.write(f"{path}/task/{main.number}/children", "".join(f"{child} " for child in children))

    def _write_pressure(self, cgroup: str, gpus: Sequence[GpuTruth]) -> None:
        def most(name: str) -> float:
            return max(gpu.host_total(name) for gpu in gpus)

        def least(name: str) -> float:
            return min(gpu.host_total(name) for gpu in gpus)

        path = f"sys/fs/cgroup{cgroup}"
        cpu_us = int(sum(gpu.host_total("trainer_cpu_s") + gpu.host_total("loader_cpu_s") for gpu in gpus) * 1e6)
        self._tree.write(f"{path}/io.pressure", pressure(most("io_waiting_s"), least("io_stalled_s")))
        self._tree.write(f"{path}/memory.pressure", pressure(most("memory_waiting_s"), least("memory_stalled_s")))
        self._tree.write(f"{path}/cpu.pressure", pressure(most("cpu_waiting_s"), 0.0))
        self._tree.write(f"{path}/cpu.stat", f"usage_usec {cpu_us}\nuser_usec {cpu_us}\nsystem_usec 0\n")

    def _end_rank(self, gpu: GpuTruth) -> None:
        for process in self._ranks.pop(gpu.board.index):
            self._tree.remove_directory(f"proc/{process}")
        self._tree.remove_directory(f"sys/fs/cgroup{cgroup_of(gpu)}")


def _tasks(gpu: GpuTruth) -> Iterator[Task]:
    host, pid = gpu.activity.host, gpu.pid
    spins = host.trainer_cpu >= _SPINS_FROM
    yield Task(
        number=pid, process=pid, parent=_STEP_PID, name="python3", state="R" if spins else "S",
        cpu_s=gpu.host_total("trainer_cpu_s"),
    )  # fmt: skip
    for at in range(LOADERS):
        blocked, running = at < host.loaders_blocked, at < host.loaders_blocked + host.loaders_running
        yield Task(
            number=pid + 1 + at, process=pid + 1 + at, parent=pid, name="pt_data_worker",
            state="D" if blocked else "R" if running else "S",
            cpu_s=gpu.host_total("loader_cpu_s") / LOADERS,
        )  # fmt: skip
    for at, name in enumerate(_HELPERS):
        number = pid + 1 + LOADERS + at
        yield Task(number=number, process=pid, parent=_STEP_PID, name=name, state="S", cpu_s=0.0)


def _stat_line(task: Task) -> str:
    user = int(task.cpu_s * TICKS_PER_S)
    before = f"{task.number} ({task.name}) {task.state} {task.parent} {task.process} {_STEP_PID} 0 -1 4194304"
    times = f"120431 0 12 0 {user} 0 0 0 20 0 {task.threads} 0 {8_000_000 + task.number}"
    return f"{before} {times} 48318382080 1572864 18446744073709551615{' 0' * 27}\n"


def _status(task: Task, gpu: int, cpus: int) -> str:
    first = gpu * LOADERS
    return (
        f"Name:\t{task.name}\nUmask:\t0022\nState:\t{task.state} ({_STATE_WORDS[task.state]})\n"
        f"Tgid:\t{task.process}\nNgid:\t0\nPid:\t{task.number}\nPPid:\t{task.parent}\nTracerPid:\t0\n"
        f"Uid:\t{_USER_ID}\t{_USER_ID}\t{_USER_ID}\t{_USER_ID}\n"
        f"Gid:\t{_USER_ID}\t{_USER_ID}\t{_USER_ID}\t{_USER_ID}\n"
        f"VmRSS:\t 6291456 kB\nThreads:\t{task.threads}\n"
        f"Cpus_allowed:\t{_mask(range(first, first + LOADERS), cpus)}\n"
        f"Cpus_allowed_list:\t{first}-{first + LOADERS - 1}\n"
    )


def _mask(allowed: range, cpus: int) -> str:
    """Words of 32 processors in hexadecimal, the highest first, as many as the node has processors for."""
    bits = sum(1 << cpu for cpu in allowed)
    if cpus <= _MASK_BITS:
        return f"{bits:0{-(-cpus // 4)}x}"
    words = -(-cpus // _MASK_BITS)
    return ",".join(f"{bits >> _MASK_BITS * at & 0xFFFF_FFFF:08x}" for at in reversed(range(words)))
