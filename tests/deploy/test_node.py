# SPDX-License-Identifier: Apache-2.0
"""The package on a node with a real systemd, from its installation to its purge, in that order."""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest
import trustme

from certificates import write
from container import Container
from rdma_port import write_port

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

DROPPED = "/var/tmp"  # noqa: S108 of the container
CONFIG = "etc/gpufeed/gpufeed.yml"
SCRAPE = "curl -sf http://127.0.0.1:9937/metrics"
FUSE_SERVER = Path(__file__).parents[1] / "e2e" / "fuse_server.py"


@pytest.fixture(autouse=True)
def _restored(node: Container) -> Iterator[None]:
    """Each test leaves the node as the package left it."""
    kept = (node.root / CONFIG).read_bytes() if (node.root / CONFIG).exists() else None
    yield
    drop_ins = node.root / "etc/systemd/system/gpufeed.service.d"
    if kept is not None and (node.root / CONFIG).exists():
        has_changed = (node.root / CONFIG).read_bytes() != kept or drop_ins.exists()
        (node.root / CONFIG).write_bytes(kept)
        shutil.rmtree(drop_ins, ignore_errors=True)
        if has_changed:
            node.run("systemctl", "daemon-reload")
            node.run("systemctl", "restart", "gpufeed")


def _use_drop_in(node: Container, name: str) -> None:
    folder = node.root / "etc/systemd/system/gpufeed.service.d"
    folder.mkdir(exist_ok=True)
    node.run("cp", f"/usr/share/gpufeed/drop-ins/{name}", "/etc/systemd/system/gpufeed.service.d/")
    node.run("systemctl", "daemon-reload")


def _capabilities(node: Container, pid: int) -> int:
    return int(node.shell(f"sed -n 's/^CapEff:\\t//p' /proc/{pid}/status"), 16)


def _probe(node: Container, parent: int) -> int:
    return int(node.until(f"pgrep -P {parent}", 20, "a probe").split()[0])


def _value(node: Container, series: str) -> float | None:
    lines = [line for line in node.shell(SCRAPE).splitlines() if line.startswith(series)]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else None


def test_installed_it_runs_enabled_unprivileged_and_answers(node: Container) -> None:
    before = time.monotonic()
    node.run("dpkg", "-i", f"{DROPPED}/gpufeed_0.1.0_amd64.deb")
    assert time.monotonic() - before < 60
    assert (node.show("gpufeed", "ActiveState"), node.show("gpufeed", "UnitFileState")) == ("active", "enabled")
    assert "Serving on 0.0.0.0:9937" in node.show("gpufeed", "StatusText")
    assert _capabilities(node, node.pid()) == 0
    assert node.shell(f"stat -c %u /proc/{node.pid()}").strip() != "0"
    assert 'version="0.1.0"' in node.until(f"{SCRAPE} | grep ^gpufeed_build_info", 20, "a scrape")
    assert _value(node, "gpufeed_gpu_count") is None  # no driver here, and so no number of GPUs
    node.until(f"{SCRAPE} | grep -q '^gpufeed_probe_up 1'", 20, "a probe")


def test_the_command_runs_for_a_person_too(node: Container) -> None:
    assert node.run("gpufeed", "--version").strip() == "gpufeed 0.1.0"
    assert "ok" in node.run("gpufeed", "check-config", "/etc/gpufeed/gpufeed.yml")


def test_a_reload_takes_what_is_right_and_keeps_the_old_where_it_is_wrong(node: Container) -> None:
    pid = node.pid()
    (node.root / CONFIG).write_text("exposition: {profile: full}\n")
    node.run("systemctl", "reload", "gpufeed")
    node.until(f"{SCRAPE} | grep -q 'gpufeed_series{{profile=\"full\"'", 20, "the new profile")
    (node.root / CONFIG).write_text("exposition: {profil: minimal}\n")
    node.run("systemctl", "reload", "gpufeed", check=False)
    node.until(f"{SCRAPE} | grep -q '^gpufeed_config_last_reload_successful 0'", 20, "a refused reload")
    assert "did you mean exposition.profile" in node.shell("journalctl -u gpufeed --no-pager")
    assert _value(node, 'gpufeed_series{profile="full"') is not None
    assert node.pid() == pid


