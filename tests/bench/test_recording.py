# SPDX-License-Identifier: Apache-2.0
"""What was shown once is shown again as it was; half a recording is none; an oracle needs the node itself."""

from pathlib import Path

import pytest

from bench.accuracy.live import run
from bench.accuracy.plans import TUNING_SEED, Shard, View
from bench.accuracy.pool import results
from bench.accuracy.recording import Recording, forget_others
from gpufeed.simulate.pipeline.node import JudgedNode
from gpufeed.simulate.sensors.face import SensorFace, frames
from gpufeed.simulate.sensors.settings import Sensing

VIEWS = (View("all", 500), View("no_gpm", 1000))
SHARD = Shard(scenario="storage_50", seed=TUNING_SEED, views=VIEWS, seconds=30, gpus=2)


@pytest.mark.parametrize("classifier", ["step", "threshold", "oracle"])
def test_the_same_is_found_of_a_recording_as_of_the_node(classifier: str, tmp_path: Path) -> None:
    verdicts, folder = tmp_path / "verdicts", tmp_path / "frames"
    of_node = run(SHARD, classifier, verdicts)
    kept = run(SHARD, classifier, verdicts, folder)
    again = run(SHARD, classifier, verdicts, folder)
    assert kept == of_node
    assert again == of_node
    assert Recording(folder, SHARD.name).is_there == (classifier != "oracle")


def test_frames_come_back_as_they_were(tmp_path: Path) -> None:
    node = JudgedNode("two_jobs", gpus=2, seed=1)
    shown = list(frames(node, [SensorFace(node, Sensing())], 20_000_000_000))
    kept = Recording(tmp_path, "some")
    assert list(kept.keep(iter(shown))) == shown
    assert not kept.is_there
    kept.finish([[{("busy", "tensor"): 4.5, ("idle_held", ""): 0.5}], [{}]])
    assert kept.is_there
    assert list(kept.play()) == shown
    assert kept.truth() == [[{("busy", "tensor"): 4.5, ("idle_held", ""): 0.5}], [{}]]


def test_a_recording_that_was_broken_off_is_not_there(tmp_path: Path) -> None:
    node = JudgedNode("two_jobs", gpus=2, seed=1)
    kept = Recording(tmp_path, "some")
    for at, _ in enumerate(kept.keep(frames(node, [SensorFace(node, Sensing())], 20_000_000_000))):
        if at == 3:
            break
    assert not kept.is_there
    with pytest.raises(OSError, match="some"):
        list(kept.play())


def test_what_another_simulator_showed_is_thrown_away(tmp_path: Path) -> None:
    old, new = tmp_path / "frames" / "old", tmp_path / "frames" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "a.frames").write_bytes(b"x")
    forget_others(new)
    assert not old.exists()
    assert (new / "a.frames").exists()
    forget_others(tmp_path / "nothing" / "there")


def test_frames_are_kept_only_where_they_are_asked_for(tmp_path: Path) -> None:
    said: list[str] = []
    list(results([SHARD], "threshold", tmp_path, 1, said.append))
    assert not (tmp_path / "frames").exists()
    list(results([SHARD], "always_busy", tmp_path, 1, said.append, keeps_frames=True))
    assert len(list((tmp_path / "frames").rglob("*.truth"))) == 1
