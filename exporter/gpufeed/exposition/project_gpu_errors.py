# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in GPUs and between them: ECC, repairs, PCIe and C2C errors, the fabric."""

from collections.abc import Callable, Iterator, Mapping

from gpufeed.catalogue import gpu_errors
from gpufeed.catalogue.define import MetricDef
from gpufeed.exposition import rows
from gpufeed.exposition.family import Family, Row
from gpufeed.exposition.rows import family, flag
from gpufeed.model.gpu import GpuSlow
from gpufeed.model.gpu_errors import GpuC2c, GpuErrorDetail, GpuErrors
from gpufeed.model.state import NodeState

_COMPLETED = 3
_FAILED = "failed"

Locations = Mapping[str, Mapping[str, int]]


def families(state: NodeState) -> Iterator[Family]:
    """Memory, then links, then the fabric."""
    yield from _memory(rows.boards(state, GpuErrors))
    yield from _detail(rows.boards(state, GpuErrorDetail))
    yield _by_word(gpu_errors.GPU_PCIE_ERRORS_TOTAL, rows.boards(state, GpuErrors), lambda sample: sample.pcie_errors)
    yield from _fabric(rows.boards(state, GpuSlow))
    yield from _c2c(rows.boards(state, GpuC2c))


def _memory(errors: rows.Labelled[GpuErrors]) -> Iterator[Family]:
    yield _by_word(gpu_errors.GPU_ECC_VOLATILE_ERRORS_TOTAL, errors, lambda sample: sample.ecc_volatile)
    yield _by_word(gpu_errors.GPU_ECC_AGGREGATE_ERRORS_TOTAL, errors, lambda sample: sample.ecc_aggregate)
    yield _by_word(gpu_errors.GPU_REMAPPED_ROWS_TOTAL, errors, lambda sample: sample.remapped_rows)
    yield family(gpu_errors.GPU_ROW_REMAP_PENDING, errors, lambda sample: flag(sample.row_remap_pending))
    yield family(gpu_errors.GPU_ROW_REMAP_FAILED, errors, lambda sample: flag(sample.row_remap_failed))
    yield _by_word(gpu_errors.GPU_RETIRED_PAGES, errors, lambda sample: sample.retired_pages)
    yield family(gpu_errors.GPU_RETIRED_PAGES_PENDING, errors, lambda sample: flag(sample.retired_pages_pending))


def _detail(details: rows.Labelled[GpuErrorDetail]) -> Iterator[Family]:
    yield _by_location(
        gpu_errors.GPU_ECC_VOLATILE_LOCATION_ERRORS_TOTAL, details, lambda sample: sample.ecc_volatile_locations
    )
    yield _by_location(
        gpu_errors.GPU_ECC_AGGREGATE_LOCATION_ERRORS_TOTAL, details, lambda sample: sample.ecc_aggregate_locations
    )
    yield family(
        gpu_errors.GPU_SRAM_ECC_THRESHOLD_EXCEEDED, details, lambda sample: flag(sample.sram_threshold_exceeded)
    )
    yield _by_word(gpu_errors.GPU_ROW_REMAP_BANKS, details, lambda sample: sample.row_remap_banks)


def _fabric(slow: rows.Labelled[GpuSlow]) -> Iterator[Family]:
    states: list[Row] = [((*labels, word), 1) for labels, sample in slow if (word := _fabric_state(sample)) is not None]
    yield Family(gpu_errors.GPU_FABRIC_STATE, states)
    yield _by_word(gpu_errors.GPU_FABRIC_HEALTH, slow, lambda sample: sample.fabric_trouble)


def _fabric_state(sample: GpuSlow) -> str | None:
    if sample.fabric_state is None:
        return None
    if sample.fabric_state == _COMPLETED and sample.fabric_status:
        return _FAILED
    return gpu_errors.FABRIC_STATES.get(sample.fabric_state, f"code_{sample.fabric_state}")


def _c2c(links: rows.Labelled[GpuC2c]) -> Iterator[Family]:
    yield family(gpu_errors.GPU_C2C_LINKS, links, lambda sample: sample.links)
    yield family(gpu_errors.GPU_C2C_LINKS_UP, links, lambda sample: sample.links_up)
    yield family(gpu_errors.GPU_C2C_SPEED_BYTES_PER_SECOND, links, lambda sample: sample.speed_bytes_per_s)
    yield _by_word(gpu_errors.GPU_C2C_ERRORS_TOTAL, links, lambda sample: sample.errors)


def _by_word(
    definition: MetricDef, things: rows.Labelled[rows.T], read: Callable[[rows.T], Mapping[str, float] | None]
) -> Family:
    """A row for each key of what is read; none where it cannot be had."""
    return Family(
        definition,
        [((*labels, word), value) for labels, thing in things for word, value in (read(thing) or {}).items()],
    )


def _by_location(
    definition: MetricDef, things: rows.Labelled[rows.T], read: Callable[[rows.T], Locations | None]
) -> Family:
    return Family(
        definition,
        [
            ((*labels, kind, location), count)
            for labels, thing in things
            for kind, counts in (read(thing) or {}).items()
            for location, count in counts.items()
        ],
    )
