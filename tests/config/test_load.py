# SPDX-License-Identifier: Apache-2.0
"""Any text gives a configuration, or every problem in it with its place."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.config.duration import Duration
from gpufeed.config.load import load, parse
from gpufeed.config.schema import Config
from gpufeed.errors import ConfigError
from gpufeed.sources.selection import Selection


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), "gpufeed.yml")
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("web: {max_request: 3}", "gpufeed.yml:1: web.max_request: unknown key; did you mean web.max_requests?"),
        ("listen_addresses: []", "gpufeed.yml:1: listen_addresses: unknown key; did you mean web.listen_addresses?"),
        ("zzz: 1", "gpufeed.yml:1: zzz: unknown key; known here: web, paths, sampling, exposition"),
        ("\nweb:\n  ui: yes", "gpufeed.yml:3: web.ui: expected true or false, found 'yes'"),
        ('web: {ui: "true"}', "gpufeed.yml:1: web.ui: expected true or false, found 'true'"),
        ("web: {max_requests: 0777}", "web.max_requests: expected a whole number, found '0777'"),
        ("web: {max_requests: 12:30:45}", "web.max_requests: expected a whole number, found '12:30:45'"),
        ("web: {max_requests: -1}", "web.max_requests: expected at least 0, found '-1'"),
        ("web: {max_requests: [1]}", "web.max_requests: expected a whole number"),
        ("web: {max_requests: null}", "web.max_requests: expected a whole number"),
        ("web: {listen_addresses: 0.0.0.0:1}", "web.listen_addresses: expected a list"),
        ("web: {listen_addresses: [nowhere]}", "web.listen_addresses.0: expected HOST:PORT"),
        ("web: {listen_addresses: ['::1:80']}", "web.listen_addresses.0: expected an IPv6 address in brackets"),
        ("web: {listen_addresses: ['vsock://1:2']}", "web.listen_addresses.0: expected HOST:PORT; schemes"),
        ("web: {listen_addresses: []}", "gpufeed.yml:1: web.listen_addresses: is empty"),
        ("web: {telemetry_path: /-/x}", "web.telemetry_path: expected a path such as /metrics"),
        ("web: 3", "gpufeed.yml:1: web: expected keys with values"),
        ("web: {? [a] : 1}", "gpufeed.yml:1: web: a key must be a word"),
        ("web: {ui: true, ui: true}", "gpufeed.yml:1: web.ui: stands in gpufeed.yml:1 already"),
        ("sampling: {fast_period: 3s}", "sampling.fast_period: expected a duration from 200ms to 2s, found '3s'"),
        ("sampling: {fast_period: 0.5s}", "sampling.fast_period: expected a duration such as 200ms"),
        ("sampling: {fast_period: 2s, slow_period: 1s}", "sampling.slow_period: is shorter than"),
        ("sampling: {cost_limit: 0}", "sampling.cost_limit: expected more than 0"),
        ("sampling: {cost_limit: .nan}", "sampling.cost_limit: expected a number, found '.nan'"),
        ("sampling: {cost_limit: 1e999}", "sampling.cost_limit: expected a number, found '1e999'"),
        ("sampling: {periods: {nvml.fst: 1s}}", "sampling.periods.nvml.fst: no such group; did you mean nvml.fast?"),
        ("exposition: {profile: defalt}", "expected one of default, full, minimal; did you mean default?"),
        ("collectors: {infiniband: {exclude: '('}}", "collectors.infiniband.exclude: expected a regular expression"),
        ("paths: {procfs: proc}", "paths.procfs: expected an absolute path, found 'proc'"),
        ("paths: {state: 'a\tb'}", "paths.state: expected text without control characters"),
        ("alerting: {alertmanagers: [{}]}", "alerting.alertmanagers.0.url: is missing"),
        ("alerting: {alertmanagers: [{url: 'file:///x'}]}", "alerting.alertmanagers.0.url: expected a URL"),
        (
            "alerting: {alertmanagers: [{url: 'http://x:1', basic_auth: {username: a}}]}",
            "gpufeed.yml:1: alerting.alertmanagers.0.basic_auth: needs either password or password_file",
        ),
        ("alerting: {labels: {a-b: c}}", "alerting.labels.a-b: expected a label name"),
        ("alerting: {labels: {alertname: x}}", "alerting.labels.alertname: expected a label that alerts do not set"),
        ("alerting: {labels: {__name__: x}}", "alerting.labels.__name__: expected a label that alerts do not set"),
        ("collectors: {block: {include: '(a+)+$'}}", "block.include: expected a regular expression without a choice"),
        ("collectors: {block: {include: '((sd|nvme)[0-9]*x)*'}}", "without a choice inside what repeats"),
        ("collectors: {block: {include: '(a|a)*$'}}", "without a choice inside what repeats"),
        ("collectors: {block: {include: '(a{1,9}){9}$'}}", "without a choice inside what repeats"),
        ("collectors: {block: {include: '.*.*.*.*x'}}", "at most 3 of * and + and 6 of ?"),
        ("collectors: {block: {include: 'a?a?a?a?a?a?a?aaaaaaa'}}", "at most 3 of * and + and 6 of ?"),
        ("alerting: {thresholds: {GpuLost: {for: soon}}}", "alerting.thresholds.GpuLost.for: expected a duration"),
        ("a: &x 1\nb: *x", "gpufeed.yml:1: anchor &x: not allowed here"),
        ("web: *x", "gpufeed.yml:1: alias *x: not allowed here"),
        ("web: !!python/object:os.system {}", "tag tag:yaml.org,2002:python/object:os.system: not allowed here"),
        ("--- {}\n--- {}", "gpufeed.yml:2: a second document: not allowed here"),
        ("web: {", "not YAML: did not find expected node content"),
        ("web: \x00", "gpufeed.yml:1: not YAML"),
        ("[" * 20_000, "gpufeed.yml:1: not YAML: exceeded maximum nesting depth"),
        ("[" * 30 + "]" * 30, "gpufeed.yml:1: nested too deeply: not allowed here"),
        ("- 1", "gpufeed.yml:1: expected keys with values"),
        ("#" * (1024 * 1024 + 1), "gpufeed.yml: larger than 1048576 bytes"),
    ],
)
def test_each_problem_names_file_line_key_and_what_was_expected(text: str, expected: str) -> None:
    found = problems(text)
    assert any(expected in one for one in found), found


def test_all_problems_are_named_at_once() -> None:
    found = problems("web: {uii: true}\nsampling: {fast_period: x}\npaths: {sysfs: sys}\nnothing: 1\n")
    assert len(found) == 4


def test_bytes_that_are_not_utf8_are_one_problem_with_its_line() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(b"web: {}\n# \xff\n", "gpufeed.yml")
    assert caught.value.problems == ("gpufeed.yml:2: not UTF-8",)


def test_an_empty_file_is_the_defaults() -> None:
    assert parse(b"", "x") == parse(b"# nothing\n", "x") == parse(b"web:\nsampling: ~\n", "x") == Config()


TAKEN = (
    "^(mlx5_[0-9]+|bond[0-9]*)?$",
    "(a{1,3}b*)?",
    "[*+(]+",
    "x+y+",
    "(?=a+)b",
    "^(sd[a-z]+|nvme[0-9]+n[0-9]+|dm-[0-9]+)$",
    "^/var/lib/kubelet/.*/volumes/.*$",
    "(?:ab){2}",
    "(a)?(?(1)b+|c)",
    "^eth0|",
)


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_regular_expression_that_no_name_can_slow_is_taken(pattern: str) -> None:
    assert parse(f"collectors: {{block: {{include: '{pattern}'}}}}".encode(), "x").collectors.block.include == pattern


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", [".*.*.*x", "[ab]*[ab]+[ab]*c$", "a?a?a?a?a?a?b", "^(a*|a+b)a+$|.*.+x"])
def test_the_worst_that_is_taken_is_matched_soon_against_the_worst_name(pattern: str) -> None:
    parse(f"collectors: {{block: {{include: '{pattern}'}}}}".encode(), "x")
    assert not Selection(include=pattern).takes("a" * 127 + "!" * 100_000)


@pytest.mark.timeout(10)
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gpufeed.yml")
    with pytest.raises(ConfigError, match="cannot be read: is a pipe or a device, not a regular file"):
        load(tmp_path / "gpufeed.yml")


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.yml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_the_configuration_of_the_design_is_read_as_it_stands() -> None:
    config = parse(
        b"""
