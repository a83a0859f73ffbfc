# SPDX-License-Identifier: Apache-2.0
"""Jobs whose GPUs wait for data to be read, and jobs that look so and do not wait."""

from typing import Final

from gpufeed.simulate.pipeline.scenario import JudgedScenario
from gpufeed.simulate.pipeline.workload import Input, Job, Storage, Training
from gpufeed.simulate.pipeline.workloads import RESNET_WORKS

STORAGE_SCENARIOS: Final = (
    JudgedScenario(
        name="storage_75",
        family="storage",
        description="The server gives three quarters of what an image classifier asks for.",
        jobs=(Job(workload=Training(input=Input(storage=Storage(of_demand=0.75)), works=RESNET_WORKS)),),
    ),
)
