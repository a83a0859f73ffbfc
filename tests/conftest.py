# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures of the whole suite."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

GOLDEN = Path(__file__).parent / "golden"

hypothesis.settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=100, database=None, print_blob=True
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=5_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew; then read the diff")
    parser.addoption("--fault-table", action="store_true", help="end with a table: fault, held or not, recovery time")
    parser.addoption("--real-node", action="store_true", help="also run what needs a real GPU on this machine")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_node: needs a real GPU; runs only with --real-node")
    config.addinivalue_line("markers", "fault: a row of the fault matrix; `make faults` prints them")
    config.addinivalue_line("markers", "slow: starts several processes; the quick loop is -m 'not slow'")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--real-node"):
        return
    skip = pytest.mark.skip(reason="needs a real GPU: run with --real-node")
    for item in items:
        if "real_node" in item.keywords:
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The fault matrix, where it is asked for."""
    if not config.getoption("--fault-table"):
        return
    terminalreporter.section("faults")
    for outcome, word in (("failed", "NOT HELD"), ("passed", "held"), ("skipped", "not tried")):
        for report in terminalreporter.getreports(outcome):
            if report.when == "call" or outcome == "skipped":
                took = dict(report.user_properties).get("recovery_s", "")
                name = report.nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
                terminalreporter.write_line(f"{word:<10} {took:>8}  {name}")


def pytest_runtest_setup() -> None:
    """No test talks to anything but this machine."""
    import pytest_socket

    pytest_socket.socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with tests/golden/NAME, or write it with --update-golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} is missing: run with --update-golden and read what it writes")
        want = path.read_text(encoding="utf-8")
        if text != want:
            diff = difflib.unified_diff(want.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            pytest.fail("\n".join([*list(diff)[:80], "(--update-golden writes it anew)"]))

    return compare
