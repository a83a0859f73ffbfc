# SPDX-License-Identifier: Apache-2.0
"""What tests of network storage have in common: scans and the lanes they plan, mount tables, calls that are refused."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from gpufeed.model.storage import StorageCounters
from gpufeed.sources.contract import LanePlan, Outcome, Source
from host_bench import HostBench, read, samples_of


def scan(bench: HostBench, source: Source) -> Outcome:
    """One look for storage of a kind."""
    return read(bench.only_reader(source), f"{source.name}.slow")


def lanes(outcome: Outcome) -> tuple[LanePlan, ...]:
    """What a scan planned."""
    assert outcome.lanes is not None
    return outcome.lanes


def counters(bench: HostBench, source: Source) -> dict[str, StorageCounters]:
    """One read of every lane that a scan plans, by target."""
    outcomes = [read(bench.open(plan), f"{source.name}.fast") for plan in lanes(scan(bench, source))]
    found = [sample for outcome in outcomes for sample in samples_of(outcome, StorageCounters)]
    assert len({sample.storage for sample in found}) == len(found)
    return {sample.storage.target: sample for sample in found}


def mount(device: str, point: str, fstype: str, source: str) -> str:
    """A line of mountinfo."""
    return f"40 30 {device} / {point} rw,relatime shared:2 - {fstype} {source} rw\n"


def refusing(monkeypatch: pytest.MonkeyPatch, name: str, error: int, where: str) -> None:
    """Let a call of the system fail below a directory, whoever asks."""
    real: Callable[..., Any] = getattr(os, name)

    def guarded(path: Any, *arguments: Any, **named: Any) -> Any:
        if where in str(path):
            raise OSError(error, os.strerror(error), path)
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, name, guarded)
