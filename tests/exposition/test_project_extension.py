# SPDX-License-Identifier: Apache-2.0
"""Third-party values: exported under their own names, held to the rules, and unable to hurt the rest."""

from hypothesis import given
from hypothesis import strategies as st

from exposition import nodes
from exposition.oracle import parse_openmetrics
from exposition.reading import family_of, rows_of
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.sample import Extension
from gpufeed.model.state import NodeState


def sending(*samples: Extension) -> NodeState:
    return nodes.with_samples(NodeState(time=nodes.TIME), *samples)


def extension(
    metric: str, value: float = 1.0, *, source: str = "pdu", is_counter: bool = False, **labels: str
) -> Extension:
    return Extension(source=source, metric=metric, labels=tuple(labels.items()), value=value, is_counter=is_counter)


def test_a_value_appears_under_source_and_metric() -> None:
    state = sending(extension("outlet_watts", 230.5, outlet="7"), extension("outlet_watts", 0.0, outlet="8"))
    assert rows_of(state, "gpufeed_ext_pdu_outlet_watts") == [({"outlet": "7"}, 230.5), ({"outlet": "8"}, 0.0)]


def test_a_counter_gets_its_suffix_once() -> None:
    state = sending(extension("reads", is_counter=True), extension("writes_total", is_counter=True))
    for name in ("gpufeed_ext_pdu_reads_total", "gpufeed_ext_pdu_writes_total"):
        family = family_of(state, name)
        assert family is not None
        assert family.definition.type == "counter"


def test_help_becomes_a_sentence() -> None:
    with_help = Extension(source="pdu", metric="a", labels=(), value=1.0, help="Power of an outlet")
    state = sending(with_help, extension("b"))
    told, untold = family_of(state, "gpufeed_ext_pdu_a"), family_of(state, "gpufeed_ext_pdu_b")
    assert told is not None
    assert told.definition.help == "Power of an outlet."
    assert untold is not None
    assert untold.definition.help == "From the source pdu."


def test_rows_with_different_labels_are_one_family() -> None:
    state = sending(extension("x", 1.0, a="1"), extension("x", 2.0, b="2"))
    assert rows_of(state, "gpufeed_ext_pdu_x") == [({"a": "1", "b": ""}, 1.0), ({"a": "", "b": "2"}, 2.0)]


def test_names_are_made_lower_case_words() -> None:
    assert rows_of(sending(extension("Outlet.Watts", source="My-PDU")), "gpufeed_ext_my_pdu_outlet_watts")


def test_what_breaks_a_rule_is_left_out_and_the_rest_stands() -> None:
    state = sending(
        extension("bad_total"),  # a gauge that looks like a counter
        extension("worse", instance="x"),  # Prometheus owns that label
        extension("good", 5.0),
    )
    names = {family.definition.name for family in families(state, ServerFacts()) if "_ext_" in family.definition.name}
    assert names == {"gpufeed_ext_pdu_good"}


def test_a_counter_that_is_negative_or_no_number_has_no_row() -> None:
    state = sending(
        extension("reads", -1.0, is_counter=True, a="1"),
        extension("reads", float("nan"), is_counter=True, a="2"),
        extension("reads", 0.0, is_counter=True, a="3"),
        extension("level", -1.0),
    )
    assert rows_of(state, "gpufeed_ext_pdu_reads_total") == [({"a": "3"}, 0.0)]
    assert rows_of(state, "gpufeed_ext_pdu_level") == [({}, -1.0)]


def test_a_gauge_and_a_counter_that_openmetrics_cannot_tell_apart_do_not_both_appear() -> None:
    state = sending(extension("reads", 1.0), extension("reads", 2.0, is_counter=True, a="1"))
    names = [family.definition.name for family in families(state, ServerFacts()) if "_ext_" in family.definition.name]
    assert names == ["gpufeed_ext_pdu_reads"]


words = st.text(max_size=12)


@given(
    st.lists(
        st.builds(
            Extension,
            source=words,
            metric=words,
            labels=st.lists(st.tuples(words, words), max_size=3).map(tuple),
            value=st.floats(),
            help=words,
            is_counter=st.booleans(),
        ),
        max_size=6,
    )
)
def test_whatever_a_source_sends_the_page_stays_valid(sent: list[Extension]) -> None:
    encoder = Encoder(profile="full")
    page = encoder.encode(families(sending(*sent), ServerFacts())).page(Format.OPENMETRICS).decode()
    assert page.endswith("# EOF\n")
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)
    assert [metric.name for metric in parse_openmetrics(page) if metric.name == "gpufeed_probe_up"]
