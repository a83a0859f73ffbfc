# SPDX-License-Identifier: Apache-2.0
"""Shards over processes, the dearest first, with a word on how far it is. What was found before is not found again."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.accuracy.live import Task, perform
from bench.accuracy.plans import Shard
from bench.accuracy.recording import forget_others
from bench.accuracy.store import answer_hash, frames_hash, read_json, simulator_hash

Said = Callable[[str], None]


def results(
    shards: Sequence[Shard], classifier: str, folder: Path, workers: int, say: Said, *, keeps_frames: bool = False
) -> Iterator[dict[str, Any]]:
    """Of every shard, in the order in which they are there. Each is written before it is given.

    `keeps_frames`: also what each node showed, so that a changed product only has to see it again.
    """
    runs = folder / "runs" / f"{classifier}-{answer_hash(classifier)}"
    verdicts = folder / "verdicts" / simulator_hash()
    frames = folder / "frames" / frames_hash() if keeps_frames else None
    if frames is not None:
        forget_others(frames)
    tasks = [
        Task(shard=shard, classifier=classifier, result=runs / f"{shard.name}.json", verdicts=verdicts, frames=frames)
        for shard in sorted(shards, key=lambda shard: -shard.cost)
    ]
    ahead = []
    for task in tasks:
        found = read_json(task.result)
        if found is None:
            ahead.append(task)
        else:
            yield found
    say(f"{len(tasks) - len(ahead)} of {len(tasks)} shards were there, {len(ahead)} ahead on {workers} processes")
    if workers == 1:
        yield from _counted(ahead, map(perform, ahead), say)
    elif ahead:
        yield from _spread(ahead, workers, say)


def _spread(tasks: Sequence[Task], workers: int, say: Said) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(max_workers=workers, mp_context=context)
    try:
        futures: dict[Future[dict[str, Any]], Task] = {pool.submit(perform, task): task for task in tasks}
        done = as_completed(futures)
        yield from _counted(tasks, (future.result() for future in done), say)
    finally:
        pool.shutdown(cancel_futures=True)


def _counted(tasks: Sequence[Task], found: Iterator[dict[str, Any]], say: Said) -> Iterator[dict[str, Any]]:
    whole = sum(task.shard.cost for task in tasks)
    costs = {task.shard.name: task.shard.cost for task in tasks}
    began, spent = perf_counter(), 0.0
    for at, result in enumerate(found, 1):
        spent += costs[result["name"]]
        passed_s = perf_counter() - began
        left_s = passed_s * (whole - spent) / spent
        far = f"{at}/{len(tasks)} {100 * spent / whole:3.0f} %, {passed_s:.0f} s, about {left_s:.0f} s left"
        say(f"{far}: {result['shard']['scenario']}")
        yield result


def say_aloud(line: str) -> None:
    """Progress goes past the answer."""
    print(line, file=sys.stderr, flush=True)
