# SPDX-License-Identifier: Apache-2.0
"""Processes that hold GPUs and their data loaders: /proc/PID, and the cgroup that a scheduler puts each rank in."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.activity import LOADERS
from gpufeed.simulate.hardware import Board
from gpufeed.simulate.layout import Layout
from gpufeed.simulate.trees.kernel import TICKS_PER_S, pressure
from gpufeed.simulate.trees.nfs import mount_table
from gpufeed.simulate.trees.placement import USER_ID, placement_of
from gpufeed.simulate.trees.writer import TreeWriter
from gpufeed.simulate.truth import GpuTruth, NodeTruth

_STEP_PID: Final = 3990
_MASK_BITS: Final = 32
_SWITCHES_PER_S: Final = 250
_HELPERS: Final = ("cuda-EvtHandlr", "pt_autograd_0")
_STATE_WORDS: Final = {"R": "running", "S": "sleeping", "D": "disk sleep"}
_MODEL_FLOPS_PER_S: Final = 4e14
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


class TaskTree:
    """Remembers which ranks have processes, to take their directories away when they end."""

    def __init__(self, tree: TreeWriter, boards: Sequence[Board], layout: Layout) -> None:
        self._tree = tree
        self._boards = boards
        self._layout = layout
        self._placement = placement_of(layout.scheduler)
        self._ranks: dict[int, tuple[int, ...]] = {}
        self._placement.write(tree, boards)
        tree.make_directory("reports")

    def write(self, truth: NodeTruth) -> None:
        """Processes as they are now."""
        for gpu in truth.gpus:
            if gpu.activity.occupant == "held":
                self._write_rank(gpu, truth.host.cpus)
            elif gpu.board.index in self._ranks:
                self._end_rank(gpu)
        working = [gpu for gpu in truth.gpus if gpu.board.index in self._ranks]
        parents = {gpu.board.index: self._placement.parent(gpu.board) for gpu in working}
        for parent in {parent for parent in parents.values() if parent is not None}:
            self._write_usage(parent, [gpu for gpu in working if parents[gpu.board.index] == parent])

    def _write_rank(self, gpu: GpuTruth, cpus: int) -> None:
        tasks = list(_tasks(gpu))
        processes = tuple(sorted({task.process for task in tasks}))
        for task in tasks:
            self._tree.write(f"proc/{task.process}/task/{task.number}/stat", _stat_line(task))
            self._tree.write(f"proc/{task.process}/task/{task.number}/comm", f"{task.name}\n")
            switches = (int(task.cpu_s * _SWITCHES_PER_S), int(gpu.host_total("cpu_waiting_s") * _SWITCHES_PER_S))
            text = _status(task, gpu.board.index, cpus, switches)
            self._tree.write(f"proc/{task.process}/task/{task.number}/status", text)
            if task.number == task.process:
                self._write_process(task, tasks, gpu, cpus)
        self._ranks[gpu.board.index] = processes
        self._tree.write(f"reports/{gpu.pid}.json", _report(gpu))
        cgroup = self._placement.cgroup(gpu.board)
        together = [pid for rank in self._together(cgroup) for pid in self._ranks[rank]]
        self._tree.write(f"{self._directory(cgroup)}/cgroup.procs", "".join(f"{pid}\n" for pid in together))
        self._write_usage(cgroup, [gpu])

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
        self._tree.write(f"{path}/cgroup", self._placement.lines(gpu.board))
        self._write_view(path, main, gpu)
        switches = (int(whole.cpu_s * _SWITCHES_PER_S), int(gpu.host_total("cpu_waiting_s") * _SWITCHES_PER_S))
        self._tree.write(f"{path}/status", _status(whole, gpu.board.index, cpus, switches))
        if self._layout.shows_processes:
            self._tree.write(f"{path}/io", _io(main, gpu))
        self._tree.write(f"{path}/task/{main.number}/children", "".join(f"{child} " for child in children))

    def _write_view(self, path: str, main: Task, gpu: GpuTruth) -> None:
        """What the process sees and has open, as far as that is shown."""
        is_contained = self._layout.scheduler == "kubernetes"
        self._tree.write(f"{path}/mountinfo", mount_table(gpu.board if is_contained else None, self._layout.data_set))
        if not self._layout.shows_processes:
            self._tree.make_directory(f"{path}/ns")
            return
        self._tree.write(f"{path}/environ", self._placement.variables(self._boards))
        space = gpu.board.index if is_contained else 0
        self._tree.point(f"{path}/ns/mnt", f"mnt:[{4_026_531_841 + space}]")
        data = "/mnt/dataset" if is_contained else "/data"
        files = ["/dev/null", f"pipe:[{main.number}]", "/usr/lib/python3/os.py"]
        files += [f"{data}/shard-{main.number}.tar"] if main.parent == gpu.pid else ["/scratch/log.txt"]
        for number, file in enumerate(files):
            self._tree.point(f"{path}/fd/{number}", file)

    def _together(self, cgroup: str) -> list[int]:
        """Ranks that are in one cgroup."""
        return [rank for rank in self._ranks if self._placement.cgroup(self._boards[rank]) == cgroup]

    def _directory(self, cgroup: str) -> str:
        return f"sys/fs/cgroup{self._placement.mounted()}{cgroup}"

    def _write_usage(self, cgroup: str, gpus: Sequence[GpuTruth]) -> None:
        def most(name: str) -> float:
            return max(gpu.host_total(name) for gpu in gpus)

        def least(name: str) -> float:
            return min(gpu.host_total(name) for gpu in gpus)

        path = self._directory(cgroup)
        cpu_us = int(sum(gpu.host_total("trainer_cpu_s") + gpu.host_total("loader_cpu_s") for gpu in gpus) * 1e6)
        if not self._layout.has_unified_cgroups:
            self._tree.write(f"{path}/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
            return
        used = f"usage_usec {cpu_us}\nuser_usec {cpu_us}\nsystem_usec 0\n"
        self._tree.write(f"{path}/cpu.stat", f"{used}nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n")
        if not self._layout.has_pressure:
            return
        self._tree.write(f"{path}/io.pressure", pressure(most("io_waiting_s"), least("io_stalled_s")))
        self._tree.write(f"{path}/memory.pressure", pressure(most("memory_waiting_s"), least("memory_stalled_s")))
        self._tree.write(f"{path}/cpu.pressure", pressure(most("cpu_waiting_s"), 0.0))

    def _end_rank(self, gpu: GpuTruth) -> None:
        for process in self._ranks.pop(gpu.board.index):
            self._tree.remove_directory(f"proc/{process}")
        cgroup = self._placement.cgroup(gpu.board)
        if not self._together(cgroup):
            self._tree.remove_directory(self._directory(cgroup))


def _report(gpu: GpuTruth) -> str:
    """What a trainer that uses our own helper says of itself."""
    spent_s = {cause: ns / 1e9 for cause, ns in gpu.truth_ns.items()}
    waited_s = spent_s.get(("starved", "storage"), 0.0) + spent_s.get(("starved", "host_cpu"), 0.0)
    told = {
        "version": 1,
        "pid": gpu.pid,
        "elapsed_s": round(sum(spent_s.values()), 6),
        "data_wait_s": round(waited_s, 6),
        "model_flops": round(spent_s.get(("busy", "tensor"), 0.0) * _MODEL_FLOPS_PER_S),
    }
    return json.dumps(told)


def _tasks(gpu: GpuTruth) -> Iterator[Task]:
    host, pid = gpu.activity.host, gpu.pid
    spins = host.trainer_cpu >= _SPINS_FROM
    yield Task(
        number=pid, process=pid, parent=_STEP_PID, name="python3", state="R" if spins else "S",
        cpu_s=gpu.host_total("trainer_cpu_s"),
    )  # fmt: skip
    for at in range(gpu.loaders):
        blocked, running = at < host.loaders_blocked, at < host.loaders_blocked + host.loaders_running
        yield Task(
            number=pid + 1 + at, process=pid + 1 + at, parent=pid, name="pt_data_worker",
            state="D" if blocked else "R" if running else "S",
            cpu_s=gpu.host_total("loader_cpu_s") / gpu.loaders,
        )  # fmt: skip
    for at, name in enumerate(_HELPERS):
        number = pid + 1 + gpu.loaders + at
        yield Task(number=number, process=pid, parent=_STEP_PID, name=name, state="S", cpu_s=0.0)


def _stat_line(task: Task) -> str:
    user = int(task.cpu_s * TICKS_PER_S)
    before = f"{task.number} ({task.name}) {task.state} {task.parent} {task.process} {_STEP_PID} 0 -1 4194304"
    times = f"120431 0 12 0 {user} 0 0 0 20 0 {task.threads} 0 {8_000_000 + task.number}"
    return f"{before} {times} 48318382080 1572864 18446744073709551615{' 0' * 27}\n"


def _io(main: Task, gpu: GpuTruth) -> str:
    """Loaders read the data set, and the trainer the local disk."""
    is_loader = main.parent == gpu.pid
    read = int(gpu.host_total("nfs_read_bytes") / gpu.loaders if is_loader else gpu.host_total("disk_read_bytes"))
    written = int(0 if is_loader else gpu.host_total("disk_write_bytes"))
    return (
        f"rchar: {read}\nwchar: {written}\nsyscr: {read // 131072}\nsyscw: {written // 131072}\n"
        f"read_bytes: {0 if is_loader else read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n"
    )


def _status(task: Task, gpu: int, cpus: int, switches: tuple[int, int]) -> str:
    first = gpu * LOADERS
    return (
        f"Name:\t{task.name}\nUmask:\t0022\nState:\t{task.state} ({_STATE_WORDS[task.state]})\n"
        f"Tgid:\t{task.process}\nNgid:\t0\nPid:\t{task.number}\nPPid:\t{task.parent}\nTracerPid:\t0\n"
        f"Uid:\t{USER_ID}\t{USER_ID}\t{USER_ID}\t{USER_ID}\n"
        f"Gid:\t{USER_ID}\t{USER_ID}\t{USER_ID}\t{USER_ID}\n"
        f"VmRSS:\t 6291456 kB\nThreads:\t{task.threads}\n"
        f"Cpus_allowed:\t{_mask(range(first, first + LOADERS), cpus)}\n"
        f"Cpus_allowed_list:\t{first}-{first + LOADERS - 1}\n"
        f"voluntary_ctxt_switches:\t{switches[0]}\nnonvoluntary_ctxt_switches:\t{switches[1]}\n"
    )


def _mask(allowed: range, cpus: int) -> str:
    """Words of 32 processors in hexadecimal, the highest first, as many as the node has processors for."""
    bits = sum(1 << cpu for cpu in allowed)
    if cpus <= _MASK_BITS:
        return f"{bits:0{-(-cpus // 4)}x}"
    words = -(-cpus // _MASK_BITS)
    return ",".join(f"{bits >> _MASK_BITS * at & 0xFFFF_FFFF:08x}" for at in reversed(range(words)))
