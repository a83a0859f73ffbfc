# SPDX-License-Identifier: Apache-2.0
"""The base of every sample: what one read of one thing gave.

`None` always means *this device cannot give it* (its series do not exist). Zero always means measured zero.
Values are in base units: bytes, seconds, watts, joules, hertz, degrees Celsius, ratios 0 to 1.
"""

from collections.abc import Hashable

from msgspec import Struct


class Sample(Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """One reading of one thing; `subject` says which, unique within a sample type and lane group."""

    @property
    def subject(self) -> Hashable:
        """What was read."""
        raise TypeError(type(self).__name__)


class Extension(Sample, frozen=True, kw_only=True, tag="extension"):
    """One value of a third-party source, exported as `gpufeed_ext_<source>_<metric>`."""

    source: str
    metric: str
    labels: tuple[tuple[str, str], ...]
    value: float
    help: str = ""
    is_counter: bool = False

    @property
    def subject(self) -> Hashable:
        """Source, metric and labels."""
        return (self.source, self.metric, self.labels)
