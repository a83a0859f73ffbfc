# SPDX-License-Identifier: Apache-2.0
"""All judged scenarios by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios_storage import STORAGE_SCENARIOS

JUDGED: Final[Mapping[str, JudgedScenario]] = MappingProxyType(
    {scenario.name: scenario for scenario in (*STORAGE_SCENARIOS,)}
)
