# SPDX-License-Identifier: Apache-2.0
"""What the probe is told, what a reload may change, and what others may see of a configuration."""

from pathlib import Path

import pytest

from gpufeed.config.changes import changed_keys, needing_restart
from gpufeed.config.checks import remarks
from gpufeed.config.fingerprint import config_hash, expand, redacted
from gpufeed.config.load import parse
from gpufeed.config.probe import enabled_collectors, probe_config
from gpufeed.config.schema import Config
from gpufeed.daemon.configuration import read
from gpufeed.model.desired import ProbeConfig


def config_of(text: str) -> Config:
    return parse(text.encode(), "x")


def test_the_probe_is_told_periods_paths_and_collectors() -> None:
    config = config_of(
        "paths: {sysfs: /fixture}\nsampling: {fast_period: 1s, periods: {nvml.slow: 30s}, cost_limit: 0.5}\n"
        "collectors: {nfs: {exclude_mounts: ^/pods}, gpm: {enabled: false}}\nsources: {extra: [mine]}"
    )
    told = probe_config(config, "/run/gpufeed", None)
    assert (told.sysfs, told.runtime_dir, told.state_dir) == ("/fixture", "/run/gpufeed", None)
    assert (told.fast_period_ns, told.tick_ns) == (1_000_000_000, 500_000_000)
    assert told.periods_ns == {"nvml.slow": 30_000_000_000}
    assert told.cost_limit_ratio == 0.5
    assert told.options("nfs").exclude_mounts == "^/pods"
    assert not told.options("gpm").enabled
    assert told.options("infiniband").exclude == "^(smi|scif)"
    assert told.extra_sources == ("mine",)


def test_jobs_are_off_where_either_section_switches_them_off() -> None:
    for text in ("jobs: {enabled: false}", "collectors: {jobs: {enabled: false}}"):
        config = config_of(text)
        assert not probe_config(config, "/r", None).options("jobs").enabled
        assert "jobs" not in enabled_collectors(config)
    assert enabled_collectors(Config())[-2:] == ("jobs", "self")


def test_gpfs_which_starts_a_process_is_off_unless_asked_for() -> None:
    assert not probe_config(Config(), "/r", None).options("gpfs").enabled
    assert not ProbeConfig(runtime_dir="/r").options("gpfs").enabled
    assert probe_config(config_of("collectors: {gpfs: {enabled: true}}"), "/r", None).options("gpfs").enabled


def test_a_reload_names_what_changed_and_what_needs_a_restart() -> None:
    old, new = (
        Config(),
        config_of("web: {listen_addresses: [':1'], max_requests: 1}\nsampling: {periods: {nvml.fast: 1s}}"),
    )
    assert changed_keys(old, new) == ("web.listen_addresses", "web.max_requests", "sampling.periods")
    assert needing_restart(old, new) == ("web.listen_addresses",)
    assert needing_restart(old, old) == ()


def test_placeholders_are_filled_in_everywhere_and_names_are_asked_for_only_when_needed() -> None:
    config = config_of(
        "alerting: {labels: {instance: '{hostname}:1', where: '{fqdn}'}, runbook_base_url: 'http://{hostname}/'}"
    )
    full = expand(config, {"hostname": lambda: "n1", "fqdn": lambda: "n1.example"})
    assert full.alerting.labels == {"instance": "n1:1", "where": "n1.example"}
    assert full.alerting.runbook_base_url == "http://n1/"


def test_a_full_name_is_not_asked_for_where_none_is_wanted() -> None:
    def never() -> str:
        pytest.fail("a resolver was asked")

    assert expand(Config(), {"hostname": lambda: "n1", "fqdn": never}).alerting.labels["instance"] == "n1:9937"


WITH_LOGIN = "alerting: {alertmanagers: [{url: 'http://a', basic_auth: {username: u, password: %s}}]}"


def test_secrets_stand_in_no_output_and_in_no_hash() -> None:
    one, other = config_of(WITH_LOGIN % "hunter2"), config_of(WITH_LOGIN % "hunter3")
    assert "hunter2" not in str(redacted(one))
    assert config_hash(one) == config_hash(other) != config_hash(Config())
    assert len(config_hash(one)) == 12


def test_keys_without_effect_in_this_version_are_named() -> None:
    assert list(remarks(Config())) == []
    assert list(remarks(config_of("compat: {dcgm: '4.9'}\njobs: {reports_dir: /reports}"))) == [
        "compat.dcgm: is right, but has no effect in this version",
    ]


@pytest.mark.parametrize(
    ("web", "is_warned"),
    [
        ("enable_lifecycle: true", True),
        ("enable_lifecycle: true, listen_addresses: ['127.0.0.1:1', '10.1.2.3:1']", True),
        ("enable_lifecycle: true, listen_addresses: ['127.0.0.1:1', '[::1]:1', 'localhost:1']", False),
        ("enable_lifecycle: true, config_file: /etc/gpufeed/web.yml", False),
        ("enable_lifecycle: false", False),
    ],
)
def test_a_reload_that_anybody_may_ask_for_is_warned_about(web: str, is_warned: bool) -> None:
    said = list(remarks(config_of(f"web: {{{web}}}")))
    assert [one.partition(":")[0] for one in said] == ["web.enable_lifecycle"] * is_warned


def test_credentials_are_where_systemd_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "gpufeed.yml"
    file.write_text("alerting: {alertmanagers: [{url: 'http://a:1', bearer_token_file: '{credentials}/token'}]}")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x")
    token = read(file).alerting.alertmanagers[0].bearer_token_file
    assert token == "/run/credentials/x/token"  # noqa: S105  # a path
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    token = read(file).alerting.alertmanagers[0].bearer_token_file
    assert token == "/run/credentials/gpufeed.service/token"  # noqa: S105  # a path


def test_the_user_of_a_job_leaves_the_node_only_where_that_is_wanted() -> None:
    assert not probe_config(Config(), "/run/x", None).job_users
    assert probe_config(config_of("jobs: {user_label: true}"), "/run/x", None).job_users
