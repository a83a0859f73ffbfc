# SPDX-License-Identifier: Apache-2.0
"""What the doctor says of a node, in lines written by hand."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from exposition.stories import tell
from gpufeed.catalogue.inputs import AREAS, INPUTS
from gpufeed.diagnosis import MARKS, diagnoses, report, verdict
from gpufeed.model.frame import InputState, InputStatus

SOURCES = Path(__file__).parents[1] / "exporter" / "gpufeed" / "sources"
GPUS = ("GPU-aa", "GPU-bb", "GPU-cc")


def lines(*inputs: InputStatus, is_brief: bool = False) -> list[str]:
    return list(report(diagnoses(inputs), is_brief=is_brief))


def test_what_can_be_read_takes_a_line_and_says_where_from() -> None:
    assert lines(InputStatus("block", "", "available", "process 1")) == [
        "Storage",
        "  ✓ block              can be read (/proc/diskstats)",
    ]


def test_what_may_not_be_read_says_why_what_is_lost_and_what_to_do() -> None:
    status = InputStatus("kernel_log", "", "denied", "/dev/kmsg: Operation not permitted", "use the drop-in")
    assert lines(status) == [
        "GPUs",
        "  ✕ kernel_log         may not be read: /dev/kmsg: Operation not permitted",
        "      without it XIDs of a GPU that is lost or hung are not seen",
        "      → use the drop-in",
    ]


def test_eight_gpus_with_one_trouble_are_one_entry() -> None:
    inputs = [InputStatus("sram_status", gpu, "denied", f"{gpu}: No Permission", "run as root") for gpu in GPUS]
    assert [line for line in lines(*inputs) if "sram_status" in line] == [
        "  ✕ sram_status        may not be read (3 of 3): …: No Permission"
    ]


def test_of_some_gpus_it_is_said_which() -> None:
    inputs = [InputStatus("gpm", gpu, "available") for gpu in GPUS[:2]]
    found = lines(*inputs, InputStatus("gpm", "GPU-cc", "broken", "gpm: Unknown Error"))
    assert found[1] == "  ✕ gpm                cannot be read (1 of 3): gpm: Unknown Error"
    assert found[2] == "      on GPU-cc"
    assert found[-1] == "  ✓ gpm                can be read (2 of 3) (GPM, since Hopper)"


def test_more_than_four_are_counted() -> None:
    inputs = [InputStatus("ethtool", f"eth{number}", "denied", "no") for number in range(6)]
    found = lines(*inputs, InputStatus("ethtool", "eth9", "available"))
    assert "      on eth0, eth1, eth2, eth3 and 2 more" in found


def test_what_is_not_here_is_no_trouble_unless_somebody_can_mend_it() -> None:
    absent = InputStatus("lustre", "", "absent", "no Lustre file system is mounted")
    assert lines(absent) == ["Storage", "  · lustre             not here: no Lustre file system is mounted"]
    assert lines(absent, is_brief=True) == []
    assert lines(InputStatus("nvml", "", "absent", "no library", "install it"))[2:] == [
        "      without it nothing is known of any GPU",
        "      → install it",
    ]


def test_a_source_of_ones_own_is_named_too() -> None:
    found = lines(InputStatus("my_source", "", "denied", "no"))
    assert found[0] == "Host"
    assert found[2] == "      without it what it would tell is not known"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((), "Nothing could be found out."),
        ((InputStatus("block", "", "available"),), "Everything that is here can be read."),
        ((InputStatus("lustre", "", "absent"),), "Everything that is here can be read."),
        (
            (InputStatus("kernel_log", "", "denied", "", "do"), InputStatus("block", "", "available")),
            "1 of 2 inputs are here and cannot be read; 1 thing to do, marked →.",
        ),
        (
            (InputStatus("kernel_log", "", "denied", "", "do"), InputStatus("nfs", "", "broken", "", "do more")),
            "2 of 2 inputs are here and cannot be read; 2 things to do, marked →.",
        ),
        ((InputStatus("nfs", "", "broken"),), "1 of 1 inputs are here and cannot be read."),
    ],
)
def test_the_last_line_says_what_it_comes_to(inputs: tuple[InputStatus, ...], said: str) -> None:
    assert verdict(diagnoses(inputs)) == said


def test_every_state_has_a_mark_and_every_area_an_input() -> None:
    assert set(MARKS) == set(get_args(InputState))
    assert {one.area for one in INPUTS.values()} == set(AREAS)


def test_every_input_that_a_source_says_is_in_the_table(tmp_path: Path) -> None:
    told: Mapping[tuple[str, str], InputStatus] = tell("healthy", 6, tmp_path).inputs
    written = {
        name
        for file in SOURCES.rglob("*.py")
        for name in re.findall(r'InputStatus\(\s*"([a-z_0-9]+)"', file.read_text(encoding="utf-8"))
    }
    assert ({name for name, _ in told} | written) - set(INPUTS) == set()
