# SPDX-License-Identifier: Apache-2.0
"""What every generation of GPU gives under every branch of the driver, written down a second time.

A board that has something is named here by its key, and the driver that has it by its first version; the values are
those of the simulated truth, in the unit of the metric.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Version = tuple[int, int]
Labels = tuple[tuple[str, str], ...]
Row = tuple[str, Labels]

V100, A100, L4, L40S, RTX4080 = "v100", "a100", "l4", "l40s", "rtx4080"
H100, H200, B200, GB200, GB10 = "h100", "h200", "b200", "gb200", "gb10"

HOPPER_ON = {H100, H200, B200, GB200}
DATA_CENTRE = {V100, A100, *HOPPER_ON}
ADA = {L4, L40S, RTX4080}
ALL = {*DATA_CENTRE, *ADA, GB10}
ECC = {*DATA_CENTRE, L4, L40S}
DISCRETE = ALL - {GB10}

DRIVERS = ("525.147.05", "550.90.07", "570.124.06", "575.57.08", "580.65.06", "580.95.05", "615.10.02")
FIRST_DRIVER = {H200: (550, 0), B200: (570, 0), GB200: (570, 0), GB10: (580, 95)}
LAST_DRIVER = {V100: (581, 0)}
LINKS = {V100: 6, A100: 12, H100: 18, H200: 18, B200: 18, GB200: 18}


def version(driver: str) -> Version:
    branch, minor = driver.split(".")[:2]
    return int(branch), int(minor)


def pairs() -> Iterator[tuple[str, str]]:
    """Boards and drivers that go together."""
    for model in sorted(ALL):
        for driver in DRIVERS:
            if FIRST_DRIVER.get(model, (0, 0)) <= version(driver) < LAST_DRIVER.get(model, (999, 0)):
                yield model, driver


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The truth of one GPU: at the first tick, when slow groups are read, and at the last; and what the board is."""

    first: Mapping[str, float]
    last: Mapping[str, float]
    board: Any

    def grown(self, name: str) -> float:
        """By how much an integral has grown between the two."""
        return self.last[name] - self.first[name]


Value = Callable[[Seen], float]


def expected(model: str, driver: str, seen: Seen) -> dict[Row, float]:
    """Every row of a GPU's families, and nothing besides."""
    at = version(driver)
    found: dict[Row, float] = {}
    for name, labels, boards, since, value in _table(model, at):
        if model in boards and at >= since:
            found[name, labels] = value(seen)
    return found


Line = tuple[str, Labels, set[str], Version, Value]

ALWAYS: Version = (0, 0)


def last(name: str, factor: float = 1.0) -> Value:
    return lambda seen: seen.last[name] * factor


def first(name: str, factor: float = 1.0) -> Value:
    return lambda seen: seen.first[name] * factor


def whole(name: str) -> Value:
    return lambda seen: round(seen.last[name])


def of_board(name: str, factor: float = 1.0) -> Value:
    return lambda seen: getattr(seen.board, name) * factor


def constant(value: float) -> Value:
    return lambda _: value


def label(name: str, value: str) -> Labels:
    return ((name, value),)


def _table(model: str, at: Version) -> Iterator[Line]:
    yield from _state()
    yield from _power_and_heat()
    yield from _clocks()
    yield from _pcie()
    yield from _modes()
    yield from _memory_errors(model)
    yield from _fabric(at)
    yield from _engines()
    yield from _links(model)


