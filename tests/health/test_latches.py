# SPDX-License-Identifier: Apache-2.0
"""Latches: what sets them, what clears them, what does neither."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.health.fold import Verdicts, fold, forget
from gpufeed.health.latches import Latches, acknowledge, observe
from gpufeed.model.ids import GpuKey
from gpufeed.model.state import NodeState
from health.states import (
    MINUTE,
    NFS,
    ONE,
    PORT,
    SECOND,
    START,
    TWO,
    fast,
    ib_errors,
    level,
    levels,
    nfs,
    node,
    port,
    record,
    slow,
    xids,
)  # fmt: skip

GPU = GpuKey(ONE)


def after(*states: NodeState) -> Latches:
    latches = Latches()
    for state in states:
        latches = observe(latches, state)
    return latches


def restarted(latches: Latches) -> Latches:
    """What comes back from a state file."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(latches), type=Latches)


FATAL = node(xids=xids(ONE, x79=1))


def test_a_fatal_xid_stays_failed_while_the_gpu_looks_well() -> None:
    assert levels(GPU, "xid", FATAL, FATAL, node(xids=xids(ONE, x79=1))) == [2, 2, 2]


def test_a_latch_outlives_a_restart_of_the_daemon() -> None:
    latches = restarted(after(FATAL))
    assert level(FATAL, GPU, "xid", latches) == 2
    assert level(node(), GPU, "xid", latches) == 2  # also where the totals were not kept


def test_an_xid_that_was_answered_is_not_answered_again() -> None:
    latches = restarted(acknowledge(after(FATAL), ONE))
    assert level(FATAL, GPU, "xid", latches) == 0


def test_the_same_code_a_second_time_latches_again() -> None:
    latches = acknowledge(after(FATAL), ONE)
    assert level(node(xids=xids(ONE, x79=2)), GPU, "xid", latches) == 2


def test_a_count_that_began_again_counts_as_new() -> None:
    latches = acknowledge(after(node(xids=xids(ONE, x79=3))), ONE)
    assert level(node(xids=xids(ONE, x79=1)), GPU, "xid", latches) == 2


def test_a_graver_xid_takes_over_and_a_lesser_does_not() -> None:
    contained = node(xids=xids(ONE, x94=1))
    assert levels(GPU, "xid", contained, node(xids=xids(ONE, x94=1, x95=1))) == [1, 2]
    assert levels(GPU, "xid", FATAL, node(xids=xids(ONE, x79=1, x94=1))) == [2, 2]


def test_a_reboot_clears_everything() -> None:
    latches = after(FATAL, node(gpus={ONE: record(ONE, "lost")}))
    assert level(node(boot_id="boot-2", at_ns=SECOND), GPU, "xid", latches) == 0
    assert level(node(boot_id="boot-2", at_ns=SECOND), GPU, "lost", latches) == 0


def test_a_reboot_is_seen_without_boot_ids_by_a_clock_that_began_again() -> None:
    latches = restarted(after(node(boot_id=None, xids=xids(ONE, x79=1))))
    assert level(node(boot_id=None, at_ns=SECOND), GPU, "xid", latches) == 0


def test_until_the_boot_is_known_a_saved_latch_says_nothing() -> None:
    latches = restarted(after(FATAL, node(gpus={ONE: record(ONE, "lost")})))
    unknown = node(boot_id=None, gpus={ONE: record(ONE, "denied")})
    assert level(unknown, GPU, "xid", latches) is None
    assert level(unknown, GPU, "lost", latches) is None
    assert level(node(gpus={ONE: record(ONE, "denied")}), GPU, "lost", observe(latches, unknown)) == 2


def test_a_gpu_found_lost_now_is_lost_whatever_boot_it_is() -> None:
    latches = after(FATAL)
    assert level(node(boot_id=None, gpus={ONE: record(ONE, "lost")}), GPU, "lost", latches) == 2


