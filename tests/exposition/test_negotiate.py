# SPDX-License-Identifier: Apache-2.0
"""What is sent, by what a client accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.exposition.negotiate import Format, accepts_gzip, exposition_format

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (PROMETHEUS_2_42, Format.OPENMETRICS),
        (PROMETHEUS_3, Format.OPENMETRICS),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ('Application/OpenMetrics-Text; Version="1.0.0"; Q=0.2', Format.OPENMETRICS),
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/html,application/xhtml+xml", Format.TEXT),
        ("text/plain;version=0.0.4", Format.TEXT),
        ("application/openmetrics-text;version=2.0.0", Format.TEXT),
        ("application/openmetrics-text;q=0", Format.TEXT),
        ("application/openmetrics-text;q=0.3,text/plain;version=0.0.4;q=0.7", Format.TEXT),
        ("application/openmetrics-text;q=0.7,text/plain;version=0.0.4;q=0.7", Format.OPENMETRICS),
        ("application/openmetrics-text;q=nonsense", Format.TEXT),
        ("application/openmetrics-text;q=7", Format.TEXT),
        (";;,,=;q", Format.TEXT),
    ],
)
def test_the_format_is_what_the_client_weighs_most(accept: str, form: Format) -> None:
    assert exposition_format(accept) is form


@pytest.mark.parametrize(
    ("accept_encoding", "allowed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("gzip;q=0", False),
        ("identity", False),
        ("", False),
    ],
)
def test_gzip_is_sent_only_to_those_who_take_it(accept_encoding: str, *, allowed: bool) -> None:
    assert accepts_gzip(accept_encoding) is allowed


@given(st.text())
def test_no_header_can_break_it(header: str) -> None:
    assert exposition_format(header) in Format
    assert accepts_gzip(header) in {True, False}


def test_content_types_are_those_that_scrapers_know() -> None:
    assert Format.TEXT.value == "text/plain; version=0.0.4; charset=utf-8"
    assert Format.OPENMETRICS.value == "application/openmetrics-text; version=1.0.0; charset=utf-8"
