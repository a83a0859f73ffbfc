# SPDX-License-Identifier: Apache-2.0
"""The health of a node over time: verdicts that continue, verdicts that wait for their input, latches."""

from collections.abc import Mapping

from gpufeed.health import latches as held
from gpufeed.health.checks import findings
from gpufeed.health.finding import Finding
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
    now_ns = state.time.monotonic_ns
    for subject, check, finding in findings(state, latches):
        if finding is not None:
            key = (subject, check)
            kept[key] = _verdict(key, finding, previous.get(key), now_ns)
    return kept, latches


def forget(verdicts: Verdicts, latches: Latches, subject: GpuUuid | IbPortKey) -> tuple[Verdicts, Latches]:
    """Verdicts and latches without a GPU or port that was taken away on purpose."""
    if isinstance(subject, IbPortKey):
        left = {key: verdict for key, verdict in verdicts.items() if key[0] != subject}
        return left, held.forget_port(latches, subject)
    gpu = GpuKey(subject)
    left = {key: verdict for key, verdict in verdicts.items() if key[0] != gpu}
    return left, held.acknowledge(latches, subject)


def _verdict(key: tuple[Subject, str], finding: Finding, before: Verdict | None, now_ns: int) -> Verdict:
    """The same level as before has held since then; the same finding is the same verdict."""
    is_latched = finding.since_ns is not None
    since_ns = now_ns if finding.since_ns is None else finding.since_ns
    if before is not None and before.level == finding.level:
        since_ns = since_ns if is_latched else before.since_ns
        as_before = (before.reason, before.action, before.is_latched, before.since_ns)
        if as_before == (finding.reason, finding.action, is_latched, since_ns):
            return before
    return Verdict(
        subject=key[0],
        check=key[1],
        level=finding.level,
        since_ns=since_ns,
        reason=finding.reason,
        action=finding.action,
        is_latched=is_latched,
    )
