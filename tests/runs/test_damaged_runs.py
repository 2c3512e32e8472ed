"""Files of runs that are damaged or were written by somebody else: a sentence, never a traceback."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError
from labelkin.runs import RunFolder, load_run, run_spec, train_run
from labelkin.training import Interrupted, load_packed, save_packed
from support.commands import refused
from support.stopping import StopInEpoch

pytestmark = pytest.mark.long
OPTIONS = {"epochs": 2, "batch_size": 256, "data_options": {"subset": 0.2}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    labelkin.train("digits", out=out / "finished", **OPTIONS)
    with pytest.raises(Interrupted):
        labelkin.train("digits", out=out / "stopped", progress=lambda steps: StopInEpoch(1), **OPTIONS)
    return out


def edited(file: Path, change) -> None:
    content = load_packed(file)
    change(content)
    save_packed(file, content)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda setup: setup.pop("context"), "'context'"),
        (lambda setup: setup["context"].update(classes=["0", "1"]), "classes"),
        (lambda setup: setup["context"]["names"].append({"x": torch.zeros(40, 2)}), "expected non-empty strings, got"),
        (lambda setup: setup.update(shape=["8", 8]), "shape"),
        (lambda setup: setup.update(mean=torch.zeros(3)), "mean and deviation do not have 1 number"),
        (lambda setup: setup.update(std=torch.zeros(1)), "deviation is not positive"),
        (lambda setup: setup["samples"].update(columns="a"), "columns of its samples is 'a'"),
        (lambda setup: setup["samples"].update(odd=1), "odd"),
    ],
)
def test_a_setup_that_contradicts_itself_is_refused(made: Path, tmp_path: Path, change, said: str):
    shutil.copytree(made / "finished", tmp_path / "run")
    edited(tmp_path / "run/setup.safetensors", change)
    told = refused("evaluate", tmp_path / "run")
    assert "setup.safetensors" in told
    assert said in told


def test_weights_of_another_model_are_refused(made: Path, tmp_path: Path):
    shutil.copytree(made / "finished", tmp_path / "run")
    edited(tmp_path / "run/model.safetensors", lambda model: model.popitem())
    assert "the weights do not fit the model" in refused("evaluate", tmp_path / "run")


def test_outputs_of_another_shape_are_refused(made: Path, tmp_path: Path):
    shutil.copytree(made / "finished", tmp_path / "run")
    edited(tmp_path / "run/outputs.safetensors", lambda out: out.update(scores=out["scores"][:, :3]))
    assert "its scores have the shape" in refused("audit", tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epoch": 7}, "at step 0 of epoch 7"),
        ({"step": -1}, "at step -1"),
        ({"history": []}, "no row of numbers for every epoch, 1 in all"),
        ({"history": [{"epoch": "x"}]}, "no row of numbers"),
        ({"losses": [[0.0, "x"]]}, "its losses are"),
        ({"seconds": None}, "its seconds are None"),
        ({"tensors": "../finished/model.safetensors"}, "expected the name of a training state"),
    ],
)
def test_a_damaged_state_is_refused_and_not_trained_from(made: Path, tmp_path: Path, change: dict, said: str):
    shutil.copytree(made / "stopped", tmp_path / "run")
    state = tmp_path / "run/state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), **change}))
    told = refused("train", "--resume", tmp_path / "run")
    assert said in told
    assert "train" in told.partition("delete")[2]  # what to do


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors["optimizer"]["param_groups"][0].update(betas=[1, 2]),
        lambda tensors: tensors["optimizer"]["param_groups"][0].pop("betas"),
        lambda tensors: tensors["optimizer"]["param_groups"][0].update(betas=torch.zeros(40, 2)),
        lambda tensors: tensors["optimizer"]["param_groups"].append({"lr": 1}),
        lambda tensors: tensors["optimizer"]["state"][0].update(exp_avg=torch.zeros(1, 2)),
        lambda tensors: tensors["optimizer"]["state"][0].update(exp_avg=None),
        lambda tensors: tensors["optimizer"]["state"][0].update(step=torch.tensor(-1e20)),
        lambda tensors: tensors["optimizer"]["state"][0].update(step=torch.tensor(math.nan)),
        lambda tensors: [state.pop("exp_avg") for state in tensors["optimizer"]["state"].values()],
        lambda tensors: [state.clear() for state in tensors["optimizer"]["state"].values()],
        lambda tensors: tensors["random"].update(cpu=torch.zeros(3)),
        lambda tensors: tensors["model"].popitem(),
        lambda tensors: tensors.update(best={"x": torch.zeros(1)}),
    ],
)
def test_damaged_tensors_of_a_state_are_refused(made: Path, tmp_path: Path, change):
    shutil.copytree(made / "stopped", tmp_path / "run")
    (file,) = (tmp_path / "run").glob("state-*.safetensors")
    edited(file, change)
    with pytest.raises(InputError, match=r"saved training state.* damaged") as told:
        train_run(run_spec(tmp_path / "run"), tmp_path / "run", resume=True)
    assert "\n" not in str(told.value)


def test_the_state_of_the_made_run_itself_resumes(made: Path, tmp_path: Path):
    shutil.copytree(made / "stopped", tmp_path / "run")
    train_run(run_spec(tmp_path / "run"), tmp_path / "run", resume=True)
    assert RunFolder(tmp_path / "run").final == RunFolder(made / "finished").final


def test_predictions_take_numbers_of_any_width(made: Path):
    model = load_run(made / "finished")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 1, 8, 8), dtype=np.uint8)
    expected = model.predict(pixels).scores
    for kind in ("f4", "f8"):
        torch.testing.assert_close(model.predict((pixels / 255).astype(kind)).scores, expected, rtol=1e-4, atol=1e-4)
    for odd in (pixels.astype(bool), pixels.astype("c8"), pixels.astype("U1"), pixels.astype(np.uint16)):
        with pytest.raises(InputError, match="inputs: expected"):
            model.predict(odd)
