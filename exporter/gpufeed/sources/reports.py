# SPDX-License-Identifier: Apache-2.0
"""What jobs report of themselves, by text files and by a socket. Anybody may write there: nobody is believed blindly.

A report counts for the job in whose control group the reporting process is. Over the socket the kernel says which
process that is; a file has to belong to the user of the process that it names.
"""

import os
import re
import socket
import stat
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gpufeed.errors import Absent, ParseError, SourceError
from gpufeed.model.desired import ProbeConfig
from gpufeed.model.frame import InputStatus
from gpufeed.model.ids import GroupName, LaneId
from gpufeed.model.jobs import JobReport, RefusedReports
from gpufeed.parse.cgroup import parse_cgroup
from gpufeed.parse.cgroup_job import job_of
from gpufeed.parse.job_report import MAX_BYTES, Report, parse_report
from gpufeed.sources.contract import Desk, Group, LanePlan, NoSpec, Outcome
from gpufeed.sources.files import Tree
from gpufeed.sources.gathering import Statuses
from gpufeed.units import NS_PER_S

REPORTS: Final = GroupName("jobs.reports")
PERIOD_NS: Final = 2 * NS_PER_S
MAX_AGE_NS: Final = 60 * NS_PER_S
MAX_FILES: Final = 256
MAX_DATAGRAMS: Final = 256
"""In one read: more than that is thrown away by the kernel, as the queue of the socket is short."""
MAX_REPORTERS: Final = 128
OFTEN: Final = 8
"""Datagrams of one process in one read, two seconds: a reporter sends one."""
REASONS: Final = (
    "link", "malformed", "name", "no_file", "no_job", "no_process", "sender", "too_large", "too_many", "too_often",
    "unreadable", "user",
)  # fmt: skip
_NAME: Final = re.compile(r"[1-9][0-9]{0,9}\.json", re.ASCII)
_CREDENTIALS: Final = struct.Struct("3i")


class _Heard(NamedTuple):
    report: Report
    uid: int
    at_ns: int


class RefusedError(SourceError):
    """A report that is not believed; the text is the reason, one of a few words."""


class ReportsSource:
    """Plans the lane `reports`, where a place for reports is configured."""

    name = "reports"

    def plan(self, config: ProbeConfig) -> tuple[LanePlan, ...]:
        """One lane, or none."""
        if not config.options("jobs").enabled or (config.reports_dir is None and config.report_socket is None):
            return ()
        group = Group(name=REPORTS, collector="jobs", period_ns=PERIOD_NS)
        return (LanePlan(lane=LaneId("reports"), groups=(group,), open=open_reports),)


def open_reports(_spec: NoSpec, desk: Desk) -> "ReportsReader":
    """A reader of the configured places."""
    return ReportsReader(desk)


