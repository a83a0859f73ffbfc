# SPDX-License-Identifier: Apache-2.0
"""Every parser of bytes, with the names of files that it reads, and what its answers must be like."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from gpufeed.errors import ParseError
from gpufeed.parse.beegfs import parse_management_host
from gpufeed.parse.ceph import parse_ceph_metrics
from gpufeed.parse.cgroup import parse_cgroup, parse_cgroup_procs
from gpufeed.parse.cgroup_cpu import parse_cgroup_cpu
from gpufeed.parse.cgroup_job import job_of, pod_of_mounts
from gpufeed.parse.cpu_stat import parse_cpu_stat
from gpufeed.parse.diskstats import leaf_disks, parse_diskstats
from gpufeed.parse.ethernet import parse_operstate, parse_speed
from gpufeed.parse.ethtool import parse_ethtool_text, sort_statistics
from gpufeed.parse.infiniband import parse_data_words, parse_lid, parse_node_guid, parse_rate, parse_state
from gpufeed.parse.lustre import parse_lustre_stats
from gpufeed.parse.meminfo import parse_meminfo
from gpufeed.parse.mmpmon import parse_mmpmon
from gpufeed.parse.mountinfo import parse_mountinfo
from gpufeed.parse.mountstats import parse_mountstats
from gpufeed.parse.number import MAX_COUNT, parse_count, parse_float
from gpufeed.parse.nvidia_fs import parse_gds_stats
from gpufeed.parse.passwd import parse_users
from gpufeed.parse.pods import parse_checkpoint
from gpufeed.parse.pressure import parse_pressure
from gpufeed.parse.process_io import parse_process_io
from gpufeed.parse.slurm import parse_device_minors, parse_slurm_environ
from gpufeed.parse.task_stat import parse_task_stat
from gpufeed.parse.task_status import parse_cpus_allowed, parse_switches, parse_user_id

SEEDS: Mapping[str, bytes] = {
    "cgroup_procs": b"1\n0\n4711\n",
    "cgroup_cpu": b"usage_usec 10\nuser_usec 8\nsystem_usec 2\nnr_periods 5\nnr_throttled 1\nthrottled_usec 9\n",
    "cgroup_cpu_v1": b"nr_periods 5\nnr_throttled 1\nthrottled_time 1000000\n",
    "checkpoint": b'{"Data":{"PodDeviceEntries":[{"PodUID":"u","ResourceName":"nvidia.com/gpu",'
    b'"DeviceIDs":{"0":["GPU-1::2"]}}],"RegisteredDevices":{"nvidia.com/gpu":["GPU-1"]}},"Checksum":1}',
    "cpu_stat": b"cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\nprocs_blocked 2\n",
    "devices": b"c 195:0 rw\nc 195:255 rw\nb *:* m\na *:* rwm\n",
    "environ": b"HOME=/\0SLURM_JOB_ID=5\0SLURM_JOB_GPUS=0-3,5\0",
    "ethtool": b"NIC statistics:\n     rx_prio3_pause_duration: 5\n     outbound_pci_stalled_rd: 7\n [0]: rx: 1\n",
    "io": b"rchar: 5\nwchar: 6\nread_bytes: 7\ncancelled_write_bytes: -8\n",
    "management": b"sysMgmtdHost = storage1\nconnMgmtdPort = 8008\n",
    "meminfo": b"MemTotal:       1056000000 kB\nMemFree: 5 kB\nMemAvailable:    5 kB\n",
    "mmpmon": b"_fs_io_s_ _n_ 10.0.0.1 _nn_ n1 _rc_ 0 _t_ 1 _tu_ 2 _cl_ c _fs_ gpfs1 _d_ 4 _br_ 5 _bw_ 6 _oc_ 7 _cc_ 8"
    b" _rdc_ 9 _wc_ 10 _dir_ 11 _iu_ 12\n",
    "passwd": b"root:x:0:0:root:/root:/bin/sh\nada:x:5:5::/:/\n",
    "task_stat": b"77 (a (b) c) D 1 77 77 0 -1 4194560 1 2 3 4 500 60 7 8 20 0 4 0 9999 1 2 3 4 5 6 7 8 9 10 11\n",
    "task_status": b"Name:\tx\nUid:\t5\t5\t5\t5\nCpus_allowed:\tff,ffffffff\nvoluntary_ctxt_switches:\t3\n"
    b"nonvoluntary_ctxt_switches:\t4\n",
    "number": b"18446744073709551615\n",
    "float": b"1.5e3\n",
    "speed": b"100000\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parser. `files`: ends of the paths whose contents it is for; `seed`: keys of SEEDS."""

    parse: Callable[[bytes], object]
    files: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()


