# SPDX-License-Identifier: Apache-2.0
"""Every key of the configuration, with its type, default, help and flag. The file, the flags and the reference derive.

The larger parts are a file each: `web`, `collectors`, `alerting`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gpufeed.config.alerting import Alerting
from gpufeed.config.collectors import Collectors
from gpufeed.config.duration import Duration
from gpufeed.config.kinds import AbsolutePath, SourceName, between
from gpufeed.config.mark import key, lasting
from gpufeed.config.web import Web

LogLevel = Literal["debug", "info", "warn", "error"]
LogFormat = Literal["logfmt", "json"]


class Paths(Struct, frozen=True, kw_only=True):
    """Where the kernel's files are, and where ours go."""

    procfs: Annotated[AbsolutePath, key("Mount point of procfs.", flag="path.procfs", needs_restart=True)] = "/proc"
    sysfs: Annotated[AbsolutePath, key("Mount point of sysfs.", flag="path.sysfs", needs_restart=True)] = "/sys"
    rootfs: Annotated[AbsolutePath, key("Mount point of the root.", flag="path.rootfs", needs_restart=True)] = "/"
    state: Annotated[
        AbsolutePath | None,
        key("What outlives a restart is kept here; null: systemd's STATE_DIRECTORY, else nothing.", needs_restart=True),
    ] = None
    probe_socket: Annotated[
        AbsolutePath | None,
        key(
            "Socket of gpufeed-probe.service, where that unit runs the probe; null: the server starts it.",
            needs_restart=True,
        ),
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
    reports_dir: Annotated[AbsolutePath | None, key("Directory that jobs put reports of themselves in.")] = None
    report_socket: Annotated[AbsolutePath | None, key("Datagram socket that jobs report to.")] = None


class Control(Struct, frozen=True, kw_only=True):
    """The socket for commands from this machine."""

    socket: Annotated[AbsolutePath | None, key("null: control.sock in the runtime directory.", needs_restart=True)] = (
        None
    )


class Check(Struct, frozen=True, kw_only=True):
    """What counts for `gpufeed check`."""

    include: Annotated[
        tuple[str, ...],
        key("Checks that count: kind.name, kind.* or *. Not storage: one slow server would drain every node."),
    ] = ("gpu.*", "ib.*", "host.*", "self.probe")
    exclude: Annotated[tuple[str, ...], key("Of these, checks that do not count.")] = ()


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
    check: Annotated[Check, key("What counts for `gpufeed check`.")] = Check()
    alerting: Annotated[Alerting, key("Alerts.")] = Alerting()
    compat: Annotated[Compat, key("Names of other exporters.")] = Compat()
    log: Annotated[Log, key("The log, on standard error.")] = Log()
