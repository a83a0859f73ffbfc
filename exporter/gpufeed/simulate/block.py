# SPDX-License-Identifier: Apache-2.0
"""The truth of now in a memory-mapped file: written by one process, read by the faces without a lock.

All numbers are little-endian and 8-byte aligned; offsets are in bytes.

    0     magic       8 bytes, b"GPFTRUTH"
    8     version     int64
    16    gpus        int64, number of GPU records
    24    sequence    int64, odd while a write is under way: read it, copy, read it again, start over if it moved
    32    now_ns      int64, monotonic time the records stand for
    40    wall_ns     int64, the same moment since 1970
    48    period_ns   int64, how often it is written in real time; 0 where time moves only when told to
    56    driver      int64, 1 when the driver is loaded
    64    faults      int64, number of bytes of the fault table in use; changes of it also change `fault_turn`
    72    fault_turn  int64, counts changes of the fault table
    80    model       16 bytes, key of the model, NUL-padded
    96    version     32 bytes, driver version, NUL-padded
    128   boards      gpus × GPU_BYTES: FLOATS as float64 in that order, then INTS as int64 in that order
    …     faults      FAULT_BYTES: JSON, see `faults.py`
"""

import mmap
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpufeed.simulate.hardware import MAX_GPUS

MAGIC: Final = b"GPFTRUTH"
VERSION: Final = 1
FAULT_BYTES: Final = 8192
MAX_PROCESSES: Final = 8
MAX_XIDS: Final = 16

INTEGRALS: Final = (
    "graphics_s", "sm_s", "occupancy_s", "tensor_s", "dram_s", "energy_j",
    "nvlink_receive_bytes", "nvlink_transmit_bytes", "pcie_receive_bytes", "pcie_transmit_bytes",
    "sw_power_cap_s", "hw_slowdown_s", "sync_boost_s", "sw_thermal_s", "hw_thermal_s", "hw_power_brake_s",
    "board_limit_s", "reliability_s", "low_utilization_s",
)  # fmt: skip
"""What only grows: seconds of activity, joules, bytes, seconds a clock-event reason held."""

GAUGES: Final = (
    "utilization_ratio", "memory_utilization_ratio", "power_w", "power_instant_w", "temperature_c",
    "memory_temperature_c", "sm_clock_mhz", "memory_clock_mhz", "memory_used_bytes",
)  # fmt: skip

FLOATS: Final = INTEGRALS + GAUGES

INTS: Final = (
    "lost", "clock_events", "recovery_action", "links_up", "pcie_generation", "pcie_width", "pcie_replays",
    "ecc_volatile_corrected", "ecc_volatile_uncorrected", "ecc_aggregate_corrected", "ecc_aggregate_uncorrected",
    "remapped_correctable", "remapped_uncorrectable", "remap_pending", "remap_failed", "performance_state",
    "ecc_volatile_corrected_sram", "ecc_volatile_uncorrected_sram", "ecc_aggregate_corrected_sram",
    "ecc_aggregate_uncorrected_sram", "sram_threshold_exceeded",
    "remap_banks_max", "remap_banks_high", "remap_banks_partial", "remap_banks_low", "remap_banks_none",
    "retired_single_bit", "retired_double_bit", "retired_pending",
    "pcie_correctable", "pcie_naks_received", "pcie_receiver", "pcie_bad_tlp", "pcie_naks_sent", "pcie_bad_dllp",
    "pcie_non_fatal", "pcie_fatal", "pcie_unsupported_request", "pcie_lcrc", "pcie_lane", "pcie_l0_to_recovery",
    "fabric_state", "fabric_status", "fabric_health_mask", "fabric_health_summary",
    "nvlink_bad_link", "nvlink_crc_flit", "nvlink_crc_data", "nvlink_crc", "nvlink_replay", "nvlink_recovery",
    "nvlink_recovery_failed", "nvlink_effective", "nvlink_symbol", "nvlink_effective_ber", "nvlink_symbol_ber",
    "c2c_links_up", "c2c_crc", "c2c_replay", "c2c_replay_b2b",
    "persistence", "compute_mode", "encoder_percent", "decoder_percent", "bar1_used_bytes", "video_clock_mhz",
    "mig_layout", "mig_changes",
    "xids", *(f"xid{slot}" for slot in range(MAX_XIDS)),
    "processes", *(f"pid{slot}" for slot in range(MAX_PROCESSES)), *(f"bytes{slot}" for slot in range(MAX_PROCESSES)),
)  # fmt: skip
"""`xids` counts XIDs ever; number n (from 0) stands in slot n modulo MAX_XIDS. Of ECC totals, `…_sram` is a part: the
rest was in device memory. NVLink errors all are those of the link `nvlink_bad_link`;
`mig_changes` counts how often instances were created or destroyed; bit error ratios are packed as
the driver packs them.
"""

_HEADER: Final = struct.Struct("<8s9q16s32s")
_SEQUENCE: Final = struct.Struct("<q")
_RECORD: Final = struct.Struct(f"<{len(FLOATS)}d{len(INTS)}q")
_SEQUENCE_AT: Final = 24
_SPINS: Final = 50
_NAPS: Final = 500
_NAP_S: Final = 0.001
GPU_BYTES: Final = _RECORD.size

