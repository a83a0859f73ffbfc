# SPDX-License-Identifier: Apache-2.0
"""What a site says of its node reaches the fold, in base units."""

import pytest

from gpufeed.config.fold import settings
from gpufeed.config.load import parse
from gpufeed.errors import ConfigError
from gpufeed.model.ids import StorageKey


def test_expectations_are_told_in_base_units() -> None:
    config = parse(
        b"collectors: {nvml: {expected_gpus: 8}, infiniband: {expected_rate_gbps: 400}}\n"
        b'storage: {capacity: {"nfs:/data:x": {read: 5.0e9}}}',
        "x",
    )
    told = settings(config)
    assert told.expected_gpus == 8
    assert told.ib_expected_bytes_per_s == 50e9
    capacity = told.storage_capacity[StorageKey("nfs", "/data:x")]
    assert (capacity.read_bytes_per_s, capacity.write_bytes_per_s) == (5e9, None)


@pytest.mark.parametrize("name", ["nfs", "nfs:", "nsf:/data", ":/data"])
def test_a_capacity_names_kind_and_target(name: str) -> None:
    with pytest.raises(ConfigError, match="expected KIND:TARGET"):
        parse(f"storage: {{capacity: {{'{name}': {{read: 1}}}}}}".encode(), "x")
