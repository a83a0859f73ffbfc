# SPDX-License-Identifier: Apache-2.0
"""The job dashboard: why a job is slow. GPUs, storage and ports are the job's by joins with the info series."""

from typing import Final

from dashboard import dashboard
from panels import Json, Panel
from queries import JOB, LOST, NODE, OWNED, of_job, rate

_OF_JOB: Final = "{{scheduler}} {{job_id}}"
LOST_HERE: Final = f"{NODE}, {LOST}"
STORAGE: Final = (
    f"max by (job, instance, kind, target) (gpufeed_gpu_storage_info{{{NODE}}}"
    f" * on (job, instance, uuid) group_left () {OWNED})"
)
NICS: Final = (
    f'max by (job, instance, device, port) (gpufeed_gpu_nic_info{{{NODE}, path="same_switch"}}'
    f" * on (job, instance, uuid) group_left () {OWNED})"
)
BUSY: Final = f'{NODE}, state="busy"'


def _joined(counter: str, by: str, right: str) -> str:
    return f"sum by (job, instance, {by}) ({rate(counter, NODE)}) * on (job, instance, {by}) group_left () {right}"


NOW: Final = (
    Panel(
        title="GPUs",
        description="GPUs that belong to the jobs chosen.",
        queries=((f"count({OWNED})", "GPUs"),),
        unit="short",
        kind="stat",
        width=6,
        height=4,
    ),
    Panel(
        title="GPU-equivalents lost",
        description="GPUs' worth of time spent starved, throttled or faulty.",
        queries=(
            (
                (
                    f"sum(sum by (job, instance, uuid) ({rate('gpu_state_seconds_total', LOST_HERE)})"
                    f" * on (job, instance, uuid) group_left () {OWNED})"
                ),
                "lost",
            ),
        ),
        unit="short",
        kind="stat",
        width=6,
        height=4,
        thresholds=((None, "#009E73"), (0.5, "#E69F00"), (2, "#D55E00")),
    ),
    Panel(
        title="Where it runs",
        description="GPUs of the jobs chosen. A node leads to its dashboard.",
        queries=((f"gpufeed_gpu_job_info{{{JOB}}}", ""),),
        unit="short",
        kind="table",
        width=12,
        height=4,
        names=(("job_id", "Job"), ("instance", "Node"), ("gpu", "GPU"), ("step", "Step"), ("k8s_pod", "Pod")),
        link=("instance", "node", "instance"),
    ),
)

WHY: Final = (
    Panel(
        title="Where the job's GPU time goes",
        description="GPUs by state and cause, of the jobs chosen.",
        queries=(
            (f"sum by (state, cause) ({of_job('gpu_state_seconds_total', 'state, cause')})", "{{state}} {{cause}}"),
        ),
        unit="short",
        width=24,
        height=10,
        stacked=True,
    ),
    Panel(
        title="Busy share of each GPU",
        description="The one that is busier than all others is the one they wait for.",
        queries=(
            (
                (
                    f"sum by (job, instance, gpu, uuid) ({rate('gpu_state_seconds_total', BUSY)})"
                    f" * on (job, instance, uuid) group_left () {OWNED}"
                ),
                "{{instance}} GPU {{gpu}}",
            ),
        ),
        unit="percentunit",
        maximum=1,
    ),
    Panel(
        title="Busiest thread",
        description="Share of one processor that the job's busiest thread used: 1 is a limit.",
        queries=((f"gpufeed_job_busiest_thread_ratio{{{JOB}}}", _OF_JOB),),
        unit="percentunit",
        maximum=1,
    ),
)

FEED: Final = (
    Panel(
        title="Storage it uses: read", description="Bytes from the targets it has files open on, by all of the node.",
        queries=((_joined("storage_read_bytes_total", "kind, target", STORAGE), "{{instance}} {{kind}} {{target}}"),),
        unit="Bps",
    ),
    Panel(
        title="Ports beside its GPUs: receive", description="Bytes through the fabric ports on the switch of its GPUs.",
        queries=((_joined("ib_port_receive_bytes_total", "device, port", NICS), "{{instance}} {{device}}:{{port}}"),),
        unit="Bps",
    ),
    Panel(
        title="Read by the job", description="Bytes that its read calls gave, cache included; from block devices.",
        queries=((rate("job_read_call_bytes_total", JOB), f"{_OF_JOB} calls"),
                 (rate("job_block_read_bytes_total", JOB), f"{_OF_JOB} devices")),
        unit="Bps",
    ),
    Panel(
        title="Pressure", description="Share of time in which some task of the job waited for this resource.",
        queries=((rate("job_pressure_waiting_seconds_total", JOB), f"{_OF_JOB} {{{{resource}}}}"),),
        unit="percentunit", maximum=1,
    ),
    Panel(
        title="Processors", description="Processors' worth of time used, and withheld by its limit.",
        queries=((rate("job_cpu_seconds_total", JOB), f"{_OF_JOB} used"),
                 (rate("job_cpu_throttled_seconds_total", JOB), f"{_OF_JOB} withheld")),
        unit="short",
    ),
    Panel(
        title="Threads", description="Threads of the job by what they do; blocked ones mostly wait for storage.",
        queries=((f"gpufeed_job_threads{{{JOB}}}", f"{_OF_JOB} {{{{state}}}}"),), unit="short",
    ),
)  # fmt: skip


def job() -> Json:
    """The dashboard's JSON."""
    return dashboard(
        "job", "Job", "Why is my job slow?",
        (("Now", NOW), ("Why", WHY), ("What feeds it", FEED)), ("job_id",),
    )  # fmt: skip
