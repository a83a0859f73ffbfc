# SPDX-License-Identifier: Apache-2.0
"""A day of jobs, mounts, instances, links and boards that come and go, through the pure core: nothing piles up."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import pytest
from msgspec.structs import replace as changed

from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.frame import Reading, XidEvent
from gpufeed.model.gpu import MigInstance, MigInstances
from gpufeed.model.ids import GpuKey, LaneId, StorageKey
from gpufeed.model.jobs import JobOwner
from gpufeed.model.storage import StorageCounters, StorageInfo
from gpufeed.step import save, step
from signals.story import COMPUTING, WAITING, Host, S, Story, uuid

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TICK_S = 10
DAY_S = 24 * 3600
JOB_S, MOUNT_S, SPLIT_S, FLAP_S, XID_S = 300, 120, 3600, 600, 1800


class Day(Story):
    """Time in steps of ten seconds, and everything that has a name is given a new one now and then."""

    def at(self, second: int) -> None:
        """The node of that second, stepped."""
        self.gpus = [COMPUTING if second // JOB_S % 2 else WAITING] * self.count
        self.host = Host(read=1e9, reads=20.0, outstanding=1.0)
        self.pass_time(TICK_S * S)
        frame = self.frame(events=tuple(self._events(second)))
        kept = tuple(reading for reading in frame.readings if reading.lane != LaneId("jobs"))
        self.node = step(self.node, changed(frame, readings=(*kept, *self._named(second))))

    def _named(self, second: int) -> Iterator[Reading]:
        job = second // JOB_S
        cgroup = f"/system.slice/slurmstepd.scope/job_{job}/step_0"
        tasks = changed(self._tasks(), cgroup=cgroup)
        owner = JobOwner(cgroup=cgroup, pids=(job,), scheduler="slurm", job_id=str(job), step="0")
        yield self.reading("jobs", "jobs.fast", tasks, collector="jobs")
        yield self.reading("owners", "jobs.slow", owner, collector="jobs", period_ns=TICK_S * S)
        mount = StorageKey("nfs", f"/pods/{second // MOUNT_S}")
        counters = StorageCounters(
            storage=mount, read_bytes=second, reads=second, read_s=float(second), timeouts=0, errors=0
        )
        info = StorageInfo(storage=mount, source=f"nas:/{second // MOUNT_S}", fstype="nfs4")
        yield self.reading("mounts", "nfs.fast", counters, collector="nfs", period_ns=TICK_S * S)
        yield self.reading("mounts", "nfs.slow", info, collector="nfs", period_ns=TICK_S * S)
        first = second // SPLIT_S % 4
        split = MigInstances(gpu=GpuKey(uuid(1)), instances=(MigInstance(first, 0, f"MIG-{second // SPLIT_S}"),))
        yield self.reading("gpu1", "mig.slow", split, period_ns=TICK_S * S)

    def _events(self, second: int) -> Iterator[XidEvent]:
        if second % XID_S == 0:
            yield XidEvent(at_ns=self.now_ns, xid=13 + second // XID_S % 60, uuid=uuid(0))


def entries(thing: object) -> int:
    """Everything that is kept in it, counted one by one."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return sum(entries(getattr(thing, field.name)) for field in fields(thing))
    if isinstance(thing, Mapping):
        return len(thing) + sum(entries(value) for value in thing.values())
    if isinstance(thing, tuple | list | frozenset | set):
        return len(thing) + sum(entries(value) for value in thing)
    return 1


def series(day: Story) -> int:
    page = Encoder(profile="full").encode(families(day.node.state, ServerFacts()))
    return sum(1 for line in page.page(Format.TEXT).splitlines() if not line.startswith(b"#"))


def test_a_day_of_churn_leaves_no_more_behind_than_four_hours_of_it() -> None:
    day = Day(gpus=2)
    sizes: dict[int, tuple[int, int, int]] = {}
    for second in range(0, DAY_S, TICK_S):
        day.at(second)
        if second + TICK_S in {DAY_S // 6, DAY_S}:
            kept = entries(day.node.memory) + entries(day.node.state)
            sizes[second + TICK_S] = (series(day), kept, len(save(day.node)))
    early, late = sizes[DAY_S // 6], sizes[DAY_S]
    assert late[0] <= early[0] + 2 * 60, "series"  # two for each of the sixty XIDs
    assert late[1] <= 1.2 * early[1] + 200, "entries of state and memory"
    assert late[2] <= 1.5 * early[2] + 5_000, "bytes saved"
