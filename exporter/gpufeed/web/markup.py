# SPDX-License-Identifier: Apache-2.0
"""HTML from calls: every text is escaped unless it was made here."""

import html


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | None) -> Markup:
    """An element. An attribute's `_` is `-`, one at its end is dropped; None leaves it out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{shown}>{join(*children)}</{name}>")


def void(name: str, /, **attributes: str) -> Markup:
    """An element without content."""
    return Markup(tag(name, **attributes).removesuffix(f"</{name}>"))


def join(*children: str) -> Markup:
    """Children one after another."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(child) for child in children))
