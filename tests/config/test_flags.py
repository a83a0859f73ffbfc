# SPDX-License-Identifier: Apache-2.0
"""Flags set keys, win over the file, and are judged together with it."""

import argparse

import pytest

from gpufeed.config.collectors import Collectors
from gpufeed.config.flags import Flag, add_flags, given
from gpufeed.config.load import parse
from gpufeed.errors import ConfigError
from gpufeed.model.ids import COLLECTORS


def flags(*arguments: str) -> tuple[Flag, ...]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser)
    return given(parser.parse_args(arguments))


def test_flags_win_over_the_file() -> None:
    config = parse(
        b"web: {max_requests: 3, ui: false}\nlog: {level: debug}\n",
        "gpufeed.yml",
        flags("--web.max-requests=7", "--log.level", "warn"),
    )
    assert (config.web.max_requests, config.web.ui, config.log.level) == (7, False, "warn")


def test_listen_addresses_add_up_and_other_flags_take_the_last() -> None:
    config = parse(
        b"",
        "x",
        flags(
            "--web.listen-address=127.0.0.1:1",
            "--web.listen-address=[::1]:2",
            "--exposition.profile=full",
            "--exposition.profile=minimal",
        ),
    )
    assert config.web.listen_addresses == ("127.0.0.1:1", "[::1]:2")
    assert config.exposition.profile == "minimal"


def test_every_collector_has_its_switch() -> None:
    names = [name for name in COLLECTORS if name not in {"extra", "self"}]
    assert list(Collectors.__struct_fields__) == names
    config = parse(b"collectors: {nfs: {enabled: false}}", "x", flags("--collector.nfs", "--no-collector.block"))
    assert config.collectors.nfs.enabled
    assert not config.collectors.block.enabled


@pytest.mark.parametrize(
    "flag",
    [
        "--web.systemd-socket",
        "--web.enable-lifecycle",
        "--web.telemetry-path=/m",
        "--path.procfs=/p",
        "--path.sysfs=/s",
        "--path.rootfs=/r",
        "--log.format=json",
    ],
)
def test_every_flag_of_the_design_is_taken(flag: str) -> None:
    assert parse(b"", "x", flags(flag)) != parse(b"", "x")


def test_problems_of_flags_and_file_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(b"web: {ui: 3}", "gpufeed.yml", flags("--web.max-requests=many", "--path.sysfs=sys"))
    assert caught.value.problems == (
        "gpufeed.yml:1: web.ui: expected true or false, found '3'",
        "flag --web.max-requests: web.max_requests: expected a whole number, found 'many'",
        "flag --path.sysfs: paths.sysfs: expected an absolute path, found 'sys'",
    )


def test_a_web_config_file_by_its_flag() -> None:
    assert parse(b"", "x", flags("--web.config.file=web.yml")).web.config_file == "web.yml"
