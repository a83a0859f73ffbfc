# SPDX-License-Identifier: Apache-2.0
"""The node that budgets are made for, through all sources: 8 H100 with 18 links each, 8 HCAs, 20 mounts, 40 disks."""

from collections import Counter
from dataclasses import replace

import pytest

from exposition import nodes
from gpufeed.catalogue.define import Profile
from gpufeed.clock import read_frame_time
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.server_facts import ServerFacts
from gpufeed.model.state import NodeState
from gpufeed.probe.inline import InlineProbe
from gpufeed.simulate.clock import SteppedClock
from gpufeed.simulate.stepped import SteppedNode
from gpufeed.sources.builtin import BUILTIN
from gpufeed.step import Settings, initial, step
from gpufeed.units import NS_PER_MS

DISKS, MOUNTS, GPUS = 40, 20, 8
DISKSTATS = "".join(f" 259 {n} nvme{n}n1 10 0 100 5 20 0 200 6 1 7 8 0 0 0 0 0 0\n" for n in range(DISKS))
OPERATIONS = "".join(
    f"\t{name}: 10 11 1 100 5000 20 30 60 0\n"
    for name in ("READ", "WRITE", "COMMIT", "OPEN", "CLOSE", "GETATTR", "LOOKUP", "ACCESS", "READDIR", "SEQUENCE")
)
MOUNTSTATS = "".join(
    f"device nas{n}:/export mounted on /data{n} with fstype nfs4 statvers=1.1\n"
    f"\topts:\trw,vers=4.2,proto=tcp,nconnect=16\n\tbytes:\t1 2 3 4 5 6 7 8\n"
    + "".join(f"\txprt:\ttcp {700 + port} 1 1 0 11 272 272 0 323 0 2 51 0\n" for port in range(16))
    + f"\tper-op statistics\n{OPERATIONS}"
    for n in range(MOUNTS)
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> NodeState:
    clock = SteppedClock()
    node = initial(Settings(), read_frame_time(clock))
    with SteppedNode("healthy", "h100", GPUS, root=tmp_path_factory.mktemp("node"), clock=clock) as simulated:
        for process in ("self", "1"):
            simulated.pin(f"proc/{process}/mountstats", MOUNTSTATS)
        simulated.pin("proc/diskstats", DISKSTATS)
        probe = InlineProbe(simulated.config(), BUILTIN, clock, simulated.is_blocked)
        for _ in range(64):
            simulated.advance(250 * NS_PER_MS)
            node = step(node, probe.tick())
        probe.close()
    return replace(node.state, attributions=dict.fromkeys(node.state.attributions, nodes.attribution()))


@pytest.mark.parametrize(("profile", "budget"), [("minimal", 800), ("default", 3000)])
def test_a_profile_keeps_to_its_budget_with_every_state_pair_present(
    profile: Profile, budget: int, reference: NodeState
) -> None:
    page = Encoder(profile=profile).encode(families(reference, ServerFacts())).page(Format.TEXT).decode()
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    counted = Counter(line.partition("{")[0] for line in lines)
    assert counted["gpufeed_gpu_state_seconds_total"] == GPUS * len(nodes.EVERY_PAIR)
    assert counted["gpufeed_ib_port_receive_bytes_total"] == GPUS
    assert counted["gpufeed_storage_read_bytes_total"] == (MOUNTS if profile == "minimal" else MOUNTS + DISKS)
    assert len(lines) <= budget
