# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration, with its type, default, help and flag. The file, the flags and the reference derive.

`key()` is what a key is besides its type: a sentence of help, the flag that sets it too, whether a change needs a
restart, and, where this version takes a key but does nothing with it yet, that it says so.
"""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field

from gpufeed.config.duration import Duration
from gpufeed.config.kinds import (
    AbsolutePath,
    Address,
    AlertName,
    HttpPath,
    LabelName,
    Regex,
    SourceName,
    Url,
    between,
)

DEFAULT_PORT: Final = 9937
"""Registration pending."""

LogLevel = Literal["debug", "info", "warn", "error"]
LogFormat = Literal["logfmt", "json"]


def key(description: str, **marks: Any) -> Meta:  # noqa: ANN401 marks are what the readers of Meta.extra look for
    """The marks of a key: `flag`, `needs_restart`, `is_secret`, `not_yet`, `check`; `ge`, `gt`, `le` bound a number."""
    return Meta(description=description, extra=marks)


def lasting(text: str) -> Duration:
    """A duration, for defaults."""
    return Duration.parse(text)


class Web(Struct, frozen=True, kw_only=True):
    """What is served over HTTP, where and to whom."""

    listen_addresses: Annotated[
        tuple[Address, ...],
        key("Where /metrics, the page and the API are served.", flag="web.listen-address", needs_restart=True),
    ] = (f"0.0.0.0:{DEFAULT_PORT}",)
    systemd_socket: Annotated[
        bool,
        key(
            "Serve on the sockets handed over by systemd instead of listen_addresses.",
            flag="web.systemd-socket",
            needs_restart=True,
        ),
    ] = False
    ui: Annotated[bool, key("Serve the page at / and the API.", needs_restart=True)] = True
    ui_listen_addresses: Annotated[
        tuple[Address, ...] | None,
        key("Serve the page and the API here instead of beside /metrics.", needs_restart=True),
    ] = None
    ui_jobs: Annotated[bool, key("Name jobs and pods on the page and in the API.")] = False
    config_file: Annotated[
        str | None,
        key("TLS and basic authentication, in the exporter-toolkit's format.", flag="web.config.file", not_yet=True),
    ] = None
    telemetry_path: Annotated[HttpPath, key("Path of the metrics.", flag="web.telemetry-path", needs_restart=True)] = (
        "/metrics"
    )
    enable_lifecycle: Annotated[
        bool, key("Allow POST to /-/reload. SIGHUP always reloads.", flag="web.enable-lifecycle")
    ] = False
    max_requests: Annotated[
        int, key("Scrapes answered at the same time; 0 is no limit.", flag="web.max-requests", ge=0)
    ] = 40


class Paths(Struct, frozen=True, kw_only=True):
    """Where the kernel's files are, and where ours go."""

    procfs: Annotated[AbsolutePath, key("Mount point of procfs.", flag="path.procfs", needs_restart=True)] = "/proc"
    sysfs: Annotated[AbsolutePath, key("Mount point of sysfs.", flag="path.sysfs", needs_restart=True)] = "/sys"
    rootfs: Annotated[AbsolutePath, key("Mount point of the root.", flag="path.rootfs", needs_restart=True)] = "/"
    state: Annotated[
        AbsolutePath | None,
        key("What outlives a restart is kept here; null: systemd's STATE_DIRECTORY, else nothing.", needs_restart=True),
    ] = None
    runtime: Annotated[
        AbsolutePath | None,
        key("Locks and the control socket; null: RUNTIME_DIRECTORY, else a private directory.", needs_restart=True),
    ] = None


class Sampling(Struct, frozen=True, kw_only=True):
    """How often is read, and what that may cost."""

    fast_period: Annotated[
        Duration, key("Period of what decides where a GPU's time went.", check=between("200ms", "2s"))
    ] = lasting("500ms")
    slow_period: Annotated[Duration, key("Period of what changes within minutes.", check=between("1s", "1h"))] = (
        lasting("10s")
    )
    rare_period: Annotated[Duration, key("Period of what hardly ever changes.", check=between("10s", "24h"))] = lasting(
        "1m"
    )
    periods: Annotated[
        dict[str, Annotated[Duration, Meta(extra={"check": between("100ms", "24h")})]],
        key("Periods of single groups, such as nvml.slow: 30s."),
    ] = field(default_factory=dict)
    cost_limit: Annotated[
        float, key("Share of one core that reading may use before fast periods are lengthened.", gt=0, le=1)
    ] = 0.03


class Exposition(Struct, frozen=True, kw_only=True):
    """Which series are exported."""

    profile: Annotated[
        Literal["minimal", "default", "full"], key("How much is exported.", flag="exposition.profile")
    ] = "default"
    drop: Annotated[tuple[str, ...], key("Metrics that are never exported, by full name.")] = ()
    max_series: Annotated[
        int, key("Above this, details of links, operations and disks are shed, and it is said so.", ge=100)
    ] = 6000


class Collector(Struct, frozen=True, kw_only=True):
    """A collector without keys of its own."""

    enabled: Annotated[bool, key("Read it.")] = True


