# SPDX-License-Identifier: Apache-2.0
"""Serving, notebooks, nodes that are shared, and GPUs that fail at work."""

from dataclasses import replace
from typing import Final

from gpufeed.simulate.activity import Incident
from gpufeed.simulate.pipeline.scenario import Family, JudgedScenario
from gpufeed.simulate.pipeline.workload import Job, Neighbour, Notebook, Quiet, Serving, Storage, Training, Workload
from gpufeed.simulate.pipeline.workloads import EXPOSED, IMAGES, PRETRAIN, RESNET, TOKENS, trials

_S: Final = 1_000_000_000


def _alone(family: Family, name: str, description: str, workload: Workload, *incidents: Incident) -> JudgedScenario:
    return JudgedScenario(
        name=name, family=family, description=description, jobs=(Job(workload=workload),), incidents=incidents
    )


SERVING_SCENARIOS: Final = (
    _alone("serving", "inference_5", "A language model at a twentieth of its load.", Serving(load=0.05)),
    _alone("serving", "inference_30", "The same at 30 %.", Serving(load=0.3)),
    _alone("serving", "inference_80", "The same at 80 %.", Serving(load=0.8)),
    _alone("serving", "inference_bursts", "Requests come in bursts.", Serving(load=0.25, burst=3.0)),
    _alone(
        "serving", "inference_prefill", "Long prompts and short answers: arithmetic rather than memory.",
        Serving(load=0.6, request_s=0.4, prefill_s=0.3),
    ),
    _alone("serving", "inference_replicas", "A model on every GPU, each with its own requests.",
           Serving(load=0.2, together=False)),
)  # fmt: skip

IDLE_SCENARIOS: Final = (
    _alone("idle", "notebook", "Somebody thinks, and now and then runs a cell.", Notebook()),
    _alone("idle", "held_idle", "Memory is held and nothing is done.", Quiet()),
    _alone("idle", "free", "Nobody uses the node.", Quiet(is_held=False)),
)

SHARED_SCENARIOS: Final = (
    JudgedScenario(
        name="two_jobs", family="shared",
        description="Half of the GPUs are starved of data, the other half train undisturbed.",
        jobs=(
            Job(workload=trials(Storage(of_demand=0.5)), share=(0.0, 0.5)),
            Job(workload=Training(input=TOKENS, works=EXPOSED, spread=0.005), share=(0.5, 1.0)),
        ),
    ),
    JudgedScenario(
        name="conflicting_neighbour", family="shared",
        description="Loaders lack processors; beside them somebody else's tasks stand in uninterruptible sleep.",
        jobs=(Job(workload=Training(input=replace(IMAGES, cpu_s=1.3), works=(RESNET,))),),
        neighbours=(Neighbour(cores=0.3, blocked=24, nfs_read_bytes_per_s=2e9, net_receive_bytes_per_s=2.1e9,
                              disk_read_bytes_per_s=1e9, off_s=0.0),),
    ),
    JudgedScenario(
        name="starved_beside_busy", family="shared",
        description="A server gives 60 %; beside the job somebody else's processes fill all other processors.",
        jobs=(Job(workload=trials(Storage(of_demand=0.6))),),
        neighbours=(Neighbour(cores=8.0, off_s=0.0),),
    ),
    JudgedScenario(
        name="half_empty", family="shared",
        description="A language model on half of the GPUs; nobody uses the others.",
        jobs=(Job(workload=PRETRAIN, share=(0.0, 0.5)),),
    ),
)  # fmt: skip

FAULT_SCENARIOS: Final = (
    _alone(
        "fault", "xid_in_training", "A GPU reports an uncontained memory error; its job is ended a minute later.",
        PRETRAIN, Incident(kind="xid", gpu=3, from_ns=200 * _S, xid=95, recovery_action=1),
    ),
    _alone(
        "fault", "lost_in_training", "A GPU falls off the bus; its job is ended a minute later.",
        PRETRAIN, Incident(kind="lost", gpu=3, from_ns=200 * _S),
    ),
)  # fmt: skip
