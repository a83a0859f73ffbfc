# SPDX-License-Identifier: Apache-2.0
"""Reports of jobs: whose they are is checked, and what is hostile is refused and counted."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufeed.errors import ParseError
from gpufeed.model.jobs import JobReport, RefusedReports
from gpufeed.parse.job_report import MAX_BYTES, parse_report
from gpufeed.sources.reports import MAX_AGE_NS, MAX_REPORTERS, OFTEN, ReportsSource
from host_bench import HostBench, read, samples_of, statuses

JOB = "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"


class Reports:
    def __init__(self, bench: HostBench) -> None:
        self.bench = bench
        self.folder = bench.root / "reports"
        self.folder.mkdir()
        config = msgspec.structs.replace(
            bench.config, reports_dir=str(self.folder), report_socket=str(bench.root / "r.sock")
        )
        (plan,) = ReportsSource().plan(config)
        desk = bench.desk("reports")
        desk.config = config
        self.reader = plan.open(plan.spec, desk)
        self.process(10)

    def process(self, pid: int, cgroup: str = JOB) -> None:
        self.bench.write(f"proc/{pid}/cgroup", cgroup)

    def text(self, pid: int = 10, **fields: object) -> str:
        told = {"version": 1, "pid": pid, "elapsed_s": 10.0, "data_wait_s": 4.0, **fields}
        return json.dumps({name: value for name, value in told.items() if value is not None})

    def write(self, name: str = "10.json", text: str | None = None) -> Path:
        path = self.folder / name
        path.write_text(self.text() if text is None else text, encoding="utf-8")
        now_s = self.bench.clock.wall_ns() / 1e9
        os.utime(path, (now_s, now_s))
        return path

    def found(self) -> tuple[list[JobReport], dict[str, int]]:
        outcome = read(self.reader, "jobs.reports")
        (refused,) = samples_of(outcome, RefusedReports)
        return samples_of(outcome, JobReport), {reason: count for reason, count in refused.by_reason.items() if count}

    def refused(self) -> dict[str, int]:
        reports, refused = self.found()
        assert reports == []
        return refused


@pytest.fixture
def reports(bench: HostBench) -> Iterator[Reports]:
    one = Reports(bench)
    yield one
    one.reader.close()


def test_a_report_is_that_of_the_job_whose_process_wrote_it(reports: Reports) -> None:
    reports.write(text=reports.text(model_flops=5e15, later_field="ignored"))
    found, refused = reports.found()
    assert found == [
        JobReport(scheduler="slurm", job_id="7", step="0", pid=10, elapsed_s=10, data_wait_s=4, model_flops=5e15)
    ]
    assert refused == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "malformed"),
        ("[" * 2000, "malformed"),
        ("null", "malformed"),
        ('{"version": 1, "pid": 10, "elapsed_s": -1}', "malformed"),
        ('{"version": 1, "pid": 10, "elapsed_s": 1, "data_wait_s": 100}', "malformed"),
        ('{"version": 1, "pid": 10, "elapsed_s": 1e999}', "malformed"),
        ('{"version": 1, "pid": 10, "elapsed_s": NaN}', "malformed"),
        ('{"version": 9, "pid": 10, "elapsed_s": 1}', "malformed"),
        ("x" * (MAX_BYTES + 1), "too_large"),
        ('{"version": 1, "pid": 11, "elapsed_s": 1}', "name"),
    ],
)
def test_a_hostile_file_is_refused_and_counted(reports: Reports, text: str, reason: str) -> None:
    reports.write(text=text)
    assert reports.refused() == {reason: 1}


def test_links_pipes_and_directories_are_never_followed_or_waited_for(reports: Reports) -> None:
    secret = reports.bench.root / "secret"
    secret.write_text(reports.text(), encoding="utf-8")
    (reports.folder / "10.json").symlink_to(secret)
    assert reports.refused() == {"link": 1}
    (reports.folder / "10.json").unlink()
    os.link(secret, reports.folder / "10.json")
    assert reports.refused() == {"link": 2}
    (reports.folder / "10.json").unlink()
    os.mkfifo(reports.folder / "10.json")
    assert reports.refused() == {"link": 2, "no_file": 1}
    (reports.folder / "10.json").unlink()
    (reports.folder / "10.json").mkdir()
    assert reports.refused() == {"link": 2, "no_file": 2}


def test_other_names_are_counted_and_unfinished_ones_are_not(reports: Reports) -> None:
    for name in ("10.json.new", "..json", "0.json", "10.JSON", "a b.json"):
        reports.write(name)
    assert reports.refused() == {"name": 4}


def test_an_old_report_is_gone_and_nothing_wrong(reports: Reports) -> None:
    reports.write()
    reports.bench.clock.advance(MAX_AGE_NS + 1)
    assert reports.refused() == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_not_the_jobs(reports: Reports) -> None:
    os.chown(reports.write(), 12345, 12345)
    assert reports.refused() == {"user": 1}


def test_who_works_for_no_job_reports_for_none(reports: Reports) -> None:
    reports.process(10, "0::/user.slice/user-1000.slice/session-1.scope\n")
    reports.write()
    assert reports.refused() == {"no_job": 1}
    reports.write("12.json", reports.text(12))
    assert reports.refused() == {"no_job": 2}  # whose process has ended is no offender
    reports.bench.refuse("proc/12/cgroup")
    assert reports.refused() == {"no_job": 3, "no_process": 1}


def test_reporters_are_bounded(reports: Reports) -> None:
    for pid in range(100, 100 + MAX_REPORTERS + 3):
        reports.process(pid)
        reports.write(f"{pid}.json", reports.text(pid))
    found, refused = reports.found()
    assert (len(found), refused) == (MAX_REPORTERS, {"too_many": 3})


def send(reports: Reports, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.sendto(data, str(reports.bench.root / "r.sock"))


def test_over_the_socket_the_kernel_says_who_it_is(reports: Reports) -> None:
    reports.found()
    reports.process(os.getpid())
    send(reports, reports.text(pid=10).encode())
    (found,), refused = reports.found()
    assert (found.pid, found.job_id, refused) == (os.getpid(), "7", {})
    reports.bench.clock.advance(MAX_AGE_NS + 1)
    assert reports.refused() == {}


def test_a_hostile_datagram_is_refused_and_counted(reports: Reports) -> None:
    reports.found()
    reports.process(os.getpid())
    send(reports, b"x")
    send(reports, b" " * (MAX_BYTES + 100))
    assert reports.refused() == {"malformed": 1, "too_large": 1}


def test_a_process_that_reports_without_pause_is_heard_no_more_often_than_another(reports: Reports) -> None:
    reports.found()
    reports.process(os.getpid())
    for _ in range(OFTEN + 2):
        send(reports, reports.text(pid=10).encode())
    found, refused = reports.found()
    assert (len(found), refused) == (1, {"too_often": 2})


def test_what_stands_in_place_of_the_socket_is_left_alone(reports: Reports) -> None:
    (reports.bench.root / "r.sock").write_text("mine", encoding="utf-8")
    outcome = read(reports.reader, "jobs.reports")
    assert statuses(outcome)["job_reports", ""].state == "broken"
    assert (reports.bench.root / "r.sock").read_text(encoding="utf-8") == "mine"


def test_a_missing_directory_is_said(reports: Reports) -> None:
    reports.folder.rmdir()
    said = statuses(read(reports.reader, "jobs.reports"))["job_reports", ""]
    assert (said.state, "No such file" in said.reason) == ("broken", True)


def test_without_a_place_nothing_is_read(bench: HostBench) -> None:
    assert ReportsSource().plan(bench.config) == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_a_parse_error(data: bytes) -> None:
    with contextlib.suppress(ParseError):
        assert parse_report(data).elapsed_s >= 0
