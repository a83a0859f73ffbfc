# SPDX-License-Identifier: Apache-2.0
"""Conditions on what GPUs wait for: storage, host, fabric, each other."""

from typing import Final

from gpufeed.alerting.define import Condition, Example, ExampleSeries, Inhibit, Matcher, Ratio, Select
from gpufeed.alerting.table.examples import (
    GPU,
    HOUR_S,
    MINUTE_S,
    NFS,
    fires,
    planned,
    series,
    silent,
)
from gpufeed.alerting.table.names import STARVING
from gpufeed.alerting.table.shares import WORKING, shares, state_seconds

_WAITED: Final = "{value:percent} of the time they had work in the last 30 minutes."


def _waiting(cause: str) -> Ratio:
    """Share of the working time of the node's GPUs that they waited for a layer."""
    return Ratio(numerator=shares(Matcher("state", "=", "starved"), Matcher("cause", "=", cause)), denominator=WORKING)


def _waits(cause: str, planned_event: str) -> tuple[Example, ...]:
    """A quarter, a sixteenth, much until an hour ago, and a planned event of two minutes."""
    return (
        fires(
            "a quarter of the time",
            "ticket",
            state_seconds("starved", cause, "0+15x70"),
            state_seconds("busy", "tensor", "0+45x70"),
            at_s=3600,
        ),
        silent(
            "a sixteenth of the time",
            state_seconds("starved", cause, "0+3.75x70"),
            state_seconds("busy", "tensor", "0+56.25x70"),
            at_s=3600,
        ),
        silent(
            "much waiting until ten minutes ago, none now",
            state_seconds("starved", cause, "0+30x30 900x70"),
            state_seconds("busy", "tensor", "0+30x30 960+60x70"),
            at_s=2400,
        ),
        planned(
            planned_event,
            state_seconds("starved", cause, "0x30 60 120x60"),
            state_seconds("busy", "tensor", "0+60x30 1800 1800+60x60"),
            at_s=2100,
        ),
    )


GPU_STARVED_BY_STORAGE: Final = Condition(
    name="GpuStarvedByStorage",
    series=_waiting("storage"),
    statistic="rate",
    window_s=30 * MINUTE_S,
    short_window_s=5 * MINUTE_S,
    threshold=0.1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="storage",
    action="investigate",
    summary="GPUs wait for storage {value:percent} of their working time",
    description=f"The GPUs of this node waited for storage {_WAITED}",
    examples=_waits("storage", "an NFS server fails over in two minutes"),
)

GPU_STARVED_BY_HOST_CPU: Final = Condition(
    name="GpuStarvedByHostCpu",
    series=_waiting("host_cpu"),
    statistic="rate",
    window_s=30 * MINUTE_S,
    short_window_s=5 * MINUTE_S,
    threshold=0.1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="host",
    action="app",
    summary="GPUs wait for the processors {value:percent} of their working time",
    description=f"The GPUs of this node waited for data that its processors still prepare, {_WAITED}",
    examples=_waits("host_cpu", "packages are upgraded for two minutes"),
)

GPU_STARVED_BY_FABRIC: Final = Condition(
    name="GpuStarvedByFabric",
    series=_waiting("fabric"),
    statistic="rate",
    window_s=30 * MINUTE_S,
    short_window_s=5 * MINUTE_S,
    threshold=0.1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="fabric",
    action="investigate",
    summary="GPUs wait for the cluster interconnect {value:percent} of their working time",
    description=f"The GPUs of this node waited for a saturated or degraded cluster interconnect {_WAITED}",
    examples=_waits("fabric", "a spine switch reboots: two minutes"),
)

JOB_HANG_SUSPECTED: Final = Condition(
    name="JobHangSuspected",
    series=_waiting("peer"),
    statistic="rate",
    window_s=10 * MINUTE_S,
    threshold=0.97,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="job",
    action="app",
    summary="All GPUs at work on this node wait for a peer",
    description="For 10 minutes the GPUs at work on this node have spent {value:percent} of the time inside a "
    "collective in which nothing moves: some rank of the job does not take part. "
    "Libraries give up after 10 to 30 minutes.",
    inhibits=(Inhibit(targets=tuple(name for name in STARVING if name != "JobHangSuspected")),),
    examples=(
        fires(
            "nothing but waiting",
            "ticket",
            state_seconds("starved", "peer", "0x4 0+60x40"),
            state_seconds("busy", "tensor", "0+60x4 240x40"),
            at_s=1800,
        ),
        silent(
            "half of the time",
            state_seconds("starved", "peer", "0+30x40"),
            state_seconds("busy", "tensor", "0+30x40"),
            at_s=1800,
        ),
        planned(
            "a peer node is swapped out and the job goes on after eight minutes",
            state_seconds("starved", "peer", "0x9 0+60x8 480x40"),
            state_seconds("busy", "tensor", "0+60x9 540x8 600+60x40"),
            at_s=1200,
        ),
    ),
)