def test_tls_and_a_password_through_a_real_prometheus(node: Container, tmp_path: Path) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    authority, folder = trustme.CA(), node.root / "etc/gpufeed"
    write(authority.issue_cert("127.0.0.1"), folder)
    hashed = bcrypt.hashpw(b"opensesame", bcrypt.gensalt(4)).decode()
    web = "tls_server_config: {cert_file: server.pem, key_file: server.key}\n"
    (folder / "web.yml").write_text(f"{web}basic_auth_users: {{prometheus: {hashed}}}\n")
    node.shell("groupadd -f ssl-cert && chgrp ssl-cert /etc/gpufeed/server.key && chmod 0640 /etc/gpufeed/server.key")
    (node.root / CONFIG).write_text("web: {config_file: /etc/gpufeed/web.yml}\n")
    _use_drop_in(node, "70-tls-key.conf")
    node.run("systemctl", "restart", "gpufeed")
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: gpufeed\n  scheme: https\n"
        "  basic_auth: {username: prometheus, password: opensesame}\n  tls_config: {ca_file: ca.pem}\n"
        "  static_configs: [{targets: ['127.0.0.1:9937']}]\n"
    )
    prometheus = node.in_its_network(
        "prometheus",
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        "--web.listen-address=127.0.0.1:9090",
    )
    try:
        ask = "curl -sf 'http://127.0.0.1:9090/api/v1/query?query=up'"
        node.until(f"{ask} | grep -q '\"1\"]'", 40, "a scrape with TLS and password")
        assert node.shell("curl -sk -o /dev/null -w %{http_code} https://127.0.0.1:9937/metrics") == "401"
        assert node.shell("curl -s http://127.0.0.1:9937/metrics", check=False) == ""
    finally:
        prometheus.terminate()
        prometheus.wait(20)
    for name in ("web.yml", "server.pem", "server.key"):
        (folder / name).unlink()


def test_a_killed_server_is_started_again(node: Container) -> None:
    old = node.pid()
    node.run("kill", "-9", str(old))
    node.until(f'p=$(systemctl show -P MainPID gpufeed); [ "$p" != 0 ] && [ "$p" != {old} ] && {SCRAPE}', 30, "another")


def test_a_killed_probe_is_replaced_and_the_server_never_stops_answering(node: Container) -> None:
    server = node.pid()
    old = _probe(node, server)
    node.run("kill", "-9", str(old))
    node.shell(SCRAPE)
    node.until(f"[ $(pgrep -P {server}) != {old} ]", 25, "another probe")
    assert node.pid() == server


def test_a_server_whose_loop_stands_still_is_ended_by_the_watchdog(node: Container) -> None:
    folder = node.root / "etc/systemd/system/gpufeed.service.d"
    folder.mkdir(exist_ok=True)
    (folder / "watchdog.conf").write_text("[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n")
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "restart", "gpufeed")
    old = node.pid()
    node.run("kill", f"-{signal.SIGSTOP.value}", str(old))
    node.until(f'p=$(systemctl show -P MainPID gpufeed); [ "$p" != 0 ] && [ "$p" != {old} ] && {SCRAPE}', 60, "another")
    assert "watchdog" in node.shell("journalctl -u gpufeed --no-pager").lower()


