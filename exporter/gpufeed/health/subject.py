# SPDX-License-Identifier: Apache-2.0
"""What a check is of, in words."""

from gpufeed.model.ids import GpuKey, IbPortKey
from gpufeed.model.state import NodeState, Subject


def kind(subject: Subject) -> str:
    """`gpu`, `ib`, `storage`, `host` or `self`: with the check's name behind a point, what a site calls it."""
    if isinstance(subject, str):
        return subject
    if isinstance(subject, GpuKey):
        return "gpu"
    return "ib" if isinstance(subject, IbPortKey) else "storage"


def named(subject: Subject, state: NodeState) -> str:
    """`GPU 3` rather than its UUID: people count them."""
    if isinstance(subject, str):
        return subject
    if isinstance(subject, GpuKey):
        record = state.gpus.get(subject.uuid)
        board = f"GPU {record.index}" if record is not None else subject.uuid
        return board if subject.gi is None else f"{board} instance {subject.gi}"
    return ":".join(str(getattr(subject, name)) for name in subject.__struct_fields__)
