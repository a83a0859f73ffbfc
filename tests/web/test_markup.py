# SPDX-License-Identifier: Apache-2.0
"""Markup escapes everything that it did not make itself."""

import html

from hypothesis import given
from hypothesis import strategies as st

from gpufeed.web.markup import join, tag, void


def test_elements_nest_and_texts_are_escaped() -> None:
    assert tag("p", "a < b ", tag("b", "&"), class_="x", aria_label='"', title=None) == (
        '<p class="x" aria-label="&quot;">a &lt; b <b>&amp;</b></p>'
    )
    assert void("meta", name="viewport") == '<meta name="viewport">'
    assert join() == ""


@given(st.text())
def test_no_text_becomes_an_element(text: str) -> None:
    inside = tag("p", text).removeprefix("<p>").removesuffix("</p>")
    assert "<" not in inside
    assert html.unescape(inside) == html.unescape(html.escape(text))
