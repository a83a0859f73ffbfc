# SPDX-License-Identifier: Apache-2.0
"""The page's own files. Their addresses carry their hash, so that a browser keeps each as long as it is this one."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from gpufeed.palette import CAUSE_COLOURS
from gpufeed.web.words import css_class

PREFIX: Final = "/static/"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    name: str
    content_type: str
    body: bytes

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"{PREFIX}{self.name}?v={hashlib.sha256(self.body).hexdigest()[:12]}"


def packaged(name: str) -> bytes:
    """A file of the package's folder `static`."""
    return (files("gpufeed.web") / "static" / name).read_bytes()


def _colours() -> bytes:
    rules = (f".{css_class(name)}{{fill:{colour}}}" for name, colour in CAUSE_COLOURS.items())
    return "\n".join(rules).encode() + b"\n"


STYLE: Final = Asset("page.css", "text/css", packaged("page.css") + _colours())
SCRIPT: Final = Asset("page.js", "text/javascript", packaged("page.js"))
ICON: Final = Asset("icon.svg", "image/svg+xml", packaged("icon.svg"))
ASSETS: Final = {asset.name: asset for asset in (STYLE, SCRIPT, ICON)}
