"""Saving keeps to its share of the time, and a run killed between two saves still ends with the same bytes."""

from pathlib import Path

import pytest

from labelkin.runs import RunFolder, RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Interrupted, Settings
from labelkin.training import _checkpoint as pace
from labelkin.training._checkpoint import Pace
from support.stopping import PressCtrlC


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_costly_save_is_due_again_when_it_is_its_share_of_the_time():
    clock = Clock()
    own = Pace(clock)
    assert own.due()  # nothing is saved yet
    with own.saving():
        clock.now += 2
    assert not own.due()
    clock.now += 2 / pace.SHARE - 0.1
    assert not own.due()
    clock.now += 0.2
    assert own.due()


def test_a_cheap_save_is_always_due():
    clock = Clock()
    own = Pace(clock)
    with own.saving():
        clock.now += pace.CHEAP
    assert own.due()


class Killed(BaseException):
    pass


@pytest.mark.long
def test_a_run_killed_between_two_saves_goes_on_from_the_first(tmp_path: Path, monkeypatch):
    spec = RunSpec(
        objective="retrospection",
        options={"every": 1},
        settings=Settings(epochs=5, batch_size=64, schedule="cosine"),
        data_options={"subset": 0.2},
    )
    train(spec, tmp_path / "whole")
    monkeypatch.setattr(pace, "CHEAP", -1.0)
    monkeypatch.setattr(pace, "SHARE", 1e-9)  # after the first epoch no save is due any more

    def dies(row) -> None:
        if row["epoch"] == 4:
            raise Killed

    with pytest.raises(Killed):
        train(spec, tmp_path / "killed", log=dies)
    folder = RunFolder(tmp_path / "killed")
    assert [path.name for path in folder.path.glob("state-*")] == ["state-00001-0000000.safetensors"]
    assert len(folder.history()) == 4  # whoever watches sees every epoch
    train(spec, tmp_path / "killed", resume=True)
    for name in ("metrics.csv", "model.safetensors", "final.json", "outputs.safetensors"):
        assert (folder.path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.long
def test_a_run_that_is_told_to_stop_is_saved_however_long_it_takes(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(pace, "CHEAP", -1.0)
    monkeypatch.setattr(pace, "SHARE", 1e-9)
    with pytest.raises(Interrupted):
        train(
            RunSpec(settings=Settings(epochs=5, batch_size=64), data_options={"subset": 0.2}),
            tmp_path / "stopped",
            progress=lambda steps: PressCtrlC(2, steps),  # the last step of the third epoch
        )
    assert [path.name for path in (tmp_path / "stopped").glob("state-*")] == ["state-00003-0000000.safetensors"]
