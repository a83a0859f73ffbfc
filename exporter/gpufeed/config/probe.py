# SPDX-License-Identifier: Apache-2.0
"""The part of the configuration that the probe has to know."""

from msgspec import Struct

from gpufeed.config.collectors import Collectors
from gpufeed.config.schema import Config
from gpufeed.model.desired import CollectorOptions, ProbeConfig
from gpufeed.model.ids import CollectorName, GroupName


def probe_config(
    config: Config, runtime_dir: str, state_dir: str | None, capture_dir: str | None = None
) -> ProbeConfig:
    """What the probe shall run. Equal results need no action of it."""
    sampling = config.sampling
    return ProbeConfig(
        procfs=config.paths.procfs,
        sysfs=config.paths.sysfs,
        rootfs=config.paths.rootfs,
        runtime_dir=runtime_dir,
        state_dir=state_dir,
        tick_ns=sampling.fast_period.ns // 2,
        fast_period_ns=sampling.fast_period.ns,
        slow_period_ns=sampling.slow_period.ns,
        rare_period_ns=sampling.rare_period.ns,
        periods_ns={GroupName(name): period.ns for name, period in sampling.periods.items()},
        cost_limit_ratio=sampling.cost_limit,
        collectors=_options(config),
        extra_sources=config.sources.extra,
        job_users=config.jobs.user_label,
        capture_dir=capture_dir,
        reports_dir=config.jobs.reports_dir,
        report_socket=config.jobs.report_socket,
    )


def enabled_collectors(config: Config) -> tuple[CollectorName, ...]:
    """What is read, plus what is always on: what `collect[]` may ask for."""
    names = tuple(name for name, options in _options(config).items() if options.enabled)
    extra: tuple[CollectorName, ...] = ("extra",) if config.sources.extra else ()
    return (*names, *extra, "self")


def _options(config: Config) -> dict[CollectorName, CollectorOptions]:
    found: dict[CollectorName, CollectorOptions] = {}
    name: CollectorName
    for name in Collectors.__struct_fields__:  # type: ignore[assignment] # a test holds the two lists together
        section: Struct = getattr(config.collectors, name)
        known = {field: getattr(section, field) for field in section.__struct_fields__ if field in _PASSED}
        if name == "jobs":
            known["enabled"] = known["enabled"] and config.jobs.enabled
        found[name] = CollectorOptions(**known)
    return found


_PASSED = frozenset(CollectorOptions.__struct_fields__)