POSITION: Final = {name: at for at, name in enumerate(FLOATS + INTS)}
"""Where a value stands in the tuple of a record."""

Record = tuple[float | int, ...]


class TornBlockError(Exception):
    """The writer stopped in the middle of a write, or the file is not a truth block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The part of the block that is about the node."""

    gpus: int
    now_ns: int
    wall_ns: int
    period_ns: int
    has_driver: bool
    fault_bytes: int
    fault_turn: int
    model: str
    driver_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The node, one of its GPUs (an empty record where none was asked for), and the fault table, at one instant."""

    header: Header
    record: Record
    faults: bytes

    def value(self, name: str) -> float:
        """A number of the GPU's record by its name in FLOATS or INTS."""
        return self.record[POSITION[name]]

    def whole(self, name: str) -> int:
        """The same as a whole number, rounded down as counters are."""
        return int(self.record[POSITION[name]])


def block_bytes(gpus: int) -> int:
    """Size of the file."""
    return _HEADER.size + gpus * GPU_BYTES + FAULT_BYTES


class BlockWriter:
    """Creates the file and writes it. There is one of them for a file."""

    def __init__(self, path: str, gpus: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.ftruncate(descriptor, block_bytes(gpus))
            self._map = mmap.mmap(descriptor, block_bytes(gpus))
        finally:
            os.close(descriptor)
        self._gpus = gpus
        self._sequence = 0

    def write(self, header: Header, records: Sequence[Record], faults: bytes) -> None:
        """Everything at once; readers see all of it or nothing. Raises ValueError for too many faults."""
        if len(faults) > FAULT_BYTES:
            raise ValueError(f"faults take {len(faults)} bytes, there is room for {FAULT_BYTES}")
        # A stopped reader must not see half: odd sequence first, even last. Stores of one thread reach other
        # processors in order on x86-64; elsewhere a torn read would show as an odd or moved sequence at worst late.
        _SEQUENCE.pack_into(self._map, _SEQUENCE_AT, self._sequence + 1)
        _HEADER.pack_into(
            self._map, 0, MAGIC, VERSION, self._gpus, self._sequence + 1, header.now_ns, header.wall_ns,
            header.period_ns, header.has_driver, len(faults), header.fault_turn,
            header.model.encode(), header.driver_version.encode(),
        )  # fmt: skip
        at = _HEADER.size
        for record in records:
            _RECORD.pack_into(self._map, at, *record)
            at += GPU_BYTES
        self._map[at : at + len(faults)] = faults
        self._sequence += 2
        _SEQUENCE.pack_into(self._map, _SEQUENCE_AT, self._sequence)

    def close(self) -> None:
        """Let go of the mapping; the file stays."""
        self._map.close()


class BlockReader:
    """Reads a block that another process may be writing. Raises TornBlockError."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            self._map = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        if self._map[:8] != MAGIC:
            raise TornBlockError(f"{path} is not a truth block")
        self._known: dict[int | None, tuple[int, Moment]] = {}

    def read(self, gpu: int | None = None) -> Moment:
        """Everything of one moment, with the record of `gpu` (None: of no GPU)."""
        for attempt in range(_SPINS + _NAPS):
            if attempt >= _SPINS:
                time.sleep(_NAP_S)  # the writer lost its processor in the middle: let it have this one
            before = self._sequence()
            known = self._known.get(gpu)
            if known is not None and known[0] == before:
                return known[1]
            if before % 2 == 0:
                header = self._header()
                moment = Moment(header=header, record=self._record(header, gpu), faults=self._faults(header))
                if self._sequence() == before:
                    self._known[gpu] = (before, moment)
                    return moment
        raise TornBlockError("the truth block was left half written")

    def close(self) -> None:
        """Let go of the mapping."""
        self._map.close()

    def _sequence(self) -> int:
        return int(_SEQUENCE.unpack_from(self._map, _SEQUENCE_AT)[0])

    def _header(self) -> Header:
        (_, _, gpus, _, now_ns, wall_ns, period_ns, driver, fault_bytes, turn, model, version) = _HEADER.unpack_from(
            self._map, 0
        )
        return Header(
            gpus=gpus,
            now_ns=now_ns,
            wall_ns=wall_ns,
            period_ns=period_ns,
            has_driver=bool(driver),
            fault_bytes=fault_bytes,
            fault_turn=turn,
            model=model.rstrip(b"\0").decode(),
            driver_version=version.rstrip(b"\0").decode(),
        )

    def _record(self, header: Header, gpu: int | None) -> Record:
        if gpu is None or not 0 <= gpu < min(header.gpus, MAX_GPUS):
            return ()
        return _RECORD.unpack_from(self._map, _HEADER.size + gpu * GPU_BYTES)

    def _faults(self, header: Header) -> bytes:
        at = _HEADER.size + header.gpus * GPU_BYTES
        return self._map[at : at + min(header.fault_bytes, FAULT_BYTES)]
