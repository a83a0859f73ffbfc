# SPDX-License-Identifier: Apache-2.0
"""Storage of every kind."""

from collections.abc import Iterator
from typing import Final

from gpufeed.catalogue import storage
from gpufeed.exposition.family import Family, Labels
from gpufeed.exposition.rows import Labelled, family, text
from gpufeed.model.ids import StorageKey
from gpufeed.model.state import NodeState
from gpufeed.model.storage import StorageCounters, StorageInfo

_SET: Final = "true"  # an option that stands without a value


def families(state: NodeState) -> Iterator[Family]:
    """What targets are, then their work."""
    yield Family(storage.STORAGE_INFO, [(_description(held.sample), 1) for held in state.latest(StorageInfo).values()])
    counters = [(target_labels(held.sample.storage), held.sample) for held in state.latest(StorageCounters).values()]
    yield from _work(counters)
    yield from _trouble(counters)
    yield from _operations(counters)


def target_labels(target: StorageKey) -> Labels:
    """Kind and target."""
    return (target.kind, target.target)


def _description(info: StorageInfo) -> Labels:
    options = info.options or {}
    chosen = (options[name] or _SET if name in options else "" for name in storage.STORAGE_OPTIONS)
    return (*target_labels(info.storage), text(info.source), text(info.fstype), *chosen)


def _work(counters: Labelled[StorageCounters]) -> Iterator[Family]:
    yield family(storage.STORAGE_READ_BYTES_TOTAL, counters, lambda counter: counter.read_bytes)
    yield family(storage.STORAGE_WRITE_BYTES_TOTAL, counters, lambda counter: counter.write_bytes)
    yield family(storage.STORAGE_APPLICATION_READ_BYTES_TOTAL, counters, lambda c: c.application_read_bytes)
    yield family(storage.STORAGE_READS_TOTAL, counters, lambda counter: counter.reads)
    yield family(storage.STORAGE_WRITES_TOTAL, counters, lambda counter: counter.writes)
    yield family(storage.STORAGE_READ_SECONDS_TOTAL, counters, lambda counter: counter.read_s)
    yield family(storage.STORAGE_WRITE_SECONDS_TOTAL, counters, lambda counter: counter.write_s)
    yield family(storage.STORAGE_QUEUE_SECONDS_TOTAL, counters, lambda counter: counter.queue_s)
    yield family(storage.STORAGE_BUSY_SECONDS_TOTAL, counters, lambda counter: counter.busy_s)
    yield family(storage.STORAGE_INFLIGHT, counters, lambda counter: counter.inflight)


def _trouble(counters: Labelled[StorageCounters]) -> Iterator[Family]:
    yield family(storage.STORAGE_RETRANSMITS_TOTAL, counters, lambda counter: counter.retransmits)
    yield family(storage.STORAGE_TIMEOUTS_TOTAL, counters, lambda counter: counter.timeouts)
    yield family(storage.STORAGE_ERRORS_TOTAL, counters, lambda counter: counter.errors)


def _operations(counters: Labelled[StorageCounters]) -> Iterator[Family]:
    yield Family(
        storage.STORAGE_OPERATIONS_TOTAL,
        [((*key, name), count) for key, counter in counters for name, count in (counter.operations or {}).items()],
    )
    yield Family(
        storage.STORAGE_OPERATION_SECONDS_TOTAL,
        [((*key, name), took_s) for key, counter in counters for name, took_s in (counter.operation_s or {}).items()],
    )
