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
