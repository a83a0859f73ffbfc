# SPDX-License-Identifier: Apache-2.0
"""Whose the GPUs are. Rows to join with: they multiply nothing by themselves."""

from functools import partial
from typing import Final

from gpufeed.catalogue.define import GPU_LABELS, MetricDef

TITLE: Final = "Jobs"

OWNED_LABELS: Final = (*GPU_LABELS, "gpu_instance")
"""A job has a board or a GPU instance of it, whatever compute instances that has."""

_info = partial(MetricDef, type="info", unit="info", collector="jobs", profile="default")

GPU_JOB_INFO = _info(
    name="gpufeed_gpu_job_info",
    help="The job whose processes hold the GPU: one row per uuid and gpu_instance, gone with the last process. "
    "shared: of several jobs; then only what they have in common is filled in. user: only where jobs.user_label is on.",
    labels=(
        *OWNED_LABELS, "scheduler", "job_id", "step", "k8s_namespace", "k8s_pod", "k8s_container", "shared", "user",
    ),
    source="/proc/PID/cgroup; names of pods from /var/log/pods",
)  # fmt: skip

GPU_STORAGE_INFO = _info(
    name="gpufeed_gpu_storage_info",
    help="Storage on which the processes of the GPU's job have had files open. Several rows: the left side of a join.",
    labels=(*OWNED_LABELS, "kind", "target"),
    source="/proc/PID/fd, /proc/PID/mountinfo",
)

GPU_NIC_INFO = _info(
    name="gpufeed_gpu_nic_info",
    help="The fabric ports nearest to the GPU, two at most, and the way there. Several rows: the left side of a join.",
    labels=(*GPU_LABELS, "device", "port", "netdev", "path"),
    source="/sys/class/infiniband, /sys/bus/pci",
)

GPU_ALLOCATED = MetricDef(
    name="gpufeed_gpu_allocated",
    type="gauge",
    unit="boolean",
    help="1: Slurm or the kubelet has given the GPU to a job, whether or not a process is there. 0: to none, as far as "
    "all of them tell.",
    labels=GPU_LABELS,
    source="cgroup devices, SLURM_JOB_GPUS, the kubelet's checkpoint",
    profile="default",
    collector="jobs",
)

JOB_LABELS: Final = ("scheduler", "job_id", "step", "k8s_namespace", "k8s_pod")
"""As in gpufeed_gpu_job_info, which stands left in a join with what follows."""

_job = partial(MetricDef, collector="jobs", labels=JOB_LABELS, profile="default", sheds="detail")

JOB_PRESSURE_WAITING_SECONDS_TOTAL = _job(
    name="gpufeed_job_pressure_waiting_seconds_total",
    type="counter",
    unit="seconds",
    help="Time in which some task of a job with GPUs waited for the resource.",
    labels=(*JOB_LABELS, "resource"),
    source="*.pressure of the step's or pod's cgroup, the some line",
)

JOB_PRESSURE_STALLED_SECONDS_TOTAL = _job(
    name="gpufeed_job_pressure_stalled_seconds_total",
    type="counter",
    unit="seconds",
    help="Time in which all tasks of a job with GPUs that were not idle waited for the resource.",
    labels=(*JOB_LABELS, "resource"),
    source="*.pressure of the step's or pod's cgroup, the full line",
)

JOB_CPU_SECONDS_TOTAL = _job(
    name="gpufeed_job_cpu_seconds_total",
    type="counter",
    unit="seconds",
    help="Processor time of a job with GPUs.",
    source="cpu.stat usage_usec",
)

JOB_CPU_THROTTLED_SECONDS_TOTAL = _job(
    name="gpufeed_job_cpu_throttled_seconds_total",
    type="counter",
    unit="seconds",
    help="Time for which a quota kept tasks of the job from running, added up over its cgroups that have one.",
    source="cpu.stat throttled_usec",
)

JOB_CPU_THROTTLED_PERIODS_TOTAL = _job(
    name="gpufeed_job_cpu_throttled_periods_total",
    type="counter",
    unit="count",
    help="Periods in which a quota of the job was used up.",
    source="cpu.stat nr_throttled",
)

JOB_READ_CALL_BYTES_TOTAL = _job(
    name="gpufeed_job_read_call_bytes_total",
    type="counter",
    unit="bytes",
    help="Bytes that read calls of the job's processes returned: from page cache, pipes and network file systems too.",
    source="/proc/PID/io rchar",
)

JOB_BLOCK_READ_BYTES_TOTAL = _job(
    name="gpufeed_job_block_read_bytes_total",
    type="counter",
    unit="bytes",
    help="Bytes fetched from block devices for the job's processes. Reads from network file systems are not in it.",
    source="/proc/PID/io read_bytes",
)

JOB_CONTEXT_SWITCHES_TOTAL = _job(
    name="gpufeed_job_context_switches_total",
    type="counter",
    unit="count",
    help="Times threads of the job left their processor, as far as each was read last. voluntary: they waited for "
    "something; involuntary: others wanted it.",
    labels=(*JOB_LABELS, "kind"),
    source="/proc/PID/task/TID/status",
)

JOB_THREADS = _job(
    name="gpufeed_job_threads",
    type="gauge",
    unit="count",
    help="Threads of the job by what they do: running, blocked (uninterruptible, mostly in input or output), other.",
    labels=(*JOB_LABELS, "state"),
    source="/proc/PID/task/*/stat",
)

JOB_BUSIEST_THREAD_RATIO = _job(
    name="gpufeed_job_busiest_thread_ratio",
    type="gauge",
    unit="ratio",
    help="Share of one processor that the job's busiest thread used: near 1, that thread is what the job waits for.",
    source="/proc/PID/task/*/stat",
)

JOB_MODEL_FLOPS_TOTAL = _job(
    name="gpufeed_job_model_flops_total",
    type="counter",
    unit="count",
    help="Floating-point operations of the job's model, as its processes on this node report them.",
    source="reports of the job",
)

JOB_MODEL_FLOPS_UTILIZATION_RATIO = _job(
    name="gpufeed_job_model_flops_utilization_ratio",
    type="gauge",
    unit="ratio",
    help="Reported model FLOPs (MFU) over the peak of the job's GPUs on this node, of the last half minute or more.",
    source="reports of the job, published peaks",
)

JOB_DATA_WAIT_SECONDS_TOTAL = _job(
    name="gpufeed_job_data_wait_seconds_total",
    type="counter",
    unit="seconds",
    help="Time that the job's processes on this node report to have waited for data, added up over them.",
    source="reports of the job",
)

JOB_REPORTS_REFUSED_TOTAL = MetricDef(
    name="gpufeed_job_reports_refused_total",
    type="counter",
    unit="count",
    help="Reports that were not believed, by reason. Counted anew with every probe.",
    labels=("reason",),
    source="jobs.reports_dir, jobs.report_socket",
    profile="default",
    collector="jobs",
)
