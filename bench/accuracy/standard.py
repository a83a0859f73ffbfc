# SPDX-License-Identifier: Apache-2.0
"""The bars, as `standard.toml` has them."""

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bench.accuracy.alarm import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """What a view of all scenarios together is held to. Shares; None: not held to it."""

    share_error_median: float
    share_error_p95: float
    wrong_cause: float
    unknown: float | None = None

    def scaled(self, factor: float) -> "Bars":
        """So many times as lenient."""
        return replace(
            self,
            share_error_median=self.share_error_median * factor,
            share_error_p95=self.share_error_p95 * factor,
            wrong_cause=self.wrong_cause * factor,
            unknown=None if self.unknown is None else self.unknown * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """All of it."""

    with_gpm: Bars
    without_gpm: Bars
    missing_wrong_cause: float
    false_starvation: float
    alerts: int
    two_causes_margin: float
    slow_from_s: float
    slow_factor: float
    rule: Rule

    @classmethod
    @cache
    def load(cls) -> "Standard":
        """From the file beside this one."""
        data = tomllib.loads(Path(__file__).with_name("standard.toml").read_text(encoding="utf-8"))
        alert = data["alert"]
        return cls(
            with_gpm=Bars(**data["with_gpm"]),
            without_gpm=Bars(**data["without_gpm"]),
            missing_wrong_cause=data["missing_input"]["wrong_cause"],
            false_starvation=data["healthy"]["false_starvation"],
            alerts=data["healthy"]["alerts"],
            two_causes_margin=data["two_causes"]["margin"],
            slow_from_s=data["slow"]["period_s"],
            slow_factor=data["slow"]["factor"],
            rule=Rule(threshold=alert["threshold"], windows_s=tuple(alert["windows_s"]), for_s=float(alert["for_s"])),
        )

    def factor(self, period_ms: int) -> float:
        """How much more lenient at this fast period."""
        return self.slow_factor if period_ms >= 1000 * self.slow_from_s else 1.0
