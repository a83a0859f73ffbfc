# SPDX-License-Identifier: Apache-2.0
"""The file is read as strictly as the exporter-toolkit reads it, and what Python cannot keep is refused by name."""

from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from certificates import write
from gpufeed.errors import ConfigError
from gpufeed.web.access.read import read
from gpufeed.web.access.schema import go_duration_s


def _problems(folder: Path, text: str) -> str:
    file = folder / "web.yml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(file)
    return "\n".join(caught.value.problems)


def test_an_empty_file_is_neither_tls_nor_password(tmp_path: Path) -> None:
    file = tmp_path / "web.yml"
    file.write_text("")
    access = read(file)
    assert (access.context, dict(access.config.basic_auth_users)) == (None, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tls: {}", "web.yml:1: tls: unknown key"),
        ("basic_auth_users: {}\nbasic_auth_users: {}", "web.yml:2: basic_auth_users: stands in"),
        ("basic_auth_users: {a: plain}", "web.yml:1: basic_auth_users.a: expected a bcrypt hash"),
        ("rate_limit: {interval: 5x}", "expected a duration such as"),
        ("rate_limit: {burst: -1}", "expected at least 0"),
        ("http_server_config: {headers: {Server: x}}", "headers.Server: cannot be set; known: Strict-Transport"),
        ("http_server_config: {headers: {X-Frame-Options: never}}", "X-Frame-Options: expected deny or sameorigin"),
        ("tls_server_config: {cert_file: server.pem}", "tls_server_config.key_file: is missing"),
        ("tls_server_config: {key_file: server.key}", "tls_server_config.cert_file: is missing"),
        ("tls_server_config: {client_auth_type: Sometimes}", "expected one of"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(folder: Path, text: str, expected: str) -> None:
    assert expected in _problems(folder, text)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("client_auth_type: RequestClientCert", "without verifying them, which Python's ssl cannot"),
        ("client_auth_type: RequireAnyClientCert", "without verifying them, which Python's ssl cannot"),
        ("client_auth_type: RequireAndVerifyClientCert", "client_ca_file: is missing"),
        ("client_ca_file: ca.pem", "client_auth_type asks no client"),
        ("client_allowed_sans: [a]", "needs client_auth_type"),
        ("min_version: TLS10", "TLS10 is not served"),
        ("max_version: TLS11", "TLS11 is not served"),
        ("min_version: TLS13, max_version: TLS12", "max_version: is below min_version"),
        ("cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]", "is no suite that is served"),
        ("curve_preferences: [X25519, CurveP256]", "more than one curve cannot be set"),
        ("cert_file: gone.pem", "gone.pem: cannot be read: No such file"),
        ("key_file: ca.pem", "not a certificate with its key"),
    ],
)
def test_tls_that_cannot_be_kept_is_refused_not_weakened(folder: Path, more: str, expected: str) -> None:
    base = {"cert_file": "server.pem", "key_file": "server.key"}
    given_keys = {part.split(":")[0].strip() for part in more.split(", ")}
    kept = ", ".join([f"{key}: {value}" for key, value in base.items() if key not in given_keys] + [more])
    assert expected in _problems(folder, f"tls_server_config: {{{kept}}}")


@pytest.mark.parametrize("auth", ["ECDSA", "RSA"])
@pytest.mark.parametrize("suite", ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305", "AES_128_CBC_SHA"])
def test_every_suite_by_its_name_in_go_is_known_here(folder: Path, auth: str, suite: str) -> None:
    file = folder / "web.yml"
    name = f"TLS_ECDHE_{auth}_WITH_{suite}"
    file.write_text(f"tls_server_config: {{cert_file: server.pem, key_file: server.key, cipher_suites: [{name}]}}")
    context = read(file).context
    assert context is not None
    offered = {one["name"] for one in context.get_ciphers() if not one["name"].startswith("TLS_")}
    expected = suite.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "").replace("_", "-")
    assert offered == {f"ECDHE-{auth}-{expected}"}


def test_a_certificate_and_its_key_within_the_file(folder: Path) -> None:
    parts = {"cert": (folder / "server.pem").read_text(), "key": (folder / "server.key").read_text()}
    lines = ["tls_server_config:"]
    for name, text in parts.items():
        lines += [f"  {name}: |", *(f"    {line}" for line in text.splitlines())]
    file = folder / "web.yml"
    file.write_text("\n".join(lines) + "\n")
    assert read(file).context is not None


def test_a_key_of_another_certificate_is_said_to_be_one(folder: Path, authority: trustme.CA) -> None:
    write(authority.issue_cert("127.0.0.1"), folder, "other")
    text = "tls_server_config: {cert_file: server.pem, key_file: other.key}"
    assert "the key does not belong to the certificate" in _problems(folder, text)


def test_no_hash_or_key_is_repeated_in_a_problem(folder: Path) -> None:
    assert "hunter2" not in _problems(folder, "basic_auth_users: {a: hunter2}")


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("1s", 1.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("100ms", 0.1), ("20µs", 20e-6)]
)
def test_a_duration_as_go_writes_it(text: str, seconds: float) -> None:
    assert go_duration_s(text) == pytest.approx(seconds)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = go_duration_s(text)
    except ValueError:
        return
    assert seconds >= 0