def _state() -> Iterator[Line]:
    yield "gpu_utilization_ratio", (), ALL, ALWAYS, lambda seen: round(100 * seen.last["utilization_ratio"]) / 100
    yield (
        "gpu_memory_utilization_ratio", (), ALL, ALWAYS,
        lambda seen: round(100 * seen.last["memory_utilization_ratio"]) / 100,
    )  # fmt: skip
    yield "gpu_encoder_utilization_ratio", (), ALL, ALWAYS, constant(0.07)
    yield "gpu_decoder_utilization_ratio", (), ALL, ALWAYS, constant(0.55)
    yield "gpu_memory_total_bytes", (), DISCRETE, ALWAYS, of_board("memory_bytes")
    yield "gpu_memory_used_bytes", (), DISCRETE, ALWAYS, last("memory_used_bytes")
    yield "gpu_memory_reserved_bytes", (), DISCRETE, ALWAYS, of_board("memory_reserved_bytes")
    yield (
        "gpu_memory_free_bytes", (), DISCRETE, ALWAYS,
        lambda seen: seen.board.memory_bytes - seen.board.memory_reserved_bytes - seen.last["memory_used_bytes"],
    )  # fmt: skip
    yield "gpu_bar1_used_bytes", (), DISCRETE, ALWAYS, constant(9 * 2**20)
    yield (
        "gpu_bar1_total_bytes", (), DISCRETE, ALWAYS,
        lambda seen: 2 ** (seen.board.memory_bytes - 1).bit_length(),
    )  # fmt: skip


def _power_and_heat() -> Iterator[Line]:
    limited = ALL - {GB10}
    yield "gpu_power_watts", (), ALL, ALWAYS, last("power_w")
    yield "gpu_power_instant_watts", (), ALL, (525, 0), last("power_instant_w")
    for limit, name in (("enforced", "power_limit_w"), ("default", "power_limit_w"), ("max", "power_limit_w"),
                        ("min", "power_minimum_w")):  # fmt: skip
        yield "gpu_power_limit_watts", label("limit", limit), limited, ALWAYS, of_board(name)
    yield "gpu_energy_joules_total", (), ALL - {GB10}, ALWAYS, last("energy_j")
    yield "gpu_temperature_celsius", label("sensor", "gpu"), ALL, ALWAYS, whole("temperature_c")
    yield "gpu_temperature_celsius", label("sensor", "memory"), DATA_CENTRE, ALWAYS, whole("memory_temperature_c")
    yield (
        "gpu_temperature_margin_celsius", (), {*ADA, *HOPPER_ON}, (570, 0),
        lambda seen: 87 - round(seen.first["temperature_c"]),
    )  # fmt: skip
    degrees = {V100: (90, 87, 85, 83), A100: (92, 89, 95, 85)}
    for model, limits in degrees.items():
        for limit, celsius in zip(("shutdown", "slowdown", "memory_max", "gpu_max"), limits, strict=True):
            yield "gpu_temperature_limit_celsius", label("limit", limit), {model}, ALWAYS, constant(celsius)
    margins = "gpu_temperature_limit_margin_celsius"
    for limit, celsius in (("shutdown", -8), ("slowdown", -2), ("memory_max", 0), ("gpu_max", 0)):
        yield margins, label("limit", limit), HOPPER_ON, (535, 0), constant(celsius)
    for limit, celsius in (("shutdown", -7), ("slowdown", -2), ("gpu_max", 0)):  # no sensor in the memory, no limit
        yield margins, label("limit", limit), ADA, (535, 0), constant(celsius)


REASON_BITS = {
    "idle": 0x1, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10, "sw_thermal": 0x20, "hw_thermal": 0x40,
    "hw_power_brake": 0x80, "board_limit": 0x200, "reliability": 0x400,
}  # fmt: skip