STRAGGLER_GPU: Final = Condition(
    name="StragglerGpu",
    series=Select(metric="gpufeed_gpu_straggler_score"),
    statistic="mean",
    window_s=10 * MINUTE_S,
    threshold=0.25,
    for_s=10 * MINUTE_S,
    severity="info",
    layer="gpu",
    action="investigate",
    summary="The other GPUs of its job wait for GPU {gpu}",
    description="In {value:percent} of the last 10 minutes the other GPUs of the job waited for a peer and "
    "GPU {gpu} ({uuid}) did not. Unequal work by design looks the same.",
    examples=(
        fires("half of the time", "info", series("gpu_straggler_score", "0.5x60", **GPU), at_s=1800),
        silent("an eighth of the time: normal", series("gpu_straggler_score", "0.125x60", **GPU), at_s=1800),
        planned(
            "a checkpoint written by one rank: five minutes",
            series("gpu_straggler_score", "0x9 1x4 0x60", **GPU),
            at_s=1200,
        ),
    ),
)

GPU_HELD_IDLE: Final = Condition(
    name="GpuHeldIdle",
    series=Select(
        metric="gpufeed_gpu_state_seconds_total",
        matchers=(Matcher("state", "=", "idle_held"),),
        without=("gpu_instance", "compute_instance", "state", "cause"),
    ),
    statistic="rate",
    window_s=HOUR_S,
    comparison=">=",
    threshold=0.99,
    for_s=HOUR_S,
    severity="ticket",
    layer="job",
    action="app",
    summary="GPU {gpu} has been held and idle for two hours",
    description="For two hours a job has held GPU {gpu} ({uuid}) and done nothing with it: "
    "no kernels, no reads, no copies, no processor time.",
    examples=(
        fires("a notebook left open", "ticket", state_seconds("idle_held", "", "0+60x200"), at_s=10_800),
        silent("half of the time", state_seconds("idle_held", "", "0+30x200"), at_s=10_800),
        planned(
            "a job waits an hour and a half for its node to be whole again",
            state_seconds("idle_held", "", "0x9 0+60x90 5400x200"),
            at_s=7200,
        ),
    ),
)


def _storage(check: str, values: str) -> ExampleSeries:
    return series("storage_health", values, **NFS, check=check)


STORAGE_ERRORS: Final = Condition(
    name="StorageErrors",
    series=Select(
        metric="gpufeed_storage_health",
        matchers=(Matcher("check", "=~", "timeouts|errors"),),
        without=("check",),
    ),
    comparison=">=",
    threshold=1,
    for_s=5 * MINUTE_S,
    severity="ticket",
    layer="storage",
    action="investigate",
    summary="{kind} {target} does not answer, or answers with errors",
    description="Requests to {kind} {target} ran out of retries or ended with an error within the last 15 minutes. "
    "Tasks that wait for them cannot be killed.",
    inhibits=(Inhibit(targets=("GpuStarvedByStorage",)),),
    examples=(
        fires("an NFS server that does not answer", "ticket", _storage("timeouts", "0x4 1x30"), at_s=900),
        silent("all requests are answered", _storage("timeouts", "0x30"), _storage("errors", "0x30"), at_s=900),
        planned(
            "an NFS server fails over: requests wait, none runs out of retries", _storage("timeouts", "0x60"), at_s=1800
        ),
    ),
)

HOST_MEMORY_PRESSURE: Final = Condition(
    name="HostMemoryPressure",
    series=Select(
        metric="gpufeed_pressure_waiting_seconds_total",
        matchers=(Matcher("resource", "=", "memory"),),
        without=("resource",),
    ),
    statistic="rate",
    window_s=15 * MINUTE_S,
    threshold=0.1,
    for_s=15 * MINUTE_S,
    severity="ticket",
    layer="host",
    action="app",
    summary="Tasks of this node wait for memory {value:percent} of the time",
    description="In {value:percent} of the last 15 minutes some task of this node waited for memory. "
    "Loaders slow down first; then the kernel ends a process.",
    examples=(
        fires(
            "a quarter of the time",
            "ticket",
            series("pressure_waiting_seconds_total", "0+15x60", resource="memory"),
            at_s=2400,
        ),
        silent(
            "a full page cache, and nobody waits",
            series("pressure_waiting_seconds_total", "0+0.25x60", resource="memory"),
            at_s=2400,
        ),
        planned(
            "a job starts and fills memory within two minutes",
            series("pressure_waiting_seconds_total", "0x9 60 120x60", resource="memory"),
            at_s=1800,
        ),
    ),
)

CONDITIONS: Final = (
    GPU_STARVED_BY_STORAGE,
    GPU_STARVED_BY_HOST_CPU,
    GPU_STARVED_BY_FABRIC,
    JOB_HANG_SUSPECTED,
    STRAGGLER_GPU,
    GPU_HELD_IDLE,
    STORAGE_ERRORS,
    HOST_MEMORY_PRESSURE,
)
