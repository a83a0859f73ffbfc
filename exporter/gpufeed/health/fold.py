# SPDX-License-Identifier: Apache-2.0
"""The health of a node over time: verdicts that continue, verdicts that wait for their input, latches."""

from collections.abc import Mapping
from dataclasses import replace

from gpufeed.health import latches as held
from gpufeed.health.checks import judge
from gpufeed.health.latches import Latches
from gpufeed.model.ids import GpuKey, GpuUuid, IbPortKey
from gpufeed.model.state import NodeState, Subject, Verdict

Verdicts = Mapping[tuple[Subject, str], Verdict]


def fold(previous: Verdicts, state: NodeState, latches: Latches) -> tuple[Verdicts, Latches]:
    """The verdicts and latches after `state`.

    A check that can no longer be answered keeps a 1 or 2 until an answer clears it, and loses a 0. What a latch held
    goes with its latch.
    """
    latches = held.observe(latches, state)
    kept = {
        key: verdict
        for key, verdict in previous.items()
        if verdict.level > 0 and (not verdict.is_latched or held.holds(latches, verdict))
    }
    said = {(verdict.subject, verdict.check): verdict for verdict in judge(state, latches)}
    return kept | {key: _continued(previous.get(key), verdict) for key, verdict in said.items()}, latches


def forget(verdicts: Verdicts, latches: Latches, subject: GpuUuid | IbPortKey) -> tuple[Verdicts, Latches]:
    """Verdicts and latches without a GPU or port that was taken away on purpose."""
    if isinstance(subject, IbPortKey):
        left = {key: verdict for key, verdict in verdicts.items() if key[0] != subject}
        return left, held.forget_port(latches, subject)
    gpu = GpuKey(subject)
    left = {key: verdict for key, verdict in verdicts.items() if key[0] != gpu}
    return left, held.acknowledge(latches, subject)


def _continued(before: Verdict | None, now: Verdict) -> Verdict:
    """The same level as before has held since then."""
    if before is None or before.level != now.level or now.is_latched:
        return now
    return replace(now, since_ns=before.since_ns)