def _clocks() -> Iterator[Line]:
    mhz = 1e6
    for domain in ("graphics", "sm"):
        yield "gpu_clock_hertz", label("domain", domain), ALL, ALWAYS, last("sm_clock_mhz", mhz)
        yield "gpu_clock_max_hertz", label("domain", domain), ALL, ALWAYS, of_board("sm_clock_max_mhz", mhz)
    yield "gpu_clock_hertz", label("domain", "video"), ALL, ALWAYS, first("video_clock_mhz", mhz)
    yield "gpu_clock_max_hertz", label("domain", "video"), ALL, ALWAYS, of_board("sm_clock_max_mhz", mhz)
    yield "gpu_clock_hertz", label("domain", "memory"), DISCRETE, ALWAYS, last("memory_clock_mhz", mhz)
    yield "gpu_clock_max_hertz", label("domain", "memory"), DISCRETE, ALWAYS, of_board("memory_clock_mhz", mhz)
    for reason in ("sw_power_cap", "sync_boost", "board_limit", "reliability", "low_utilization"):
        yield "gpu_clock_event_seconds_total", label("reason", reason), ALL, ALWAYS, last(f"{reason}_s")
    yield (
        "gpu_clock_event_seconds_total", label("reason", "thermal_policy"), ALL, ALWAYS,
        lambda seen: seen.last["sw_thermal_s"] + seen.last["hw_thermal_s"],
    )  # fmt: skip
    yield "gpu_clock_event_seconds_total", label("reason", "base_clocks"), ALL, ALWAYS, constant(0)
    for reason in ("sw_thermal", "hw_thermal", "hw_power_brake"):  # before, their ids are not sure
        yield "gpu_clock_event_seconds_total", label("reason", reason), ALL, (580, 82), last(f"{reason}_s")
    for reason, bit in REASON_BITS.items():
        yield "gpu_clock_event_active", label("reason", reason), ALL, ALWAYS, _active(bit)


def _active(bit: int) -> Value:
    return lambda seen: float(bool(int(seen.last["clock_events"]) & bit))


PCIE_ERRORS = {
    "l0_to_recovery": 1, "correctable": 2, "naks_received": 3, "receiver": 4, "bad_tlp": 5, "naks_sent": 6,
    "bad_dllp": 7, "non_fatal": 8, "fatal": 9, "unsupported_request": 10, "lcrc": 11, "lane": 12,
}  # fmt: skip


def _pcie() -> Iterator[Line]:
    # 32 bits of a wide link wrap too soon to be told from the raw counters; one lane is slow enough
    for direction in ("receive", "transmit"):
        name, total = f"pcie_{direction}_bytes", f"gpu_pcie_{direction}_bytes_total"
        yield total, (), HOPPER_ON, ALWAYS, _growth(name)
        yield total, (), {GB10}, (555, 0), _growth(name)
    for name, value in (("generation", "pcie_generation"), ("width", "pcie_width")):
        yield f"gpu_pcie_link_{name}", (), ALL, ALWAYS, of_board(value)
        yield f"gpu_pcie_link_{name}_max", (), ALL, ALWAYS, of_board(value)
    yield "gpu_pcie_replays_total", (), ALL, ALWAYS, constant(31)
    for kind, count in PCIE_ERRORS.items():
        since = (535, 0) if kind == "lane" else (525, 0)
        yield "gpu_pcie_errors_total", label("type", kind), ALL, since, constant(count)


def _growth(name: str) -> Value:
    return lambda seen: seen.grown(name)


def _modes() -> Iterator[Line]:
    yield "gpu_persistence_enabled", (), ALL, ALWAYS, constant(1)
    yield "gpu_ecc_enabled", (), ECC, ALWAYS, constant(1)
    yield "gpu_mig_enabled", (), {A100, *HOPPER_ON}, ALWAYS, constant(0)
    yield "gpu_performance_state", (), ALL, ALWAYS, constant(2)
    yield "gpu_compute_mode", (), ALL, ALWAYS, constant(3)
    yield "gpu_recovery_action", label("action", "none"), ALL, (565, 0), constant(1)
    yield "gpu_processes", (), ALL, ALWAYS, constant(1)


