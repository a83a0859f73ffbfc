# SPDX-License-Identifier: Apache-2.0
"""What the kubelet's own files say of pods: names of log folders, and who was given which device.

Sources: pkg/kubelet/kuberuntime/helpers.go (names of logs), pkg/kubelet/cm/devicemanager/checkpoint.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from gpufeed.errors import ParseError

_UID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}"
_NAMESPACE: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_FOLDER: Final = re.compile(rf"(?P<namespace>{_NAMESPACE})_(?P<pod>{_NAME})_(?P<uid>{_UID})")
_LOG: Final = re.compile(
    rf"(?P<pod>{_NAME})_(?P<namespace>{_NAMESPACE})_(?P<container>{_NAMESPACE})-(?P<id>[0-9a-f]{{64}})\.log"
)
_GPU: Final = re.compile(r"(?P<uuid>(?:GPU|MIG)-[0-9A-Za-z/-]{1,80})(?:::[0-9]{1,4})?")
"""A device that several may share has the number of the share behind it."""

_RESOURCE: Final = "nvidia.com/"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFolder:
    """A pod, as a folder of /var/log/pods is called after it."""

    uid: str
    namespace: str
    pod: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLog:
    """A container, as its file in /var/log/containers is called after it."""

    container_id: str
    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDevices:
    """GPUs that the kubelet has given away, by pod and UUID; pods without any are left out."""

    pods: Mapping[str, tuple[str, ...]]
    has_gpus: bool  # whether it is the kubelet that gives this node's GPUs away


def pod_of_folder(name: str) -> PodFolder | None:
    """Of a folder's name `namespace_pod_uid`; None where it is something else."""
    found = _FOLDER.fullmatch(name)
    return None if found is None else PodFolder(uid=found["uid"], namespace=found["namespace"], pod=found["pod"])


def container_of_log(name: str) -> ContainerLog | None:
    """Of a file's name `pod_namespace_container-id.log`; None where it is something else."""
    found = _LOG.fullmatch(name)
    if found is None:
        return None
    return ContainerLog(
        container_id=found["id"], namespace=found["namespace"], pod=found["pod"], container=found["container"]
    )


class _Entry(Struct):
    PodUID: str = ""
    ResourceName: str = ""
    DeviceIDs: dict[str, list[str] | None] | list[str] | None = None  # before 1.20 not by memory node


class _Data(Struct):
    PodDeviceEntries: list[_Entry] | None = None
    RegisteredDevices: dict[str, Any] | None = None


class _Checkpoint(Struct):
    Data: _Data


def parse_checkpoint(data: bytes) -> GivenDevices:
    """From the checkpoint of the kubelet's device manager. Raises ParseError."""
    try:
        found = msgspec.json.decode(data, type=_Checkpoint).Data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError("a checkpoint of the kubelet's device manager", data[:80], str(error)[:80]) from error
    given: dict[str, dict[str, None]] = {}
    for entry in found.PodDeviceEntries or ():
        if entry.ResourceName.startswith(_RESOURCE):
            uuids = [gpu["uuid"] for device in _devices(entry) if (gpu := _GPU.fullmatch(device)) is not None]
            given.setdefault(entry.PodUID, {}).update(dict.fromkeys(uuids))
    return GivenDevices(
        pods={uid: tuple(gpus) for uid, gpus in given.items() if gpus},
        has_gpus=any(name.startswith(_RESOURCE) for name in found.RegisteredDevices or ()),
    )


def _devices(entry: _Entry) -> list[str]:
    if isinstance(entry.DeviceIDs, dict):
        return [device for devices in entry.DeviceIDs.values() for device in devices or ()]
    return entry.DeviceIDs or []
