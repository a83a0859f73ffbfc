# SPDX-License-Identifier: Apache-2.0
"""NVLink: all links of a GPU together."""

from collections.abc import Iterator

from gpufeed.catalogue import nvlink
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family
from gpufeed.exposition.rows import family
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.state import NodeState


def families(state: NodeState) -> Iterator[Family]:
    """Bytes and links."""
    totals = rows.boards(state, NvlinkTotals)
    yield family(nvlink.NVLINK_RECEIVE_BYTES_TOTAL, totals, lambda total: total.receive_bytes)
    yield family(nvlink.NVLINK_TRANSMIT_BYTES_TOTAL, totals, lambda total: total.transmit_bytes)
    yield family(nvlink.NVLINK_LINKS, totals, lambda total: total.links)
    yield family(nvlink.NVLINK_LINKS_UP, totals, lambda total: total.links_up)