COUNTS = {
    "ecc_volatile_corrected": 10, "ecc_volatile_uncorrected": 3, "ecc_aggregate_corrected": 200,
    "ecc_aggregate_uncorrected": 40, "ecc_volatile_corrected_sram": 4, "ecc_volatile_uncorrected_sram": 1,
    "ecc_aggregate_corrected_sram": 50, "ecc_aggregate_uncorrected_sram": 15, "sram_threshold_exceeded": 1,
    "remapped_correctable": 5, "remapped_uncorrectable": 6, "remap_pending": 1, "remap_failed": 1,
    "remap_banks_max": 2000, "remap_banks_high": 500, "remap_banks_partial": 50, "remap_banks_low": 9,
    "remap_banks_none": 1, "retired_single_bit": 7, "retired_double_bit": 8, "retired_pending": 1,
    "pcie_replays": 31, **{f"pcie_{kind}": count for kind, count in PCIE_ERRORS.items()},
    "encoder_percent": 7, "decoder_percent": 55, "bar1_used_bytes": 9 * 2**20, "performance_state": 2,
    "compute_mode": 3, "nvlink_bad_link": 5, "nvlink_crc_flit": 2, "nvlink_crc_data": 3, "nvlink_crc": 4,
    "nvlink_replay": 6, "nvlink_recovery": 7, "nvlink_recovery_failed": 8, "nvlink_effective": 9,
    "nvlink_symbol": 11, "nvlink_effective_ber": 0x2 << 8 | 12, "nvlink_symbol_ber": 0x3 << 8 | 9,
    "c2c_links_up": 9, "c2c_crc": 1, "c2c_replay": 2, "c2c_replay_b2b": 3,
}  # fmt: skip
"""Numbers of the truth that are set, no two of one kind alike."""


def _memory_errors(model: str) -> Iterator[Line]:
    for life in ("volatile", "aggregate"):
        for kind in ("corrected", "uncorrected"):
            total, sram = COUNTS[f"ecc_{life}_{kind}"], COUNTS[f"ecc_{life}_{kind}_sram"]
            yield f"gpu_ecc_{life}_errors_total", label("type", kind), ECC, ALWAYS, constant(total)
            places = {"device_memory": total - sram, ("l2_cache" if model == V100 else "sram"): sram}
            if model == V100:
                places |= dict.fromkeys(("l1_cache", "register_file", "texture_memory"), 0)
                places |= {"cbu": 0} if kind == "uncorrected" else {}
            for place, count in places.items():
                labels = (("location", place), ("type", kind))
                yield f"gpu_ecc_{life}_location_errors_total", labels, ECC, ALWAYS, constant(count)
    rows = ECC - {V100}
    yield "gpu_sram_ecc_threshold_exceeded", (), rows, (535, 161), constant(1)
    yield "gpu_remapped_rows_total", label("cause", "correctable"), rows, ALWAYS, constant(5)
    yield "gpu_remapped_rows_total", label("cause", "uncorrectable"), rows, ALWAYS, constant(6)
    yield "gpu_row_remap_pending", (), rows, ALWAYS, constant(1)
    yield "gpu_row_remap_failed", (), rows, ALWAYS, constant(1)
    for banks, count in (("max", 2000), ("high", 500), ("partial", 50), ("low", 9), ("none", 1)):
        yield "gpu_row_remap_banks", label("availability", banks), rows, ALWAYS, constant(count)
    yield "gpu_retired_pages", label("cause", "correctable"), {V100}, ALWAYS, constant(7)
    yield "gpu_retired_pages", label("cause", "uncorrectable"), {V100}, ALWAYS, constant(8)
    yield "gpu_retired_pages_pending", (), {V100}, ALWAYS, constant(1)


def _fabric(at: Version) -> Iterator[Line]:
    yield "gpu_fabric_state", label("state", "completed"), HOPPER_ON, (525, 0), constant(1)
    troubles = ["degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery",
                "incorrect_configuration", "partition_not_assigned", "manager_disconnected"]  # fmt: skip
    troubles += ["unhealthy", "limited_capacity"] if at >= (575, 0) else []
    for trouble in troubles:
        yield "gpu_fabric_health", label("aspect", trouble), HOPPER_ON, (550, 0), constant(0)
    yield "gpu_c2c_links", (), {GB200}, (535, 0), constant(10)
    yield "gpu_c2c_links_up", (), {GB200}, (535, 0), constant(9)
    yield "gpu_c2c_speed_bytes_per_second", (), {GB200}, (535, 0), constant(10 * 44712e6)
    for kind, count in (("crc", 1), ("replay", 2), ("replay_back_to_back", 3)):
        yield "gpu_c2c_errors_total", label("type", kind), {GB200}, (575, 0), constant(count)