class NvmlCollector(Struct, frozen=True, kw_only=True):
    """GPUs, through the driver's library."""

    enabled: Annotated[bool, key("Read it.")] = True
    expected_gpus: Annotated[int | None, key("GPUs this node must have; null: as many as were ever seen.", ge=0)] = None


class InfinibandCollector(Struct, frozen=True, kw_only=True):
    """RDMA devices."""

    enabled: Annotated[bool, key("Read it.")] = True
    include: Annotated[Regex, key("Devices to read.")] = ".*"
    exclude: Annotated[Regex, key("Devices to leave out.")] = "^(smi|scif)"
    expected_rate_gbps: Annotated[float | None, key("Gbit/s every port must run at.", gt=0)] = None


class BlockCollector(Struct, frozen=True, kw_only=True):
    """Local disks."""

    enabled: Annotated[bool, key("Read it.")] = True
    include: Annotated[Regex, key("Devices to read.")] = ".*"
    exclude: Annotated[Regex, key("Devices to leave out; empty: none.")] = ""


class NfsCollector(Struct, frozen=True, kw_only=True):
    """NFS mounts."""

    enabled: Annotated[bool, key("Read it.")] = True
    exclude_mounts: Annotated[Regex, key("Mount points to leave out; empty: none.")] = ""
    target_from: Annotated[
        Literal["mountpoint", "source"], key("What names a mount: where it is mounted, or server:/export.")
    ] = "mountpoint"


class GpfsCollector(Struct, frozen=True, kw_only=True):
    """GPFS (Spectrum Scale)."""

    enabled: Annotated[bool, key("Read it: starts mmpmon, which needs root, for every reading.")] = False


def _switch(help_name: str) -> Meta:
    return key(f"{help_name}.")


class Collectors(Struct, frozen=True, kw_only=True):
    """What is read."""

    nvml: Annotated[NvmlCollector, _switch("GPUs")] = NvmlCollector()
    nvlink: Annotated[Collector, _switch("NVLink")] = Collector()
    gpm: Annotated[Collector, _switch("Hardware utilization of GPUs (GPM)")] = Collector()
    xid: Annotated[Collector, _switch("XID errors")] = Collector()
    infiniband: Annotated[InfinibandCollector, _switch("InfiniBand and RoCE")] = InfinibandCollector()
    ethernet: Annotated[Collector, _switch("Ethernet")] = Collector()
    block: Annotated[BlockCollector, _switch("Local disks")] = BlockCollector()
    nfs: Annotated[NfsCollector, _switch("NFS")] = NfsCollector()
    lustre: Annotated[Collector, _switch("Lustre")] = Collector()
    gpfs: Annotated[GpfsCollector, _switch("GPFS")] = GpfsCollector()
    beegfs: Annotated[Collector, _switch("BeeGFS")] = Collector()
    ceph: Annotated[Collector, _switch("CephFS")] = Collector()
    weka: Annotated[Collector, _switch("Weka")] = Collector()
    fuse: Annotated[Collector, _switch("FUSE mounts")] = Collector()
    gds: Annotated[Collector, _switch("GPUDirect Storage")] = Collector()
    pressure: Annotated[Collector, _switch("Pressure stall information")] = Collector()
    host: Annotated[Collector, _switch("Processors and memory")] = Collector()
    jobs: Annotated[Collector, _switch("Who owns which GPU")] = Collector()


class Sources(Struct, frozen=True, kw_only=True):
    """Sources of others."""

    extra: Annotated[tuple[SourceName, ...], key("Entry points of group gpufeed.sources to load in the probe.")] = ()


class Capacity(Struct, frozen=True, kw_only=True):
    """What a storage target can deliver, in bytes per second."""

    read: Annotated[float | None, key("Bytes per second when reading.", gt=0)] = None
    write: Annotated[float | None, key("Bytes per second when writing.", gt=0)] = None


class Storage(Struct, frozen=True, kw_only=True):
    """What is known of the storage."""

    capacity: Annotated[dict[str, Capacity], key('By kind and target, such as "nfs:/data": {read: 5.0e9}.')] = field(
        default_factory=dict
    )


class Jobs(Struct, frozen=True, kw_only=True):
    """Jobs on the GPUs."""

    enabled: Annotated[bool, key("Find out which job owns a GPU.")] = True
    user_label: Annotated[bool, key("Export the user's name with the job.")] = False
    reports_dir: Annotated[AbsolutePath | None, key("Text files that jobs report in.", not_yet=True)] = None
    report_socket: Annotated[AbsolutePath | None, key("Socket that jobs report to.", not_yet=True)] = None


class Control(Struct, frozen=True, kw_only=True):
    """The socket for commands from this machine."""

    socket: Annotated[AbsolutePath | None, key("null: control.sock in the runtime directory.", needs_restart=True)] = (
        None
    )


class BasicAuth(Struct, frozen=True, kw_only=True):
    """A name and a password."""

    username: Annotated[str, key("Name.")]
    password: Annotated[str | None, key("Password; better kept in password_file.", is_secret=True)] = None
    password_file: Annotated[str | None, key("File that holds the password.")] = None


