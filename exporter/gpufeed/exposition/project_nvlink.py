# SPDX-License-Identifier: Apache-2.0
"""NVLink: all links of a GPU together, and each by itself."""

from collections.abc import Callable, Iterator

from gpufeed.catalogue import nvlink
from gpufeed.catalogue.define import MetricDef
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family, Row
from gpufeed.exposition.rows import family, text
from gpufeed.model.gpu import NvlinkTotals
from gpufeed.model.nvlink import NvlinkLink, NvlinkLinks
from gpufeed.model.state import NodeState

Links = rows.Labelled[NvlinkLink]


def families(state: NodeState) -> Iterator[Family]:
    """Bytes, links and errors of the GPU; then what profile full has of every link."""
    totals = rows.boards(state, NvlinkTotals)
    yield family(nvlink.NVLINK_RECEIVE_BYTES_TOTAL, totals, lambda total: total.receive_bytes)
    yield family(nvlink.NVLINK_TRANSMIT_BYTES_TOTAL, totals, lambda total: total.transmit_bytes)
    yield family(nvlink.NVLINK_LINKS, totals, lambda total: total.links)
    yield family(nvlink.NVLINK_LINKS_UP, totals, lambda total: total.links_up)
    boards = rows.boards(state, NvlinkLinks)
    yield Family(
        nvlink.NVLINK_ERRORS_TOTAL,
        [((*labels, kind), count) for labels, board in boards for kind, count in (board.errors or {}).items()],
    )
    yield from _each([((*labels, str(link.link)), link) for labels, board in boards for link in board.links])


def _each(links: Links) -> Iterator[Family]:
    up: list[Row] = [(labels, int(link.is_up)) for labels, link in links if link.is_up is not None]
    yield _unusual(nvlink.NVLINK_UP, up, lambda value: value == 0)
    errors: list[Row] = [((*labels, kind), n) for labels, link in links for kind, n in (link.errors or {}).items()]
    yield _unusual(nvlink.NVLINK_LINK_ERRORS_TOTAL, errors, lambda value: value > 0)
    yield family(nvlink.NVLINK_LINK_RECEIVE_BYTES_TOTAL, links, lambda link: link.receive_bytes)
    yield family(nvlink.NVLINK_LINK_TRANSMIT_BYTES_TOTAL, links, lambda link: link.transmit_bytes)
    yield family(nvlink.NVLINK_SPEED_BYTES_PER_SECOND, links, lambda link: link.speed_bytes_per_s)
    yield Family(
        nvlink.NVLINK_BIT_ERROR_RATIO,
        [((*labels, kind), ratio) for labels, link in links for kind, ratio in (link.bit_error_ratios or {}).items()],
    )
    yield Family(nvlink.NVLINK_INFO, [((*labels, *found), 1) for labels, link in links if any(found := _ends(link))])


def _unusual(definition: MetricDef, every: list[Row], is_unusual: Callable[[float], bool]) -> Family:
    """Rows whose value is unusual stand in the metric's own profile, the others in full alone."""
    return Family(
        definition,
        [row for row in every if is_unusual(row[1])],
        full_rows=[row for row in every if not is_unusual(row[1])],
    )


def _ends(link: NvlinkLink) -> tuple[str, str, str]:
    return text(link.version), text(link.remote_type), text(link.remote_pci_bus_id)