def _engines() -> Iterator[Line]:
    for engine in ("graphics", "sm", "tensor", "dram"):
        name = f"{engine}_s"
        yield "gpu_engine_active_seconds_total", label("engine", engine), HOPPER_ON, ALWAYS, _growth(name)
    pipes = {"int": ("sm_s", 0.2), "fp32": ("sm_s", 0.3), "hmma": ("tensor_s", 1.0)}
    pipes |= dict.fromkeys(("dfma", "imma", "fp64", "fp16", "nvjpg", "nvofa"), ("sm_s", 0.0))
    for pipe, (name, share) in pipes.items():
        yield "gpu_pipe_active_seconds_total", label("pipe", pipe), HOPPER_ON, ALWAYS, _share(name, share)
    yield "gpu_pipe_active_seconds_total", label("pipe", "nvdec"), HOPPER_ON, ALWAYS, _share("seconds", 0.55)


def _share(name: str, share: float) -> Value:
    return lambda seen: share * seen.grown(name)


NVLINK_5 = {
    "malformed_packet": 0, "buffer_overrun": 0, "receive": 0, "receive_remote": 0, "receive_general": 0,
    "local_link_integrity": 0, "transmit_discard": 0, "recovery": 7, "recovery_failed": 8, "effective": 9, "symbol": 11,
}  # fmt: skip
LANES = {"crc_flit": 2, "crc_data": 3, "replay": 6, "recovery": 7}
ERRORS: dict[str, dict[str, int]] = {
    V100: LANES,
    A100: LANES,
    H100: {"replay": 6, "recovery": 7, "crc": 4},
    H200: {"replay": 6, "recovery": 7, "crc": 4},
    B200: NVLINK_5,
    GB200: NVLINK_5,
}


def _links(model: str) -> Iterator[Line]:
    links = LINKS.get(model, 0)
    if not links:
        return
    of = {model}
    unit = 1 if model in {B200, GB200} else 1024
    for direction in ("receive", "transmit"):
        name = f"nvlink_{direction}_bytes"
        each = links if unit == 1 else 1
        yield f"nvlink_{direction}_bytes_total", (), of, ALWAYS, _rounded(name, each, unit, last)
        for link in range(links):
            total = f"nvlink_link_{direction}_bytes_total"
            yield total, label("link", str(link)), of, ALWAYS, _rounded_link(name, links, unit)
    yield "nvlink_links", (), of, ALWAYS, constant(links)
    yield "nvlink_links_up", (), of, ALWAYS, constant(links)
    for kind, count in ERRORS[model].items():
        yield "nvlink_errors_total", label("type", kind), of, ALWAYS, constant(count)
        for link in range(links):
            pair: Labels = (("link", str(link)), ("type", kind))
            yield "nvlink_link_errors_total", pair, of, ALWAYS, constant(count if link == 5 else 0)
    for link in range(links):
        labels = label("link", str(link))
        yield "nvlink_up", labels, of, ALWAYS, constant(1)
        yield "nvlink_speed_bytes_per_second", labels, of, ALWAYS, of_board("nvlink_link_mb_per_s", 1e6)
        for kind, ratio in (("effective", 2e-12), ("symbol", 3e-9)):
            full: Labels = (("link", str(link)), ("type", kind))
            yield "nvlink_bit_error_ratio", full, of & {B200, GB200}, ALWAYS, constant(ratio)


def _rounded(name: str, parts: int, unit: int, when: Callable[[str], Value]) -> Value:
    """A counter that is kept in so many parts, each of whole units."""
    return lambda seen: parts * int(when(name)(seen) / parts / unit) * unit


def _rounded_link(name: str, links: int, unit: int) -> Value:
    return lambda seen: int(seen.first[name] / links / unit) * unit