def test_a_hang_in_the_kernel_does_not_keep_the_next_server_from_the_port(node: Container) -> None:
    if not Path("/dev/fuse").exists():
        pytest.skip("no /dev/fuse")
    node.shell("[ -e /dev/fuse ] || mknod /dev/fuse c 10 229")
    shutil.copy(FUSE_SERVER, node.root / "var/tmp/fuse_server.py")
    write_port(node.root / "srv/sys/class/infiniband/mlx5_0")
    target = "/srv/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"
    hanging = node.popen("python3", f"{DROPPED}/fuse_server.py", target)
    stuck = f"{SCRAPE} | grep -q '^gpufeed_lane_stuck_seconds.*mlx5_0'"
    try:
        node.until("grep -q fuse.hang /proc/mounts", 20, "a file that hangs")
        (node.root / CONFIG).write_text("paths: {sysfs: /srv/sys}\n")
        node.run("systemctl", "restart", "gpufeed")
        node.until(stuck, 60, "the lane that hangs")
        probe = _probe(node, node.pid())
        before_s = time.monotonic()
        node.run("systemctl", "restart", "gpufeed", timeout_s=90)
        assert time.monotonic() - before_s < 5 * 10  # TimeoutStopSec
        assert "D (disk sleep)" in node.shell(f"cat /proc/{probe}/task/*/status")
        node.until(SCRAPE, 20, "an answer on the same port")
        node.until(stuck, 60, "the lane whose lock the old probe still holds")
    finally:
        hanging.kill()
        hanging.communicate()


def test_the_port_held_by_systemd_outlives_a_restart(node: Container) -> None:
    _use_drop_in(node, "40-socket.conf")
    node.run("systemctl", "stop", "gpufeed")
    node.run("systemctl", "start", "gpufeed.socket")
    node.until(SCRAPE, 30, "the service, started by the first scrape")
    node.run("systemctl", "restart", "gpufeed")
    node.shell(f"{SCRAPE} >/dev/null")
    node.run("systemctl", "stop", "gpufeed.socket", "gpufeed")


def test_an_upgrade_while_it_runs(node: Container) -> None:
    node.run("systemctl", "start", "gpufeed")
    (node.root / "var/lib/private/gpufeed").mkdir(exist_ok=True, parents=True)
    node.run("dpkg", "-i", f"{DROPPED}/gpufeed_99.0.0_amd64.deb")
    node.until(f"{SCRAPE} | grep -q 'version=\"99.0.0\"'", 40, "the new version")
    assert node.show("gpufeed", "ActiveState") == "active"
    assert node.shell("journalctl -u gpufeed --no-pager -p err", check=False).count("Traceback") == 0


def test_two_units_and_rights_only_where_no_network_is(node: Container) -> None:
    (node.root / CONFIG).write_text("paths: {probe_socket: /run/gpufeed/probe.sock}\n")
    _use_drop_in(node, "60-probe-unit.conf")
    node.run("systemctl", "start", "gpufeed-probe")
    node.run("systemctl", "restart", "gpufeed")
    node.until(f"{SCRAPE} | grep -q '^gpufeed_probe_up 1'", 40, "a probe behind the socket")
    wanted = (1 << 2) | (1 << 19) | (1 << 34)  # CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYSLOG of capabilities(7)
    assert _capabilities(node, node.pid()) == 0
    assert _capabilities(node, _probe(node, node.pid("gpufeed-probe"))) == wanted
    assert node.shell(f"pgrep -P {node.pid()}", check=False) == ""
    old = node.pid("gpufeed-probe")
    node.run("systemctl", "kill", "-s", "KILL", "gpufeed-probe")
    node.until(
        f'[ "$(systemctl show -P MainPID gpufeed-probe)" != {old} ] && pgrep -f gpufeed.probe.main', 30, "another"
    )
    node.until(f"{SCRAPE} | grep -q '^gpufeed_probe_up 1'", 40, "the probe again")
    node.run("systemctl", "stop", "gpufeed-probe")


def test_a_purge_leaves_nothing(node: Container) -> None:
    node.run("dpkg", "-P", "gpufeed")
    found = node.shell("find / -xdev -iname '*gpufeed*' -not -path '/proc/*' -not -path '/var/tmp/*'", check=False)
    left = [line for line in found.splitlines() if "/systemd/system/gpufeed.service.d" not in line]
    assert [line for line in left if not line.startswith(("/sys/", "/run/systemd/"))] == []
    assert node.show("gpufeed", "LoadState") == "not-found"
