# SPDX-License-Identifier: Apache-2.0
"""XIDs: stand as long as the GPU is remembered, whatever becomes of its readings."""

from collections.abc import Iterator

from gpufeed.catalogue import xid
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family
from gpufeed.model.state import NodeState, XidTotals


def families(state: NodeState) -> Iterator[Family]:
    """By class (all of them, from the start), by number, and when last."""
    none = XidTotals(by_class={})
    counted = [(labels, state.xids.get(record.uuid, none)) for labels, record in rows.records(state)]
    yield Family(
        xid.GPU_XID_CLASS_ERRORS_TOTAL,
        [((*labels, word), totals.by_class.get(word, 0)) for labels, totals in counted for word in xid.XID_CLASSES],
    )
    yield Family(
        xid.GPU_XID_ERRORS_TOTAL,
        [((*labels, str(code)), count) for labels, totals in counted for code, count in totals.by_xid.items()],
    )
    yield Family(
        xid.GPU_XID_LAST_TIMESTAMP_SECONDS,
        [((*labels, str(code)), when) for labels, totals in counted for code, when in totals.last_wall_s.items()],
    )