web: {listen_addresses: ["0.0.0.0:9937"], ui: true, ui_listen_addresses: null, config_file: null,
      telemetry_path: /metrics, enable_lifecycle: false, max_requests: 40}
paths: {procfs: /proc, sysfs: /sys, rootfs: /, state: null, runtime: null}
sampling: {fast_period: 500ms, slow_period: 10s, periods: {}, cost_limit: 0.03}
exposition: {profile: default, drop: [], max_series: 6000}
collectors:
  nvml: {enabled: true, expected_gpus: null}
  infiniband: {enabled: true, include: ".*", exclude: "^(smi|scif)", expected_rate_gbps: null}
  nfs: {enabled: true, exclude_mounts: "", target_from: mountpoint}
sources: {extra: []}
storage: {capacity: {"nfs:/data": {read: 5.0e9, write: 2.0e9}}}
jobs: {enabled: true, user_label: false, reports_dir: null, report_socket: null}
control: {socket: null}
alerting:
  alertmanagers: [{url: "http://127.0.0.1:9093"}]
  webhooks: []
  labels: {job: gpufeed, instance: "{hostname}:9937"}
  runbook_base_url: null
  thresholds: {GpuStarvedByStorage: {threshold: 0.2, for: 10m, enabled: true, evaluator: prometheus}}
  conditions: []
