# SPDX-License-Identifier: Apache-2.0
"""One exposition: what every scrape of the same second shares, written out once in each form that is asked for."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gpufeed.catalogue.define import MetricDef
from gpufeed.exposition.filters import EVERYTHING, Filter
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.text import help_text

_MAX_KEPT_PAGES: Final = 16  # a client can ask for any of 2^20 filters: those beyond are written but not kept
_GZIP_LEVEL: Final = 1  # three times faster than the default, for pages a quarter larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One family, written: its lines by the collector that gave them."""

    definition: MetricDef
    chunks: Mapping[str, str]


class Exposition:
    """All blocks of one moment. Pages are written when first asked for."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self._blocks: Final = blocks
        self._pages: dict[tuple[Format, bool, Filter], bytes] = {}

    def page(self, form: Format, *, compress: bool = False, wanted: Filter = EVERYTHING) -> bytes:
        """The exposition in one format, as bytes: plain or gzip."""
        key = (form, compress, wanted)
        kept = self._pages.get(key)
        if kept is not None:
            return kept
        page = (
            gzip.compress(self.page(form, wanted=wanted), _GZIP_LEVEL, mtime=0)
            if compress
            else self._write(form, wanted)
        )
        if len(self._pages) < _MAX_KEPT_PAGES:
            self._pages[key] = page
        return page

    def _write(self, form: Format, wanted: Filter) -> bytes:
        head = _openmetrics_head if form is Format.OPENMETRICS else _text_head
        parts = []
        for block in self._blocks:
            body = "".join([chunk for collector, chunk in block.chunks.items() if wanted.admits(collector)])
            if body:
                parts.append(head(block.definition) + body)
        if form is Format.OPENMETRICS:
            parts.append("# EOF\n")
        return "".join(parts).encode()


def _text_head(definition: MetricDef) -> str:
    kind = "gauge" if definition.type == "info" else definition.type
    return f"# HELP {definition.name} {help_text(definition.help)}\n# TYPE {definition.name} {kind}\n"


def _openmetrics_head(definition: MetricDef) -> str:
    suffix = {"counter": "_total", "info": "_info"}.get(definition.type, "")
    name = definition.name.removesuffix(suffix)
    text = help_text(definition.help).replace('"', '\\"')
    return f"# HELP {name} {text}\n# TYPE {name} {definition.type}\n"
