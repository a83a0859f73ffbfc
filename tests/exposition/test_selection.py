# SPDX-License-Identifier: Apache-2.0
"""Profiles, the drop list, the cap: what is left out, in which order, and that it is said."""

import re
from collections.abc import Iterable

import pytest

from exposition import nodes
from gpufeed.catalogue import METRICS
from gpufeed.catalogue.define import SHED_ORDER, Profile
from gpufeed.exposition.encoder import Encoder
from gpufeed.exposition.family import Family
from gpufeed.exposition.negotiate import Format
from gpufeed.exposition.project import families
from gpufeed.exposition.selection import select
from gpufeed.exposition.server_facts import ProcessFacts, ServerFacts
from gpufeed.model.nvlink import NvlinkLinks

SERVER = ServerFacts(
    version="1.2.3",
    config_hash="abc",
    rules_hash="def",
    reload_success_wall_s=1.7e9,
    process=ProcessFacts(cpu_s=1.0, resident_bytes=1, virtual_bytes=2, start_wall_s=1.7e9, open_fds=4, max_fds=1024),
    alerts={("GpuLost", "page", "firing"): 1, ("IbPortDown", "ticket", "pending"): 2},
)
LINKS = 8 * 18 * 8
"""Series of single links: state, three kinds of errors, two byte counters, speed, and where it leads."""


def reference_node() -> list[Family]:
    return list(families(nodes.node(), SERVER))


def page(profile: Profile, found: Iterable[Family], *, max_series: int = 6000, drop: tuple[str, ...] = ()) -> list[str]:
    text = Encoder(profile=profile, max_series=max_series, drop=drop).encode(found).page(Format.TEXT).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize(("profile", "budget"), [("minimal", 800), ("default", 3000)])
def test_the_reference_node_fits_its_budget_with_every_state_pair_present(profile: Profile, budget: int) -> None:
    lines = page(profile, reference_node())
    assert len([line for line in lines if line.startswith("gpufeed_gpu_state_seconds_total")]) == 8 * 30
    assert len(lines) <= budget


@pytest.mark.parametrize("profile", ["minimal", "default", "full"])
def test_the_page_says_how_many_series_it_has(profile: Profile) -> None:
    lines = page(profile, reference_node())
    if profile == "minimal":
        assert METRICS["gpufeed_series"].profile == "default"
    else:
        assert f'gpufeed_series{{profile="{profile}"}} {len(lines)}' in lines


def test_a_profile_has_all_that_the_one_below_has() -> None:
    names = [
        {line.rpartition(" ")[0] for line in page(profile, reference_node()) if not line.startswith("gpufeed_series")}
        for profile in ("minimal", "default", "full")
    ]
    assert names[0] < names[1] < names[2]


def test_minimal_has_the_bytes_of_mounts_and_not_those_of_disks() -> None:
    minimal = "\n".join(page("minimal", reference_node()))
    assert 'gpufeed_storage_read_bytes_total{kind="nfs",target="/data0"} 10000' in minimal
    assert 'kind="block"' not in minimal
    assert 'gpufeed_storage_read_bytes_total{kind="block",target="nvme0n1"} 4096' in page("default", reference_node())


def test_default_has_the_notable_errors_of_a_port_and_full_all() -> None:
    kept = [line for line in page("default", reference_node()) if re.match(r'.*errors_total\{device="mlx5_0"', line)]
    assert len(kept) == 10
    every = [line for line in page("full", reference_node()) if re.match(r'.*errors_total\{device="mlx5_0"', line)]
    assert len(every) == len(nodes.IB_ERRORS)


def test_default_has_links_that_are_down_and_errors_that_happened_and_full_all() -> None:
    links = [nodes.nvlink_link(number) for number in range(18)]
    links[7] = nodes.nvlink_link(7, is_up=False, errors={"replay": 3, "recovery": 0, "crc": 0})
    sample = NvlinkLinks(gpu=nodes.key(0), links=tuple(links))
    state = nodes.with_samples(nodes.node(gpus=1), sample)
    default = [line for line in page("default", families(state, SERVER)) if 'link="' in line]
    labels = f'gpu="0",uuid="{nodes.uuid(0)}",link="7"'
    assert default == [
        f"gpufeed_nvlink_up{{{labels}}} 0",
        f'gpufeed_nvlink_link_errors_total{{{labels},type="replay"}} 3',
    ]
    full = [line for line in page("full", families(state, SERVER)) if 'link="' in line]
    assert len(full) == 18 * 8


def test_default_names_only_lanes_slower_than_configured_and_full_all_that_read_fast() -> None:
    state = nodes.node(gpus=1)
    default = [line for line in page("default", families(state, SERVER)) if "fast_period" in line]
    assert default == ['gpufeed_fast_period_seconds{lane="gpu0"} 1.0']


def test_a_metric_that_is_dropped_is_gone_and_nothing_else_is() -> None:
    dropped = page("full", reference_node(), drop=("gpufeed_gpu_clock_event_active", "gpufeed_nothing"))
    gone = {line.rpartition(" ")[0] for line in page("full", reference_node())} - {
        line.rpartition(" ")[0] for line in dropped
    }
    assert {name.partition("{")[0] for name in gone} == {"gpufeed_gpu_clock_event_active"}


def test_under_the_cap_nothing_is_shed() -> None:
    assert select(reference_node(), "full", (), 100_000).shed == {}


def test_groups_are_shed_in_order_until_the_rest_fits() -> None:
    found = reference_node()
    total = len(page("full", found, max_series=100_000))
    links, operations, disks = LINKS, 2 * 20 * 10, 40 * 10
    assert select(found, "full", (), total).shed == {}
    assert select(found, "full", (), total - 1).shed == {"link": links}
    rest = total - links + 1  # one series says what was shed
    assert select(found, "full", (), rest).shed == {"link": links}
    assert select(found, "full", (), rest - 1).shed == {"link": links, "operation": operations}
    rest = rest - operations + 1
    assert select(found, "full", (), rest - 1).shed == {"link": links, "operation": operations, "disk": disks}


def test_a_page_that_was_capped_says_by_how_much_and_keeps_to_the_cap() -> None:
    lines = page("full", reference_node(), max_series=2000)
    assert len(lines) <= 2000
    assert 'gpufeed_series_shed{group="link"} 1152' in lines
    assert 'gpufeed_series_shed{group="operation"} 400' in lines
    assert f'gpufeed_series{{profile="full"}} {len(lines)}' in lines
    assert not any('kind="block"' in line for line in lines)
    assert any('kind="nfs"' in line for line in lines)


def test_state_health_and_xids_stay_whatever_the_cap() -> None:
    lines = page("full", reference_node(), max_series=0)
    state = nodes.node()
    assert len([line for line in lines if line.startswith("gpufeed_gpu_state_seconds_total")]) == 8 * 30
    verdicts = [line for line in lines if "_health{" in line and "fabric_health" not in line]
    assert len(verdicts) == len(state.verdicts)
    assert len([line for line in lines if line.startswith("gpufeed_gpu_xid")]) == 8 * (5 + 2 + 2)
    assert len([line for line in lines if line.startswith("gpufeed_gpu_up")]) == 8
    shed = {match[1] for line in lines if (match := re.match(r'gpufeed_series_shed\{group="(\w+)"', line))}
    assert shed == set(SHED_ORDER) - {"extension"}