TARGETS: Mapping[str, Target] = {
    "mountstats": Target(parse=parse_mountstats, files=("/mountstats",)),
    "mountinfo": Target(parse=lambda data: pod_of_mounts(parse_mountinfo(data).rows), files=("/mountinfo",)),
    "diskstats": Target(parse=lambda data: leaf_disks(parse_diskstats(data).rows), files=("/diskstats",)),
    "lustre": Target(parse=parse_lustre_stats, files=("/stats",)),
    "gds": Target(parse=parse_gds_stats, files=("nvidia-fs/stats",)),
    "ceph": Target(parse=parse_ceph_metrics, files=("/metrics", "/latency", "/size")),
    "pressure": Target(parse=parse_pressure, files=("pressure/cpu", "pressure/io", "pressure/irq")),
    "cgroup": Target(parse=lambda data: job_of(parse_cgroup(data)), files=("/cgroup",)),
    "rate": Target(parse=parse_rate, files=("/rate",)),
    "state": Target(parse=parse_state, files=("/state", "/phys_state")),
    "guid": Target(parse=parse_node_guid, files=("/node_guid",)),
    "lid": Target(parse=parse_lid, files=("/lid",)),
    "words": Target(parse=parse_data_words, files=("/port_rcv_data", "/port_xmit_data")),
    "operstate": Target(parse=parse_operstate, files=("/operstate",)),
    "speed": Target(parse=parse_speed, files=("/speed",), seeds=("speed",)),
    "count": Target(parse=parse_count, files=("/carrier", "/symbol_error"), seeds=("number",)),
    "float": Target(parse=lambda data: abs(parse_float(data) or 0.0), seeds=("float",)),
    "ethtool": Target(parse=lambda data: sort_statistics(parse_ethtool_text(data).rows), seeds=("ethtool",)),
    "mmpmon": Target(parse=parse_mmpmon, seeds=("mmpmon",)),
    "cgroup_procs": Target(parse=parse_cgroup_procs, seeds=("cgroup_procs",)),
    "cgroup_cpu": Target(parse=parse_cgroup_cpu, seeds=("cgroup_cpu", "cgroup_cpu_v1")),
    "checkpoint": Target(parse=parse_checkpoint, seeds=("checkpoint",)),
    "cpu_stat": Target(parse=lambda data: parse_cpu_stat(data, 100), seeds=("cpu_stat",)),
    "devices": Target(parse=parse_device_minors, seeds=("devices",)),
    "environ": Target(parse=parse_slurm_environ, seeds=("environ",)),
    "io": Target(parse=parse_process_io, seeds=("io",)),
    "management": Target(parse=parse_management_host, seeds=("management",)),
    "meminfo": Target(parse=parse_meminfo, seeds=("meminfo",)),
    "passwd": Target(parse=parse_users, seeds=("passwd",)),
    "task_stat": Target(parse=lambda data: parse_task_stat(data, 100), seeds=("task_stat",)),
    "cpus_allowed": Target(parse=parse_cpus_allowed, seeds=("task_status",)),
    "switches": Target(parse=parse_switches, seeds=("task_status",)),
    "user": Target(parse=parse_user_id, seeds=("task_status",)),
}


def fault(target: Target, data: bytes) -> str | None:
    """What is wrong with the answer to `data`; None where it is a value or a ParseError, as it must be."""
    try:
        answer = target.parse(data)
    except ParseError:
        return None
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"raises {type(error).__name__}: {error}"
    return unfit(answer)


def unfit(value: object) -> str | None:
    """Why a value may not cross the wire or stand on the page."""
    if value is None or isinstance(value, bool | bytes):
        return None
    if isinstance(value, int | float):
        is_fit = 0 <= value < math.inf and not (isinstance(value, int) and value > MAX_COUNT)
        return None if is_fit else f"holds {value}"
    if isinstance(value, str):
        return None if _is_clean(value) else f"holds text {value!r}"
    parts = _parts(value)
    if parts is None:
        return f"holds a {type(value).__name__}"
    return next((wrong for part in parts if (wrong := unfit(part)) is not None), None)


def _parts(value: object) -> Iterable[object] | None:
    if isinstance(value, ParseError):
        return (str(value),)
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


def _is_clean(text: str) -> bool:
    """Valid UTF-8 without control characters."""
    is_text = all(ord(letter) >= 0x20 and not 0x7F <= ord(letter) < 0xA0 for letter in text)
    return is_text and text.encode("utf-8", "replace").decode() == text
