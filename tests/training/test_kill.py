"""A run killed at any moment ends, resumed, with the same bytes as one never killed; so does one stopped by Ctrl-C."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labelkin.runs import RunFolder, RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Interrupted, Settings
from support.stopping import PressCtrlC

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1] / "support"


@pytest.mark.parametrize("objective", ["adaptive-labels", "retrospection"])
def test_killed_runs_end_with_the_same_bytes(objective: str, tmp_path: Path):
    """At every write and rename, and at ten random times, with augmentation."""
    command = [sys.executable, str(HERE / "killing.py"), objective, str(tmp_path)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ", 0 wrong" in ended.stdout


@pytest.mark.parametrize("at", [(0, 1), (1, 2), (1, 5)])
def test_ctrl_c_saves_the_step_and_training_goes_on_from_it(at: tuple[int, int], tmp_path: Path):
    settings = Settings(epochs=3, batch_size=64, augment=("shift",), schedule="cosine")
    spec = RunSpec(objective="retrospection", options={"every": 1}, settings=settings, data_options={"subset": 0.2})
    train(spec, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(spec, tmp_path / "stopped", progress=lambda steps: PressCtrlC(*at))
    assert RunFolder(tmp_path / "stopped").final is None
    train(spec, tmp_path / "stopped", resume=True)
    for name in ("metrics.csv", "model.safetensors", "final.json", "outputs.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
