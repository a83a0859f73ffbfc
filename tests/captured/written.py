# SPDX-License-Identifier: Apache-2.0
"""A node whose files a test writes, and what a scrape of it gives."""

from pathlib import Path

from captured.pages import Scraped, paths_of
from captured.second_reader import Series
from captured.trees import write
from gpufeed.config.collectors import Collectors
from gpufeed.config.probe import probe_config
from gpufeed.config.schema import Config
from gpufeed.model.frame import InputStatus


class Written:
    """Files below a folder in the notation of tests/captures, and the page of a node that has them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "node"
        self.collectors = Collectors()
        self._runtime = folder
        self._scraped: Scraped | None = None

    def write(self, tree: str) -> None:
        write(tree, self.root)

    def replace(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def series(self, ticks: int = 1) -> Series:
        if self._scraped is None:
            config = Config(paths=paths_of(self.root), collectors=self.collectors)
            self._scraped = Scraped(probe_config(config, str(self._runtime), None))
        return self._scraped.series(ticks)

    def values(self, metric: str, ticks: int = 1, **labels: str) -> dict[str, float]:
        """By the labels that were not asked for, in the order of their names."""
        return {
            ",".join(value for name, value in sorted(key) if name not in labels): found
            for (name, key), found in self.series(ticks).items()
            if name == f"gpufeed_{metric}" and set(labels.items()) <= key
        }

    def value(self, metric: str, ticks: int = 1, **labels: str) -> float | None:
        """The one value with these labels, None where there is none."""
        found = self.values(metric, ticks, **labels)
        assert len(found) < 2
        return next(iter(found.values()), None)

    def failures(self) -> dict[str, float]:
        """Read errors by collector and reason, of those that were counted at all."""
        return {what: count for what, count in self.values("collector_errors_total").items() if count}

    def input(self, name: str, scope: str = "") -> InputStatus:
        self.series()
        assert self._scraped is not None
        return self._scraped.inputs()[name, scope]

    def close(self) -> None:
        if self._scraped is not None:
            self._scraped.close()
