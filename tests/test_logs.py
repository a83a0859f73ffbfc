# SPDX-License-Identifier: Apache-2.0
"""A record is one clean line; a failure is said when it starts and when it ends."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.logs import Formatter, Transitions, clean, configure, fields
from gpufeed.simulate.clock import SteppedClock


def record(text: str, **values: object) -> logging.LogRecord:
    made = logging.LogRecord("gpufeed.x", logging.WARNING, "x.py", 1, "%s", (text,), None)
    made.created = 0.25
    made.fields = values
    return made


def test_logfmt_quotes_what_needs_it_and_only_that() -> None:
    line = Formatter("logfmt").format(record("GPU 3 is lost", lane="gpu3", detail='said "no"', empty=""))
    assert line == (
        'ts=1970-01-01T00:00:00.250Z level=warn logger=gpufeed.x msg="GPU 3 is lost" lane=gpu3'
        ' detail="said \\"no\\"" empty=""'
    )


def test_json_holds_the_same() -> None:
    assert json.loads(Formatter("json").format(record("a", lane="gpu3"))) == {
        "ts": "1970-01-01T00:00:00.250Z",
        "level": "warn",
        "logger": "gpufeed.x",
        "msg": "a",
        "lane": "gpu3",
    }


@pytest.mark.parametrize("form", ["logfmt", "json"])
@given(text=st.text(st.characters()), value=st.text(st.characters()))
def test_any_text_is_one_encodable_line(form: str, text: str, value: str) -> None:
    line = Formatter(form).format(record(text, value=value))
    assert line.isprintable()
    line.encode("utf-8")


def test_long_values_are_cut() -> None:
    assert clean("x" * 5_000) == "x" * 1_000 + "…"


def test_a_traceback_stays_on_its_line() -> None:
    try:
        int("x")
    except ValueError:
        made = record("failed")
        made.exc_info = sys.exc_info()
    line = Formatter("logfmt").format(made)
    assert "ValueError" in line
    assert "\n" not in line


@pytest.fixture
def restored_root() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("restored_root")
def test_records_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure("warn", "logfmt", stream)
    logging.getLogger("gpufeed.x").info("quiet")
    logging.getLogger("gpufeed.x").warning("loud", extra=fields(lane="gpu1"))
    assert stream.getvalue().count("\n") == 1
    assert "msg=loud lane=gpu1" in stream.getvalue()


def test_an_outage_is_two_records_and_the_second_says_how_long(caplog: pytest.LogCaptureFixture) -> None:
    clock = SteppedClock()
    transitions = Transitions(logging.getLogger("gpufeed.x"), clock)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            transitions.recovered("a", "a answers again")
            transitions.failed("b", "b does not answer")
            transitions.failed("b", "b does not answer")
            clock.advance(1_500_000_000)
        transitions.recovered("b", "b answers again", lane="b")
        transitions.recovered("b", "b answers again", lane="b")
    assert [one.getMessage() for one in caplog.records] == ["b does not answer", "b answers again"]
    assert caplog.records[1].__dict__["fields"] == {"lane": "b", "outage": "4.5s"}
