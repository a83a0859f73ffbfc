# SPDX-License-Identifier: Apache-2.0
"""How much of a GPU's peak its tensor pipes were busy for: an upper bound of the FLOPs it did, never MFU.

Pipes are busy with padding, with recomputation and with tiles that do little as well.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from gpufeed.model.gpu import GpmInterval, GpuFast, GpuIdentity
from gpufeed.model.ids import GpuKey, GpuUuid
from gpufeed.model.state import GpuRecord
from gpufeed.signals.samples import Samples

TERA: Final = 1e12


class Peak(NamedTuple):
    """Dense FLOP per second by data type, as published, and the SM clock at which they are reached."""

    bf16: float
    clock_hz: float
    source: str
    fp8: float | None = None
    tf32: float | None = None


_V100 = Peak(125 * TERA, 1.526e9, "Tesla V100 data sheet: SXM2, FP16; 80 SMs x 1024 FLOP per clock")
_A100 = Peak(312 * TERA, 1.411e9, "A100 data sheet; 108 SMs x 2048 FLOP per clock", tf32=156 * TERA)
_H100 = Peak(
    989.4 * TERA,
    1.83e9,
    "H100 data sheet: SXM, without sparsity; 132 SMs x 4096 FLOP per clock",
    fp8=1978.9 * TERA,
    tf32=494.7 * TERA,
)
_B200 = Peak(
    2250 * TERA,
    1.856e9,
    "DGX B200 data sheet: per GPU, without sparsity; 148 SMs x 8192 FLOP per clock",
    fp8=4500 * TERA,
    tf32=1125 * TERA,
)

PEAKS: Final[Mapping[int, Peak]] = MappingProxyType(
    {
        0x1DB1: _V100,  # V100-SXM2-16GB
        0x1DB5: _V100,  # V100-SXM2-32GB
        0x20B0: _A100,  # A100-SXM4-40GB
        0x20B2: _A100,  # A100-SXM4-80GB
        0x20B5: _A100,  # A100 80GB PCIe
        0x20F1: _A100,  # A100-PCIE-40GB
        0x2330: _H100,  # H100 80GB HBM3
        0x2335: _H100._replace(source="H200 data sheet: SXM, without sparsity; the die of the H100"),
        0x2331: Peak(
            756 * TERA,
            1.619e9,
            "H100 data sheet: PCIe, without sparsity; 114 SMs x 4096 FLOP per clock",
            fp8=1513 * TERA,
            tf32=378 * TERA,
        ),
        0x2901: _B200,  # B200
        0x2941: Peak(
            2500 * TERA,
            2.008e9,
            "GB200 NVL72 data sheet: per GPU, without sparsity; 152 SMs x 8192 FLOP per clock",
            fp8=5000 * TERA,
            tf32=1250 * TERA,
        ),
        0x26B9: Peak(
            362 * TERA,
            2.49e9,
            "L40S data sheet, without sparsity; 142 SMs x 1024 FLOP per clock",
            fp8=733 * TERA,
            tf32=183 * TERA,
        ),
        0x27B8: Peak(
            121 * TERA,
            2.037e9,
            "L4 data sheet, without sparsity; 58 SMs x 1024 FLOP per clock",
            fp8=242 * TERA,
            tf32=60 * TERA,
        ),
    }
)
"""By PCI device id. A GPU that is not here has no peak: another's would be a guess."""


def peak_of(identity: GpuIdentity | None) -> Peak | None:
    """The peak of one board; None: not known."""
    if identity is None or identity.pci_device_id is None:
        return None
    return PEAKS.get(identity.pci_device_id >> 16)


def peak_flops(records: Mapping[GpuUuid, GpuRecord]) -> Mapping[GpuUuid, Mapping[str, float]]:
    """Peaks by data type, of every GPU that has any."""
    known = {uuid: peak_of(record.identity) for uuid, record in records.items()}
    return {uuid: _by_type(peak) for uuid, peak in known.items() if peak is not None}


def _by_type(peak: Peak) -> Mapping[str, float]:
    by_type = {"bf16": peak.bf16, "fp8": peak.fp8, "tf32": peak.tf32}
    return {dtype: value for dtype, value in by_type.items() if value is not None}


def tensor_intensity(records: Mapping[GpuUuid, GpuRecord], samples: Samples) -> Mapping[GpuUuid, float]:
    """Time of the tensor pipes times the clock over that of the peak, of whole boards; 1 at most."""
    found: dict[GpuUuid, float] = {}
    for uuid, record in records.items():
        key = GpuKey(uuid)
        peak = peak_of(record.identity)
        gpm, fast = samples.get(GpmInterval, {}).get(key), samples.get(GpuFast, {}).get(key)
        if peak is None or gpm is None or fast is None:
            continue
        tensor, clock_hz = gpm.sample.tensor_ratio, fast.sample.sm_clock_hz
        if tensor is not None and clock_hz is not None and 0 <= tensor <= 1:
            found[uuid] = min(1.0, tensor * clock_hz / peak.clock_hz)
    return found
