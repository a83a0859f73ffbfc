# SPDX-License-Identifier: Apache-2.0
"""Every input there is: where it stands, and what a node cannot say without it. Texts for the doctor."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Area = Literal["GPUs", "Jobs", "Storage", "Fabric", "Host"]
AREAS: Final[tuple[Area, ...]] = ("GPUs", "Jobs", "Storage", "Fabric", "Host")


class InputDef(NamedTuple):
    """An input. `without`: what is lost where it cannot be read, as the end of a sentence."""

    area: Area
    source: str
    without: str


INPUTS: Final[Mapping[str, InputDef]] = MappingProxyType(
    {
        "nvml": InputDef("GPUs", "libnvidia-ml.so.1", "nothing is known of any GPU"),
        "pci": InputDef("GPUs", "/sys/bus/pci", "a GPU that fell off its bus is not missed; no card is near a GPU"),
        "utilization": InputDef("GPUs", "nvmlDeviceGetUtilizationRates", "busy and waiting cannot be told apart"),
        "gpm": InputDef("GPUs", "GPM, since Hopper", "a kernel that spins is told from a busy one by power alone"),
        "memory": InputDef("GPUs", "nvmlDeviceGetMemoryInfo_v2", "that a GPU is held is told from processes alone"),
        "power": InputDef("GPUs", "NVML", "no power; without GPM no spinning kernel either"),
        "energy": InputDef("GPUs", "NVML", "no energy"),
        "temperature": InputDef("GPUs", "NVML", "no temperature"),
        "temperature_margin": InputDef("GPUs", "NVML, since Ada", "how far it is from being throttled is not known"),
        "clocks": InputDef("GPUs", "NVML", "a GPU held down is told from one at full clock by its reasons alone"),
        "clock_events": InputDef("GPUs", "NVML", "throttling is not seen"),
        "ecc": InputDef("GPUs", "NVML", "memory errors are not counted"),
        "memory_repair": InputDef("GPUs", "NVML", "rows and pages taken out of use are not counted"),
        "sram_status": InputDef("GPUs", "NVML, root", "whether the SRAM error threshold was passed is not known"),
        "pcie_bytes": InputDef("GPUs", "NVML fields 197, 198", "copies to the GPU are not seen where there is no GPM"),
        "pcie_errors": InputDef("GPUs", "NVML fields 169 to 183", "errors of the PCIe link are not counted"),
        "c2c": InputDef("GPUs", "NVML, Grace boards", "the link to the Grace processor is not seen"),
        "fabric": InputDef("GPUs", "NVML, NVSwitch systems", "whether it has joined the NVLink fabric is not known"),
        "nvlink": InputDef("GPUs", "NVML", "exchanges between GPUs are not seen"),
        "nvlink_errors": InputDef("GPUs", "NVML", "errors of NVLinks are not counted"),
        "processes": InputDef("GPUs", "NVML", "which job holds a GPU is not known"),
        "xid": InputDef("GPUs", "NVML events", "XIDs are not seen, but for those in the kernel log"),
        "kernel_log": InputDef("GPUs", "/dev/kmsg", "XIDs of a GPU that is lost or hung are not seen"),
        "allocations": InputDef("Jobs", "Slurm, kubelet", "a GPU given to a job that does not use it looks free"),
        "job_owners": InputDef("Jobs", "/proc/PID/cgroup", "no GPU belongs to any job"),
        "job_files": InputDef("Jobs", "/proc/PID/fd, other users'", "which storage a job reads is not known"),
        "job_reports": InputDef("Jobs", "jobs.reports_dir, report_socket", "what jobs say of themselves is not seen"),
        "job_pressure": InputDef("Jobs", "cgroup pressure", "waits are told from the whole node's pressure"),
        "job_reads": InputDef("Jobs", "/proc/PID/io, other users'", "what each job reads is not counted"),
        "pod_names": InputDef("Jobs", "kubelet, /var/log/pods", "pods have UIDs in place of names"),
        "task_states": InputDef("Jobs", "/proc/PID/task", "threads that wait for storage, and full ones, are not seen"),
        "block": InputDef("Storage", "/proc/diskstats", "local disks are not seen"),
        "nfs": InputDef("Storage", "/proc/1/mountstats", "NFS is not seen"),
        "lustre": InputDef("Storage", "llite, osc", "Lustre is not seen"),
        "gpfs": InputDef("Storage", "mmpmon", "GPFS is not seen"),
        "beegfs": InputDef("Storage", "none", "BeeGFS is not measured; a wait for it is told from tasks alone"),
        "ceph": InputDef("Storage", "debugfs", "CephFS is not measured; a wait for it is told from tasks alone"),
        "weka": InputDef("Storage", "none", "Weka is not measured; a wait for it is told from tasks alone"),
        "fuse": InputDef("Storage", "/sys/fs/fuse", "FUSE is not measured; a wait for it is told from tasks alone"),
        "gds": InputDef("Storage", "nvidia-fs", "reads straight into GPU memory are not seen"),
        "infiniband": InputDef("Fabric", "/sys/class/infiniband", "exchanges with other nodes are not seen"),
        "ethernet": InputDef("Fabric", "/sys/class/net", "network interfaces are not seen"),
        "ethtool": InputDef("Fabric", "SIOCETHTOOL", "pauses and back-pressure of an interface are not seen"),
        "pressure": InputDef("Host", "/proc/pressure", "waits for host resources are told from tasks alone"),
        "host": InputDef("Host", "/proc/stat, /proc/meminfo", "the host's processors and memory are not seen"),
    }
)  # fmt: skip
"""By the name that a source says."""