def test_a_recovery_action_that_went_back_to_none_is_a_reset() -> None:
    asked = node(slow(recovery_action=1), xids=xids(ONE, x95=1))
    done = node(slow(recovery_action=0), xids=xids(ONE, x95=1))
    assert levels(GPU, "xid", asked, asked, done) == [2, 2, 0]


def test_a_driver_that_never_asked_for_anything_has_not_recovered() -> None:
    assert levels(GPU, "xid", *[node(slow(recovery_action=0), xids=xids(ONE, x79=1))] * 3) == [2, 2, 2]


def test_an_energy_counter_that_began_again_is_a_reset() -> None:
    states = [node(fast(energy_j=joules), xids=xids(ONE, x79=1)) for joules in (1e6, 1e6, 1.1e6, 2e3)]
    assert levels(GPU, "xid", *states) == [2, 2, 2, 0]


def test_a_glitch_of_the_energy_counter_is_no_reset() -> None:
    states = [node(fast(energy_j=joules), xids=xids(ONE, x79=1)) for joules in (1e6, 1e6, 0.999e6)]
    assert levels(GPU, "xid", *states) == [2, 2, 2]


def test_a_gpu_that_was_gone_and_answers_is_cleared_of_both() -> None:
    gone = node(gpus={ONE: record(ONE, "lost")}, xids=xids(ONE, x79=1))
    assert levels(GPU, "xid", FATAL, gone, FATAL) == [2, 2, 0]
    assert levels(GPU, "lost", FATAL, gone, FATAL) == [0, 2, 0]


def test_a_hang_that_ends_clears_nothing() -> None:
    hung = node(gpus={ONE: record(ONE, "hung")}, xids=xids(ONE, x79=1))
    assert levels(GPU, "xid", FATAL, hung, FATAL) == [2, 2, 2]


def test_a_lost_gpu_stays_lost_while_it_is_not_heard_of() -> None:
    lost, quiet = node(gpus={ONE: record(ONE, "lost")}), node(gpus={ONE: record(ONE, "released")})
    assert levels(GPU, "lost", lost, quiet, node(gpus={}), node()) == [2, 2, 2, 0]


def test_a_gpu_not_in_the_inventory_keeps_its_latches() -> None:
    assert levels(GPU, "xid", FATAL, node(gpus={}), FATAL) == [2, 2, 2]


def test_a_loss_that_goes_on_latches_again_after_the_acknowledgement() -> None:
    lost = node(gpus={ONE: record(ONE, "lost")})
    assert level(lost, GPU, "lost", acknowledge(after(lost), ONE)) == 2


def test_an_acknowledgement_is_of_one_gpu() -> None:
    both = node(xids=xids(ONE, x79=1) | xids(TWO, x79=1))
    latches = acknowledge(after(both), ONE)
    assert [level(both, GpuKey(uuid), "xid", latches) for uuid in (ONE, TWO)] == [0, 2]


def test_an_acknowledged_verdict_goes_also_while_nobody_can_look() -> None:
    denied = node(gpus={ONE: record(ONE, "denied")}, xids=xids(ONE, x79=1))
    verdicts, latches = fold({}, FATAL, Latches())
    verdicts, _ = fold(verdicts, denied, acknowledge(latches, ONE))
    assert (GPU, "xid") not in verdicts


def test_a_double_bit_error_waits_a_minute_for_the_word_that_it_was_contained() -> None:
    states = [node(xids=xids(ONE, x48=1), at_ns=START + at * SECOND) for at in (0, 59, 60)]
    assert levels(GPU, "xid", *states) == [0, 0, 2]


def test_a_double_bit_error_that_was_contained_is_contained() -> None:
    states = [
        node(xids=xids(ONE, x48=1)),
        node(xids=xids(ONE, x48=1, x94=1), at_ns=START + 59 * SECOND),
        node(xids=xids(ONE, x48=1, x94=1), at_ns=START + 120 * SECOND),
    ]
    assert levels(GPU, "xid", *states) == [0, 1, 1]


