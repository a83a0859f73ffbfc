# SPDX-License-Identifier: Apache-2.0
"""Every captured process, as one that holds a GPU: the page says for whom it works and what it has read.

Whose the processes of ours are stands beside them in tests/captures/jobs.tree; those of GPUFEED_CAPTURES are read
here by other means.
"""

import os
import re
from pathlib import Path

import pytest

from captured.pages import page_of_job, series_of
from captured.second_reader import Series
from captured.trees import CAPTURES, unpack

FOLDER = os.environ.get("GPUFEED_CAPTURES")
OURS = re.findall(r"^(\d+) (\S+.*)$", (CAPTURES / "jobs.tree").read_text("utf-8").partition(":: proc")[0], re.MULTILINE)


def captured(pattern: str) -> list[Path]:
    return sorted(Path(FOLDER).glob(pattern)) if FOLDER else []


def jobs_of(series: Series) -> list[tuple[str, ...]]:
    labels = [dict(key) for name, key in series if name == "gpufeed_gpu_job_info"]
    return [tuple(word for word in (one["scheduler"], one["job_id"], one["step"]) if word) for one in labels]


def of_job(series: Series, metric: str) -> list[float]:
    return [value for (name, _), value in series.items() if name == metric]


def as_a_person_reads(text: str, mounts: str) -> list[tuple[str, ...]]:
    if (slurm := re.search(r"slurm[^/]*(?:/uid_\d+)?/job_(\d+)(?:/step_([^/\n]+))?", text)) is not None:
        return [tuple(word for word in ("slurm", slurm[1], slurm[2]) if word)]
    if pod := re.search(r"pod([0-9a-f]{8}[0-9a-f_-]{28})", text) or re.search(r"/pods/([0-9a-f-]{36})/etc-", mounts):
        return [("kubernetes", pod[1].replace("_", "-"))]
    if (container := re.search(r"([0-9a-f]{64})(?:\.scope)?$", text, re.MULTILINE)) is not None:
        return [("container", container[1][:12])]
    garden = re.search(r"garden/(.*)", text)
    return [("container", garden[1])] if garden else []


@pytest.mark.parametrize(("pid", "whose"), OURS)
def test_a_page_says_for_whom_a_process_works(pid: str, whose: str, tmp_path: Path) -> None:
    root = unpack("jobs", tmp_path / "node")
    series = series_of(page_of_job(root, tmp_path / "gpu", int(pid)))
    assert jobs_of(series) == ([] if whose == "-" else [tuple(whose.split())])


@pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")
@pytest.mark.parametrize("path", captured("cgroup/*/proc/*/cgroup"), ids=lambda path: "-".join(path.parts[-4:-1:2]))
def test_a_page_says_for_whom_a_captured_process_works(path: Path, tmp_path: Path) -> None:
    mounts = path.with_name("mountinfo")
    expected = as_a_person_reads(path.read_text("ascii"), mounts.read_text("ascii") if mounts.exists() else "")
    series = series_of(page_of_job(path.parents[2], tmp_path, int(path.parent.name)))
    assert jobs_of(series) == expected


@pytest.mark.skipif(not FOLDER, reason="GPUFEED_CAPTURES names no directory with captures of real nodes")
@pytest.mark.parametrize(
    "path",
    [path for path in captured("cgroup/*/proc/*/environ") if not path.with_name("cgroup").exists()],
    ids=lambda path: path.parent.name,
)
def test_a_captured_process_whose_variables_alone_are_known_works_for_the_job_they_name(
    path: Path, tmp_path: Path
) -> None:
    variables = dict(entry.split("=", 1) for entry in path.read_text("ascii").split("\0") if "=" in entry)
    series = series_of(page_of_job(path.parents[2], tmp_path, int(path.parent.name)))
    assert [job[:2] for job in jobs_of(series)] == [("slurm", variables["SLURM_JOB_ID"])]


def files_of_a_job(tmp_path: Path, folder: str, io: str) -> Path:
    root = tmp_path / "node"
    proc = root / "proc" / folder
    task = proc / "task" / folder
    task.mkdir(parents=True)
    (proc / "cgroup").write_text("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", encoding="ascii")
    (proc / "io").write_text(io, encoding="ascii")
    (task / "status").write_text(
        "Name:\tpython\nUid:\t5\t5\t5\t5\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n", "ascii"
    )
    return root


IO = "rchar: 750339\nwchar: 818609\nsyscr: 7405\nsyscw: 5245\nread_bytes: 1024\nwrite_bytes: 2048\n"


@pytest.mark.parametrize(
    "io",
    [
        f"{IO}cancelled_write_bytes: -1024\n",
        f"{IO}cancelled_write_bytes: 0\n\n",
        *(path.read_text("ascii") for path in captured("proc-io/*/proc/*/io")),
    ],
)
def test_a_page_has_what_a_process_has_read(io: str, tmp_path: Path) -> None:
    series = series_of(page_of_job(files_of_a_job(tmp_path, "26231", io), tmp_path / "gpu", 26231))
    read = dict(re.findall(r"^(\w+): (-?\d+)", io, re.MULTILINE))
    assert of_job(series, "gpufeed_job_read_call_bytes_total") == [int(read["rchar"])]
    assert of_job(series, "gpufeed_job_block_read_bytes_total") == [int(read["read_bytes"])]
