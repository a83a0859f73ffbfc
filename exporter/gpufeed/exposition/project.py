# SPDX-License-Identifier: Apache-2.0
"""State → families: composes the areas. Pure; the profile is the encoder's."""

from collections.abc import Iterator
from itertools import chain

from gpufeed.exposition import (
    project_balance,
    project_extension,
    project_fabric,
    project_gpm,
    project_gpu,
    project_gpu_errors,
    project_host,
    project_jobs,
    project_network,
    project_nvlink,
    project_process,
    project_self,
    project_signals,
    project_storage,
    project_xid,
)
from gpufeed.exposition.family import Family
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.state import NodeState


def families(state: NodeState, server: ServerFacts) -> Iterator[Family]:
    """Every family that has a row at this moment, in the order of METRICS.md, third parties' last."""
    everything = chain(
        project_gpu.families(state),
        project_gpu_errors.families(state),
        project_gpm.families(state),
        project_xid.families(state),
        project_jobs.families(state),
        project_nvlink.families(state),
        project_fabric.families(state),
        project_network.families(state),
        project_storage.families(state),
        project_host.families(state),
        project_signals.families(state, server),
        project_balance.families(state),
        project_self.families(state, server),
        project_process.families(server),
        project_extension.families(state),
    )
    return (family for family in everything if not family.is_empty)