class ReportsReader:
    """Reads all files each time, and whatever has come to the socket."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._proc = Tree(desk.config.procfs, desk)
        self._directory = desk.config.reports_dir
        self._path = desk.config.report_socket
        self._socket: socket.socket | None = None
        self._problem = ""
        self._heard: dict[int, _Heard] = {}  # over the socket, by process
        self._refused: Counter[str] = Counter()
        self._statuses = Statuses()

    def read(self, group: GroupName) -> Outcome:  # noqa: ARG002 there is one group
        """A JobReport per process that reports, and how many reports were refused, by reason."""
        self._problem = ""
        self._receive()
        now_ns = self._desk.clock.monotonic_ns()
        self._heard = {pid: one for pid, one in self._heard.items() if now_ns - one.at_ns <= MAX_AGE_NS}
        found: dict[int, JobReport] = {}
        for one in (*self._heard.values(), *self._files()):
            if len(found) >= MAX_REPORTERS and one.report.pid not in found:
                self._refused["too_many"] += 1
                continue
            try:
                report = self._owned(one)
                if report is not None:
                    found[one.report.pid] = report
            except RefusedError as error:
                self._refused[str(error)] += 1
        state = InputStatus("job_reports", "", "available")
        if self._problem:
            state = InputStatus("job_reports", "", "broken", self._problem, "make its directory")
        return Outcome(
            samples=(
                *(found[pid] for pid in sorted(found)),
                RefusedReports(by_reason={reason: self._refused[reason] for reason in REASONS}),
            ),
            inputs=self._statuses.news(state),
        )

    def close(self) -> None:
        """Give up the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _files(self) -> Iterator[_Heard]:
        if self._directory is None:
            return
        self._desk.call = f"listing {self._directory}"
        try:
            with os.scandir(self._directory) as entries:
                names = [entry.name for entry, _ in zip(entries, range(MAX_FILES), strict=False)]
        except OSError as error:
            self._problem = f"{self._directory}: {error.strerror or error}"
            return
        for name in sorted(names):
            if not _NAME.fullmatch(name):
                if not name.endswith(".new"):  # one that is being written
                    self._refused["name"] += 1
                continue
            try:
                heard = self._file(f"{self._directory}/{name}")
            except RefusedError as error:
                self._refused[str(error)] += 1
                continue
            if heard is None:
                continue
            if f"{heard.report.pid}.json" == name:
                yield heard
            else:
                self._refused["name"] += 1

    def _file(self, path: str) -> _Heard | None:
        """None for one that is old, or gone. Raises RefusedError."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError("link" if os.path.islink(path) else "unreadable") from error
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise RefusedError("no_file")
            if about.st_nlink != 1:
                raise RefusedError("link")
            if about.st_size > MAX_BYTES:
                raise RefusedError("too_large")
            age_ns = self._desk.clock.wall_ns() - about.st_mtime_ns
            if age_ns > MAX_AGE_NS:
                return None
            data = os.read(descriptor, MAX_BYTES + 1)
        finally:
            os.close(descriptor)
        return _Heard(_parsed(data), about.st_uid, self._desk.clock.monotonic_ns())

    def _receive(self) -> None:
        """Whatever has come. The kernel says who sent it."""
        if self._path is None:
            return
        try:
            if self._socket is None:
                self._socket = _listening(self._path)
            often: Counter[int] = Counter()
            for _ in range(MAX_DATAGRAMS):
                data, ancillary, flags, _ = self._socket.recvmsg(MAX_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
                self._take(data, ancillary, often, is_cut=bool(flags & socket.MSG_TRUNC))
        except BlockingIOError:
            return
        except OSError as error:
            self._problem = f"{self._path}: {error.strerror or error}"

    def _take(self, data: bytes, ancillary: list[tuple[int, int, bytes]], often: Counter[int], *, is_cut: bool) -> None:
        try:
            pid, uid = _sender(ancillary, is_cut=is_cut)
            report = _of_process(_parsed(data), pid)
        except RefusedError as error:
            self._refused[str(error)] += 1
            return
        often[pid] += 1
        if often[pid] > OFTEN:
            self._refused["too_often"] += 1
        elif pid not in self._heard and len(self._heard) >= MAX_REPORTERS:
            self._refused["too_many"] += 1
        else:
            self._heard[pid] = _Heard(report, uid, self._desk.clock.monotonic_ns())

    def _owned(self, heard: _Heard) -> JobReport | None:
        """With the job whose process it is; None where the process has ended. Raises RefusedError."""
        report = heard.report
        try:
            owner = os.stat(f"{self._desk.config.procfs}/{report.pid}").st_uid
            job = job_of(parse_cgroup(self._proc.attribute(f"{report.pid}/cgroup")))
        except (FileNotFoundError, Absent):
            return None
        except (OSError, SourceError, ParseError) as error:
            raise RefusedError("no_process") from error
        if owner != heard.uid:
            raise RefusedError("user")
        if job is None or job.is_scheduler_own:
            raise RefusedError("no_job")
        return JobReport(
            scheduler=job.scheduler,
            job_id=job.job_id,
            step=job.step,
            pod_uid=job.pod_uid,
            pid=report.pid,
            elapsed_s=report.elapsed_s,
            data_wait_s=report.data_wait_s,
            model_flops=report.model_flops,
            samples=report.samples,
            tokens=report.tokens,
            dtype=report.dtype,
        )


_FROM: Final = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)


def _sender(ancillary: list[tuple[int, int, bytes]], *, is_cut: bool) -> tuple[int, int]:
    """Process and user, by the kernel's word. Raises RefusedError."""
    if is_cut:
        raise RefusedError("too_large")
    said = next((raw for level, kind, raw in ancillary if (level, kind) == _FROM), b"")
    pid, uid, _ = _CREDENTIALS.unpack(said) if len(said) == _CREDENTIALS.size else (0, 0, 0)
    if pid <= 0:  # also of a PID namespace that we cannot see into
        raise RefusedError("sender")
    return pid, uid


def _parsed(data: bytes) -> Report:
    try:
        return parse_report(data)
    except ParseError as error:
        raise RefusedError("malformed") from error


def _of_process(report: Report, pid: int) -> Report:
    """A container numbers its processes anew: what counts is the number that the kernel gives us."""
    return Report(
        version=report.version, pid=pid, elapsed_s=report.elapsed_s, data_wait_s=report.data_wait_s,
        model_flops=report.model_flops, samples=report.samples, tokens=report.tokens, steps=report.steps,
        dtype=report.dtype,
    )  # fmt: skip


def _listening(path: str) -> socket.socket:
    """A socket that any user may send to. Raises OSError, also where something else stands there."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(17, "something else stands there")
        os.unlink(path)
    except FileNotFoundError:
        pass
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listening.bind(path)
        Path(path).chmod(0o666)
    except OSError:
        listening.close()
        raise
    return listening
