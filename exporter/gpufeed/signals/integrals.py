# SPDX-License-Identifier: Apache-2.0
"""Counters that the hardware does not keep: engine seconds from GPM's windows, PCIe bytes without their wraps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Final

from gpufeed.model.frame import Frame
from gpufeed.model.gpu import GpmInterval, PcieBytes
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import GpuRecord, GpuTotals
from gpufeed.signals.counters import unwrap
from gpufeed.signals.pcie import link_ceiling
from gpufeed.units import NS_PER_S, seconds

GPM_REMEMBERED_NS: Final = 30 * NS_PER_S
"""As long as GPM gave PCIe rates within this, the raw counters are left alone: bytes must not count twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrals:
    """Totals, and what they were last advanced from."""

    totals: Mapping[GpuKey, GpuTotals] = field(default_factory=dict)
    gpm_ended_ns: Mapping[GpuKey, int] = field(default_factory=dict)
    gpm_pcie_ns: Mapping[GpuKey, int] = field(default_factory=dict)  # when GPM last gave PCIe rates
    raw: Mapping[GpuKey, tuple[PcieBytes, int]] = field(default_factory=dict)


def fold(previous: Integrals, frame: Frame, records: Mapping[GpuUuid, GpuRecord]) -> Integrals:
    """The totals after `frame`, of GPUs in `records` only. Intervals that end after the frame are not believed."""
    work = _Work(previous)
    for reading in frame.readings:
        for sample in reading.samples:
            if isinstance(sample, GpmInterval) and sample.ended_ns <= frame.time.monotonic_ns:
                work.add_interval(sample)
            elif isinstance(sample, PcieBytes):
                work.add_raw(sample, reading.ended_ns, records.get(sample.gpu.uuid))
    return work.result(previous, records)


class _Work:
    """Totals on their way from one frame to the next; copied only when there is something to add."""

    def __init__(self, previous: Integrals) -> None:
        self.totals = dict(previous.totals)
        self.gpm_ended_ns = dict(previous.gpm_ended_ns)
        self.gpm_pcie_ns = dict(previous.gpm_pcie_ns)
        self.raw = dict(previous.raw)
        self.changed = False

    def add_interval(self, interval: GpmInterval) -> None:
        """Mean times length, exactly; what an earlier interval covered already counts once."""
        key = interval.gpu
        began_ns = max(interval.began_ns, self.gpm_ended_ns.get(key, interval.began_ns))
        length_s = seconds(interval.ended_ns - began_ns)
        if length_s <= 0:
            return
        before = self.totals.get(key, GpuTotals())
        receive, transmit = interval.pcie_receive_bytes_per_s, interval.pcie_transmit_bytes_per_s
        self.totals[key] = GpuTotals(
            engine_active_s=_advanced(before.engine_active_s, _engines(interval), length_s),
            pipe_active_s=_advanced(before.pipe_active_s, interval.pipes or {}, length_s),
            pcie_receive_bytes=_plus(before.pcie_receive_bytes, receive, length_s),
            pcie_transmit_bytes=_plus(before.pcie_transmit_bytes, transmit, length_s),
        )
        self.gpm_ended_ns[key] = interval.ended_ns
        if receive is not None or transmit is not None:
            self.gpm_pcie_ns[key] = interval.ended_ns
        self.changed = True

    def add_raw(self, sample: PcieBytes, at_ns: int, record: GpuRecord | None) -> None:
        """The increase of a wrapping counter, where it can be known."""
        key, before = sample.gpu, self.raw.get(sample.gpu)
        self.raw[key] = (sample, at_ns)
        self.changed = True
        is_gpm = at_ns - self.gpm_pcie_ns.get(key, at_ns - GPM_REMEMBERED_NS) < GPM_REMEMBERED_NS
        if before is None or is_gpm:
            return
        old, old_ns = before
        plausible = link_ceiling(record.identity if record else None) * seconds(max(0, at_ns - old_ns))
        totals = self.totals.get(key, GpuTotals())
        receive = unwrap(old.receive_bytes, sample.receive_bytes, sample.counter_bits, plausible)
        transmit = unwrap(old.transmit_bytes, sample.transmit_bytes, sample.counter_bits, plausible)
        self.totals[key] = replace(
            totals,
            pcie_receive_bytes=_plus(totals.pcie_receive_bytes, receive, 1),
            pcie_transmit_bytes=_plus(totals.pcie_transmit_bytes, transmit, 1),
        )

    def result(self, previous: Integrals, records: Mapping[GpuUuid, GpuRecord]) -> Integrals:
        """The new totals, without GPUs that are no longer remembered."""
        if not self.changed and all(key.uuid in records for key in previous.totals):
            return previous
        return Integrals(
            totals={key: value for key, value in self.totals.items() if key.uuid in records},
            gpm_ended_ns={key: value for key, value in self.gpm_ended_ns.items() if key.uuid in records},
            gpm_pcie_ns={key: value for key, value in self.gpm_pcie_ns.items() if key.uuid in records},
            raw={key: value for key, value in self.raw.items() if key.uuid in records},
        )


def _engines(interval: GpmInterval) -> Mapping[str, float | None]:
    return {
        "graphics": interval.graphics_ratio,
        "sm": interval.sm_ratio,
        "tensor": interval.tensor_ratio,
        "dram": interval.dram_ratio,
    }


def _advanced(before: Mapping[str, float], rates: Mapping[str, float | None], length_s: float) -> Mapping[str, float]:
    after = dict(before)
    for name, rate in rates.items():
        if rate is not None and 0 <= rate <= 1:
            after[name] = after.get(name, 0.0) + rate * length_s
    return after


def _plus(total: float | None, rate: float | None, length_s: float) -> float | None:
    if rate is None or not isfinite(rate) or rate < 0:
        return total
    return (total or 0.0) + rate * length_s
