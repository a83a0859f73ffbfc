# SPDX-License-Identifier: Apache-2.0
"""The part of the configuration that the fold of frames has to know."""

from typing import Final, cast

from gpufeed.config.schema import Config
from gpufeed.model.ids import StorageKey, StorageKind
from gpufeed.signals.settings import Capacity, Settings

_BYTES_PER_S_PER_GBPS: Final = 1e9 / 8


def settings(config: Config) -> Settings:
    """What the site says of its node."""
    gbps = config.collectors.infiniband.expected_rate_gbps
    return Settings(
        expected_gpus=config.collectors.nvml.expected_gpus,
        storage_capacity={
            _storage(name): Capacity(read_bytes_per_s=capacity.read, write_bytes_per_s=capacity.write)
            for name, capacity in config.storage.capacity.items()
        },
        ib_expected_bytes_per_s=gbps * _BYTES_PER_S_PER_GBPS if gbps is not None else None,
    )


def _storage(name: str) -> StorageKey:
    kind, _, target = name.partition(":")
    return StorageKey(cast("StorageKind", kind), target)
