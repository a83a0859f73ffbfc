# SPDX-License-Identifier: Apache-2.0
"""All judged scenarios by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.scenarios_healthy import HEALTHY_SCENARIOS
from gpufeed.simulate.pipeline.scenarios_host import HOST_SCENARIOS
from gpufeed.simulate.pipeline.scenarios_link import LINK_SCENARIOS
from gpufeed.simulate.pipeline.scenarios_other import (
    FAULT_SCENARIOS,
    IDLE_SCENARIOS,
    SERVING_SCENARIOS,
    SHARED_SCENARIOS,
)
from gpufeed.simulate.pipeline.scenarios_peer import CLOCK_SCENARIOS, PEER_SCENARIOS
from gpufeed.simulate.pipeline.scenarios_storage import STORAGE_SCENARIOS

JUDGED: Final[Mapping[str, JudgedScenario]] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            *HEALTHY_SCENARIOS,
            *STORAGE_SCENARIOS,
            *HOST_SCENARIOS,
            *LINK_SCENARIOS,
            *PEER_SCENARIOS,
            *CLOCK_SCENARIOS,
            *SERVING_SCENARIOS,
            *IDLE_SCENARIOS,
            *SHARED_SCENARIOS,
            *FAULT_SCENARIOS,
        )
    }
)