def test_both_words_at_once_are_contained() -> None:
    states = [node(xids=xids(ONE, x48=1, x94=1), at_ns=START + at * MINUTE) for at in (0, 2)]
    assert levels(GPU, "xid", *states) == [1, 1]


def test_a_latch_says_since_when() -> None:
    verdicts, latches = fold({}, FATAL, Latches())
    verdicts, _ = fold(verdicts, node(xids=xids(ONE, x79=1), at_ns=START + MINUTE), latches)
    assert verdicts[GPU, "xid"].since_ns == START
    assert verdicts[GPU, "xid"].is_latched


def test_a_forgotten_gpu_leaves_nothing() -> None:
    verdicts, latches = fold({}, FATAL, Latches())
    verdicts, latches = forget(verdicts, latches, ONE)
    assert {subject for subject, _ in verdicts} == {GpuKey(TWO)}
    assert not latches.xids


def test_all_that_is_remembered_goes_through_the_state_file_unchanged() -> None:
    latches = after(
        node(port(), ib_errors(local_link_integrity_errors=1), nfs(timeouts=1), ib_flaps={PORT: 1}),
        node(
            port(1, 2),
            ib_errors(local_link_integrity_errors=2),
            nfs(timeouts=2),
            fast(energy_j=1.5),
            ib_flaps={PORT: 3},
            xids=xids(ONE, x79=1) | xids(TWO, x48=1),
            gpus={ONE: record(ONE), TWO: record(TWO, "lost", detail="GPU is lost")},
        ),
    )
    assert latches.xids
    assert latches.lost
    assert latches.undecided
    assert latches.baselines.ports_once_up == {PORT}
    assert latches.baselines.storage_errors[NFS]["timeouts"].value == 2
    assert restarted(latches) == latches


# What may befall a GPU that has a latched fatal XID and lets the latch stand: hangs, silence, restarts, further XIDs.
HARMLESS = st.sampled_from(
    ["well", "hung", "denied", "error", "released", "no samples", "not listed", "restart", "more"]
)


@given(st.lists(HARMLESS, max_size=30))
def test_a_fatal_xid_is_never_cleared_without_a_clearing_event(events: list[str]) -> None:
    verdicts: Verdicts
    verdicts, latches = fold({}, FATAL, Latches())
    count = 1
    for number, event in enumerate(events, 1):
        at_ns = START + number * SECOND
        totals = xids(ONE, x79=1, x31=count)
        if event == "restart":
            verdicts, latches = {}, restarted(latches)
            state = node(at_ns=at_ns, xids=totals)
        elif event == "no samples":
            state = node(at_ns=at_ns, xids=totals, samples={})
        elif event == "not listed":
            state = node(at_ns=at_ns, gpus={})
        elif event == "more":
            count += 1
            state = node(at_ns=at_ns, xids=xids(ONE, x79=1, x31=count))
        else:
            condition = "ok" if event == "well" else event
            state = node(fast(energy_j=1e6 + number), at_ns=at_ns, gpus={ONE: record(ONE, condition)}, xids=totals)
        verdicts, latches = fold(verdicts, state, latches)
        assert ONE in latches.xids
        if event not in {"no samples", "not listed"}:
            assert verdicts[GPU, "xid"].level == 2


@given(st.lists(st.sampled_from(["lost", "missing", "hung", "denied", "error", "released", "restart"]), max_size=30))
def test_a_lost_gpu_is_never_well_before_it_answers(conditions: list[str]) -> None:
    verdicts: Verdicts
    verdicts, latches = fold({}, node(gpus={ONE: record(ONE, "lost")}), Latches())
    for number, condition in enumerate(conditions, 1):
        if condition == "restart":
            verdicts, latches = {}, restarted(latches)
            continue
        state = node(gpus={ONE: record(ONE, condition)}, at_ns=START + number * SECOND)
        verdicts, latches = fold(verdicts, state, latches)
        assert verdicts[GPU, "lost"].level == 2
    _, latches = fold(verdicts, node(at_ns=START + 60 * SECOND), latches)
    assert not latches.lost
