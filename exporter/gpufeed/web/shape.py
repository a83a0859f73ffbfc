# SPDX-License-Identifier: Apache-2.0
"""The forms of the API: what /api/v1/status and /api/v1/history answer, and what the page is drawn from.

Fields are only ever added. Base units; null: not measured.
"""

from msgspec import Struct


class StateSeconds(Struct, frozen=True):
    """Time a GPU spent in one state."""

    state: str
    cause: str
    seconds: float


class Reason(Struct, frozen=True):
    """One piece of evidence behind the current state."""

    input: str
    value: float
    unit: str


class SlotView(Struct, frozen=True):
    """What a GPU did from `time_seconds` on, for the length of a slot."""

    time_seconds: float  # since 1970
    states: tuple[StateSeconds, ...]


class JobName(Struct, frozen=True):
    """Whose a GPU is; only where `web.ui_jobs` says so."""

    scheduler: str
    job: str
    step: str
    namespace: str
    pod: str


class GpuView(Struct, frozen=True):
    """One GPU."""

    index: int
    uuid: str
    name: str | None
    pci_bus_id: str | None
    condition: str
    detail: str
    state: str
    cause: str
    confidence: float | None
    evidence: tuple[Reason, ...]
    tracked_seconds: float
    states: tuple[StateSeconds, ...]  # since it was first seen, the longest first
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    power_watts: float | None
    temperature_celsius: float | None
    processes: int | None
    recent: tuple[StateSeconds, ...] = ()  # of the last five minutes, the longest first
    nvlink_bytes_per_second: float | None = None  # received and sent
    job: JobName | None = None


class LaneView(Struct, frozen=True):
    """One lane of the probe."""

    lane: str
    collector: str
    state: str  # ok, late, stuck
    busy_seconds: float  # since the call outstanding began
    call: str


class CollectorView(Struct, frozen=True):
    """How fresh a collector's readings are."""

    collector: str
    successful: bool
    age_seconds: float | None  # of its last good read; null: there was none
    errors: int


class InputView(Struct, frozen=True):
    """One input that is not measured."""

    input: str
    scope: str
    state: str
    reason: str
    fix: str


class HealthView(Struct, frozen=True):
    """One check that is not ok."""

    subject: str
    check: str
    level: str
    reason: str
    action: str


class AlertView(Struct, frozen=True):
    """One alert that is pending or fires."""

    name: str
    severity: str
    state: str
    text: str


class StorageView(Struct, frozen=True):
    """One storage target, over the last ten seconds."""

    kind: str
    target: str
    source: str | None
    read_bytes_per_second: float | None
    write_bytes_per_second: float | None
    read_latency_seconds: float | None  # mean of the reads that ended; null: none did
    busy: float | None  # share of time with a request under way
    health: str  # ok, degraded, failed


class PortView(Struct, frozen=True):
    """One fabric port, over the last ten seconds."""

    device: str
    port: int
    link_layer: str | None
    active: bool | None
    rate_bytes_per_second: float | None  # what the port can do in one direction
    receive_bytes_per_second: float | None
    transmit_bytes_per_second: float | None
    used: float | None  # of the busier direction
    health: str


class PressureView(Struct, frozen=True):
    """Pressure on one resource of the host, over the last ten seconds."""

    resource: str
    waiting: float  # share of time in which some task waited
    stalled: float | None  # share of time in which all did


class Headline(Struct, frozen=True):
    """The node in a few words."""

    tone: str  # good, idle, blind, warn, bad
    text: str
    detail: str
    advice: str = ""


class EventView(Struct, frozen=True):
    """An alert that began or ended, or a check that became worse or better."""

    time_seconds: float
    kind: str  # alert or health
    name: str
    of: str
    to: str  # firing, resolved; ok, degraded, failed
    severity: str
    text: str


class ReceiverView(Struct, frozen=True):
    """Where this node sends its own alerts, and what has not arrived there."""

    receiver: str
    level: str  # ok, degraded: alerts wait; failed: alerts were given up
    waiting: int
    dropped: int


class NodeView(Struct, frozen=True):
    """Everything the page shows, of one moment."""

    version: str
    hostname: str
    simulated: bool
    scenario: str
    time_seconds: float  # of the frame all of this is from
    ready: bool
    probe_up: bool
    gpus: tuple[GpuView, ...]
    lanes: tuple[LaneView, ...]
    missing_inputs: tuple[InputView, ...]
    health: tuple[HealthView, ...]
    alerts: tuple[AlertView, ...]
    headline: Headline = Headline("blind", "", "")
    recent: tuple[StateSeconds, ...] = ()  # of all GPUs, of the last five minutes
    storage: tuple[StorageView, ...] = ()
    fabric: tuple[PortView, ...] = ()
    pressure: tuple[PressureView, ...] = ()
    collectors: tuple[CollectorView, ...] = ()
    events: tuple[EventView, ...] = ()  # the newest changes, the newest first
    receivers: tuple[ReceiverView, ...] = ()


class GpuHistory(Struct, frozen=True):
    """The recent past of one GPU; slots in which nothing was decided are missing."""

    index: int
    uuid: str
    slots: tuple[SlotView, ...]


class History(Struct, frozen=True):
    """Where the time of every GPU went lately."""

    time_seconds: float
    slot_seconds: float
    gpus: tuple[GpuHistory, ...]
    events: tuple[EventView, ...] = ()  # all that is remembered of what changed, the newest first


class Problem(Struct, frozen=True):
    """Why a request was refused."""

    error: str
