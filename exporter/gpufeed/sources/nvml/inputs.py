# SPDX-License-Identifier: Apache-2.0
"""What is known by now of what one GPU gives and does not give, and why not."""

from collections.abc import Iterator
from typing import Any, Final

from gpufeed.errors import Denied, SourceError, Unsupported
from gpufeed.model.frame import InputStatus
from gpufeed.sources.nvml import errors
from gpufeed.sources.nvml.getter import Getter
from gpufeed.sources.nvml.open_gpu import DEVICE_ACCESS, OpenGpu

Found = tuple[str, SourceError | None]
"""Name of an input; why this GPU does not give it, or None where it does."""

_ROOT: Final = {"sram_status": "the driver tells this to root only: run the probe as root, or do without"}
"""What else than access to the device may help."""


def inputs_of(gpu: OpenGpu) -> Iterator[InputStatus]:
    """One status an input, of those that have been found out."""
    scope = gpu.identity.gpu.uuid
    for name, refusal in _found(gpu):
        if refusal is None:
            yield InputStatus(name, scope, "available")
        elif isinstance(refusal, Denied):
            yield InputStatus(name, scope, "denied", str(refusal), _ROOT.get(name, DEVICE_ACCESS))
        else:
            yield InputStatus(name, scope, "unsupported", str(refusal))


def _found(gpu: OpenGpu) -> Iterator[Found]:
    yield from _fast(gpu)
    yield from _slow(gpu)
    yield from _links(gpu)
    for name, part in (("gpm", gpu.gpm), ("xid", gpu.events), ("c2c", gpu.c2c)):
        if part.refusal is not None or part.made is not None:
            yield name, part.refusal


def _fast(gpu: OpenGpu) -> Iterator[Found]:
    fast = gpu.fast
    if fast.is_known:
        yield "utilization", _refusal(fast.utilization)
        yield "memory", _refusal(fast.memory)
        yield "power", fast.power.refusal if fast.power.is_missing else None
        yield "energy", fast.energy.refusal if fast.energy.is_missing else None
        yield "temperature", _refusal(fast.temperature)
        yield "clocks", _refusal(fast.sm_clock)
        yield "clock_events", _unless(fast.has_clock_events, "no clock-event counter answers")
        yield "pcie_bytes", _unless(fast.has_pcie_bytes, "fields 197 and 198 do not answer")
    if gpu.processes.is_known:
        yield "processes", gpu.processes.refusal if gpu.processes.is_missing else None


def _slow(gpu: OpenGpu) -> Iterator[Found]:
    slow = gpu.slow
    if slow.is_known:
        yield "ecc", _unless(slow.has(*errors.ECC_VOLATILE.values()), "fields 3 and 4: no ECC counter answers")
        yield (
            "memory_repair",
            _unless(
                slow.has(*errors.REMAPPED_ROWS.values(), *errors.RETIRED_PAGES.values()),
                "neither remapped rows nor retired pages are counted here",
            ),
        )
        yield "pcie_errors", _unless(slow.has(*errors.PCIE_ERRORS.values()), "fields 169 to 183 do not answer")
        yield "temperature_margin", _refusal(slow.margin)
        yield "fabric", _refusal(slow.fabric)
    if gpu.rare.is_known:
        yield "sram_status", _refusal(gpu.rare.sram_status)


def _links(gpu: OpenGpu) -> Iterator[Found]:
    together, each = gpu.nvlink.made, gpu.links.made
    if together is not None:
        yield "nvlink", _unless(together.has_bytes, "no byte counter of the links answers")
    elif (refusal := gpu.nvlink.refusal or gpu.links.refusal) is not None:
        yield "nvlink", refusal
    if each is not None and each.has_errors is not None:
        yield "nvlink_errors", _unless(each.has_errors, "no error counter of the links answers")


def _refusal(getter: Getter[Any]) -> SourceError | None:
    return getter.refusal if getter.is_missing else None


def _unless(is_there: bool, reason: str) -> SourceError | None:  # noqa: FBT001  # the name says it
    return None if is_there else Unsupported(reason)
