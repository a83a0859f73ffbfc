# SPDX-License-Identifier: Apache-2.0
"""Scrapes: state to bytes, at most once a second, however many ask."""

from collections.abc import Callable, Iterable
from typing import Final

from gpufeed.clock import Clock
from gpufeed.config.probe import enabled_collectors
from gpufeed.config.schema import Config
from gpufeed.exposition import filters
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.family import Family
from gpufeed.exposition.negotiate import accepts_gzip, exposition_format
from gpufeed.units import seconds
from gpufeed.web.endpoints import RequestError, ScrapePage, ScrapeRequest

Families = Callable[[], Iterable[Family]]


class Scrapes:
    """Answers scrapes from what `families` gives."""

    def __init__(self, config: Config, families: Families, clock: Clock, observe: Callable[[float], None]) -> None:
        self._families: Final = families
        self._clock: Final = clock
        self._observe: Final = observe
        self.use(config)

    def use(self, config: Config) -> None:
        """Answer as this configuration says from now on."""
        exposition = config.exposition
        self._collectors = enabled_collectors(config)
        self._encoder = Encoder(profile=exposition.profile, drop=exposition.drop, max_series=exposition.max_series)

    def answer(self, asked: ScrapeRequest) -> ScrapePage:
        """The page for one scrape. Raises RequestError for a wrong filter."""
        began_ns = self._clock.monotonic_ns()
        try:
            wanted = filters.parse(asked.collect, asked.exclude, self._collectors)
        except filters.FilterError as error:
            raise RequestError(str(error)) from None
        form = exposition_format(asked.accept)
        is_gzip = accepts_gzip(asked.accept_encoding)
        page = self._encoder.exposition(self._families, began_ns).page(form, compress=is_gzip, wanted=wanted)
        self._observe(seconds(self._clock.monotonic_ns() - began_ns))
        return ScrapePage(body=page, content_type=form.value, is_gzip=is_gzip)