class TlsClient(Struct, frozen=True, kw_only=True):
    """How a receiver is verified, and what we show it."""

    ca_file: Annotated[str | None, key("Authorities to trust instead of the system's.")] = None
    cert_file: Annotated[str | None, key("Our certificate.")] = None
    key_file: Annotated[str | None, key("Our key.")] = None
    server_name: Annotated[str | None, key("Name to verify instead of the URL's.")] = None


class Receiver(Struct, frozen=True, kw_only=True):
    """Where alerts are sent."""

    url: Annotated[Url, key("Address.")]
    basic_auth: Annotated[BasicAuth | None, key("Name and password.")] = None
    bearer_token_file: Annotated[str | None, key("File that holds a bearer token.")] = None
    tls: Annotated[TlsClient | None, key("TLS.")] = None
    timeout: Annotated[Duration, key("Longest wait for an answer.", check=between("1s", "1m"))] = lasting("10s")


class Threshold(Struct, frozen=True, kw_only=True):
    """What a site changes about a built-in alert; null leaves it."""

    threshold: Annotated[float | None, key("Limit.")] = None
    for_: Annotated[Duration | None, key("How long it must hold.")] = field(default=None, name="for")
    enabled: Annotated[bool | None, key("Whether it exists at all.")] = None
    evaluator: Annotated[Literal["prometheus", "node", "both"] | None, key("Who evaluates it.")] = None


class SiteCondition(Struct, frozen=True, kw_only=True):
    """An alert of the site's own, over one exported series."""

    alert: Annotated[AlertName, key("Name.")]
    metric: Annotated[str, key("Series, by full name.")]
    threshold: Annotated[float, key("Limit.")]
    labels: Annotated[dict[LabelName, str], key("Labels the series must carry.")] = field(default_factory=dict)
    statistic: Annotated[Literal["last", "min", "max", "mean", "rate", "increase"], key("Over the window.")] = "last"
    window: Annotated[Duration, key("Window.", check=between("1s", "30m"))] = lasting("1m")
    comparison: Annotated[Literal[">", ">=", "<", "<=", "==", "!="], key("How it compares.")] = ">"
    for_: Annotated[Duration, key("How long it must hold.")] = field(default=lasting("0s"), name="for")
    keep_firing_for: Annotated[Duration, key("How long it fires on after that.")] = lasting("0s")
    severity: Annotated[Literal["page", "ticket", "info"], key("Severity.")] = "ticket"
    summary: Annotated[str, key("One sentence for people.")] = ""


class Alerting(Struct, frozen=True, kw_only=True):
    """Alerts sent from the node itself; none by default."""

    alertmanagers: Annotated[tuple[Receiver, ...], key("Each gets every alert that the node itself evaluates.")] = ()
    webhooks: Annotated[
        tuple[Receiver, ...], key("Each gets every beginning and end of an alert, in Alertmanager's webhook form.")
    ] = ()
    labels: Annotated[dict[LabelName, str], key("On every alert; copy them from Prometheus' scrape configuration.")] = (
        field(default_factory=lambda: {"job": "gpufeed", "instance": f"{{hostname}}:{DEFAULT_PORT}"})
    )
    runbook_base_url: Annotated[Url | None, key("Runbooks are linked below this.")] = None
    thresholds: Annotated[dict[AlertName, Threshold], key("What the site changes, by alert name.")] = field(
        default_factory=dict
    )
    conditions: Annotated[tuple[SiteCondition, ...], key("Alerts of the site's own.", not_yet=True)] = ()


class Compat(Struct, frozen=True, kw_only=True):
    """Names of other exporters."""

    dcgm: Annotated[
        Literal["4.8", "4.8.3", "4.9"] | None, key("Export dcgm-exporter's names too, in this dialect.", not_yet=True)
    ] = None


class Log(Struct, frozen=True, kw_only=True):
    """The log, on standard error."""

    level: Annotated[LogLevel, key("Least severity that is written.", flag="log.level")] = "info"
    format: Annotated[LogFormat, key("Form of a line.", flag="log.format")] = "logfmt"


class Config(Struct, frozen=True, kw_only=True):
    """The configuration of a node."""

    web: Annotated[Web, key("What is served over HTTP.")] = Web()
    paths: Annotated[Paths, key("Where things are.")] = Paths()
    sampling: Annotated[Sampling, key("How often is read, and what that may cost.")] = Sampling()
    exposition: Annotated[Exposition, key("Which series are exported.")] = Exposition()
    collectors: Annotated[Collectors, key("What is read.")] = Collectors()
    sources: Annotated[Sources, key("Sources of others.")] = Sources()
    storage: Annotated[Storage, key("What is known of the storage.")] = Storage()
    jobs: Annotated[Jobs, key("Jobs on the GPUs.")] = Jobs()
    control: Annotated[Control, key("The socket for commands from this machine.")] = Control()
    alerting: Annotated[Alerting, key("Alerts.")] = Alerting()
    compat: Annotated[Compat, key("Names of other exporters.")] = Compat()
    log: Annotated[Log, key("The log, on standard error.")] = Log()