compat: {dcgm: 4.8}
""",
        "gpufeed.yml",
    )
    assert config.storage.capacity["nfs:/data"].read == 5e9
    assert config.alerting.thresholds["GpuStarvedByStorage"].for_ == Duration(600 * 10**9)
    assert config.alerting.alertmanagers[0].url == "http://127.0.0.1:9093"
    assert config.compat.dcgm == "4.8"
    assert config.web == Config().web


def problems_of(data: bytes) -> tuple[str, ...] | None:
    """What is wrong with a document; None: it gave a configuration."""
    try:
        parse(data, "x")
    except ConfigError as error:
        return error.problems
    return None


@given(st.text(max_size=300))
def test_any_text_gives_a_configuration_or_its_problems(text: str) -> None:
    found = problems_of(text.encode("utf-8", "surrogatepass"))
    assert found != ()
    assert not any("\n" in problem for problem in found or ())


WORDS = st.sampled_from(
    [
        "web",
        "ui",
        "sampling",
        "periods",
        "nvml.fast",
        "labels",
        "null",
        "true",
        "1",
        "1e3",
        "10s",
        "*a",
        "&a",
        "!t",
        "<<",
        "",
    ]
)
TREES = st.recursive(WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4))


def flow(tree: object) -> str:
    if isinstance(tree, list):
        return "[" + ", ".join(map(flow, tree)) + "]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{name}: {flow(value)}" for name, value in tree.items()) + "}"
    return str(tree)


@given(st.dictionaries(WORDS, TREES, max_size=4))
def test_any_yaml_gives_a_configuration_or_its_problems(tree: dict[str, object]) -> None:
    assert problems_of(flow(tree).encode()) != ()


def test_a_problem_across_keys_stands_at_the_line_of_its_key() -> None:
    found = problems(
        "web: {ui: true}\nalerting:\n  webhooks:\n    - url: http://a\n    - url: http://b\n"
        "      bearer_token_file: /t\n      basic_auth: {username: u, password: p}\n"
    )
    assert found == ["gpufeed.yml:5: alerting.webhooks.1: has both basic_auth and bearer_token_file"]
