"""What only a GPU can show."""

from pathlib import Path

import pytest
import torch

from labelkin.bench import time_many_labels
from labelkin.runs import RunFolder, RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Interrupted, Settings
from support.requires import skip_unless
from support.stopping import PressCtrlC


@pytest.fixture(autouse=True)
def gpu():
    skip_unless(torch.cuda.is_available(), "a GPU", "gpu")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_stopped_run_goes_on(optimizer: str, tmp_path: Path):
    """Convolutions are laid out channels last there, and files keep no layout: fused updates need it back."""
    settings = Settings(epochs=3, batch_size=256, optimizer=optimizer, precision="bf16-mixed", augment=("shift",))
    spec = RunSpec(objective="label-embedding", backbone="resnet-8", settings=settings)
    whole = train(spec, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(spec, tmp_path / "stopped", progress=lambda steps: PressCtrlC(1, 2))
    resumed = train(spec, tmp_path / "stopped", resume=True)
    assert len(RunFolder(tmp_path / "stopped").history()) == 3
    for ours, theirs in zip(resumed.history, whole.history, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=0.1)  # kernels add up in no fixed order


def test_many_labels_take_little_more_memory_than_plain_cross_entropy():
    found = time_many_labels(repeats=1)
    assert found.times_memory is not None
    assert found.times_memory <= 1.25


def test_a_stopped_run_of_retrospection_goes_on(tmp_path: Path):
    """Its table is read on the CPU and must move to the GPU before the first step."""
    settings = Settings(epochs=3, batch_size=256)
    spec = RunSpec(objective="retrospection", options={"every": 1}, settings=settings)
    with pytest.raises(Interrupted):
        train(spec, tmp_path / "stopped", progress=lambda steps: PressCtrlC(1, 2))
    resumed = train(spec, tmp_path / "stopped", resume=True)
    assert len(resumed.history) == 3
