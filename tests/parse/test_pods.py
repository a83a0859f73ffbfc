# SPDX-License-Identifier: Apache-2.0
"""What the kubelet's files say of pods."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.parse.pods import (
    ContainerLog,
    GivenDevices,
    PodFolder,
    container_of_log,
    parse_checkpoint,
    pod_of_folder,
)

UID = "9493223b-520e-4a97-a45f-359dcf967006"
STATIC = "2f7b1c0d9e8a4b6c8d1e2f3a4b5c6d7e"
ID = "25d0" * 16


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"research_training-0_{UID}", PodFolder(uid=UID, namespace="research", pod="training-0")),
        (
            f"kube-system_etcd-node.example_{STATIC}",
            PodFolder(uid=STATIC, namespace="kube-system", pod="etcd-node.example"),
        ),
        ("research_training-0", None),
        (f"Research_training-0_{UID}", None),
        ("lost+found", None),
    ],
)
def test_a_folder_is_called_after_its_pod(name: str, expected: PodFolder | None) -> None:
    assert pod_of_folder(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            f"training-0_research_main-loop-{ID}.log",
            ContainerLog(container_id=ID, namespace="research", pod="training-0", container="main-loop"),
        ),
        (f"training-0_research_main-{ID}", None),
        (f"training-0_research_main-{ID[1:]}.log", None),
    ],
)
def test_a_log_is_called_after_its_container(name: str, expected: ContainerLog | None) -> None:
    assert container_of_log(name) == expected


def checkpoint(*entries: dict[str, Any] | None, registered: Any = None) -> bytes:
    return json.dumps(
        {"Data": {"PodDeviceEntries": list(entries), "RegisteredDevices": registered}, "Checksum": 7}
    ).encode()


def entry(uid: str, devices: Any, resource: str = "nvidia.com/gpu") -> dict[str, Any]:
    return {"PodUID": uid, "ContainerName": "main", "ResourceName": resource, "DeviceIDs": devices, "AllocResp": "Cg=="}


def test_gpus_are_read_by_pod_in_the_form_of_every_version() -> None:
    data = checkpoint(
        entry("a", {"0": ["GPU-1"], "1": ["GPU-2"], "-1": None}),
        entry("b", ["GPU-3"]),  # before 1.20
        entry("a", {"0": ["GPU-4"]}),  # another container of the pod
        entry("c", {"0": ["GPU-5::1"]}),  # a share
        entry("d", {"0": ["MIG-6"]}, "nvidia.com/mig-1g.10gb"),
        entry("e", {"0": ["what"]}),
        entry("f", None),
        entry("g", {"0": ["GPU-7"]}, "amd.com/gpu"),
        registered={"nvidia.com/gpu": ["GPU-1"], "hugepages": None},
    )
    assert parse_checkpoint(data) == GivenDevices(
        pods={"a": ("GPU-1", "GPU-2", "GPU-4"), "b": ("GPU-3",), "c": ("GPU-5",), "d": ("MIG-6",)}, has_gpus=True
    )


@pytest.mark.parametrize("data", [b'{"Data": {}}', checkpoint(registered={"cpu": []}), checkpoint()])
def test_a_kubelet_that_gives_no_gpus_away_says_nothing_of_them(data: bytes) -> None:
    assert parse_checkpoint(data) == GivenDevices(pods={}, has_gpus=False)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"Data": 1}', checkpoint(None), b"\xff", b"[" * 100_000])
def test_what_is_no_checkpoint_is_an_error(data: bytes) -> None:
    with pytest.raises(ParseError, match="kubelet"):
        parse_checkpoint(data)


@given(st.binary(max_size=80), st.integers(0, 200))
def test_any_bytes_give_devices_or_an_error(data: bytes, at: int) -> None:
    whole = checkpoint(entry("a", {"0": ["GPU-1"]}))
    for text in (data, whole[:at] + data + whole[at:]):
        try:
            parse_checkpoint(text)
        except ParseError:
            continue


@given(st.text(max_size=300))
def test_any_name_is_a_pods_or_not(name: str) -> None:
    for read in (pod_of_folder, container_of_log):
        assert read(name) is None or "_" in name
