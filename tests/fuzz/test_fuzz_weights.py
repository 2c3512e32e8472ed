"""Checkpoints that anyone may have written: weights, setups, training states and outputs of runs."""

import json
import shutil
import struct
import warnings
from pathlib import Path
from random import Random

import pytest
import torch

import labelkin
from labelkin.runs import RunFolder, load_run, run_spec, train_run
from labelkin.training import Interrupted
from support.fuzzing import changed, damaged, fuzz
from support.stopping import StopInEpoch


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a label embedding, whose weights have state of their own, and one that was interrupted."""
    out = tmp_path_factory.mktemp("made")
    options = {"epochs": 1, "batch_size": 256, "backbone": "tiny-cnn", "data_options": {"subset": 0.2}}
    labelkin.train("digits", "label-embedding", out=out / "finished", **options)
    with pytest.raises(Interrupted):
        labelkin.train("digits", out=out / "stopped", progress=lambda steps: StopInEpoch(1), **{**options, "epochs": 2})
    return out


def with_other_header(content: bytes, rng: Random) -> bytes:
    """A safetensors file with parts of its header changed: types, shapes and places of tensors, and labelkin's layout."""
    (size,) = struct.unpack("<Q", content[:8])
    header, tensors = json.loads(content[8 : 8 + size]), content[8 + size :]
    layout = json.loads(header["__metadata__"]["layout"])
    match rng.randrange(4):
        case 0 | 1:
            layout = changed(layout, rng)
            header["__metadata__"]["layout"] = json.dumps(layout)
        case 2:
            names = [name for name in header if name != "__metadata__"]
            one, other = rng.choice(names), rng.choice(names)
            match rng.randrange(3):
                case 0:
                    header[one], header[other] = header[other], header[one]
                case 1:
                    header[one]["shape"] = (
                        header[one]["shape"][::-1] if rng.random() < 0.5 else [*header[one]["shape"], 1]
                    )
                case _:
                    same = {"F32": "I32", "I64": "F64", "F64": "I64", "U8": "I8", "BOOL": "U8"}
                    header[one]["dtype"] = same.get(header[one]["dtype"], "F16")
        case _:
            header = changed(header, rng)
    packed = json.dumps(header).encode()
    return struct.pack("<Q", len(packed)) + packed + tensors


def any_file(content: bytes, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return with_other_header(content, rng)
    return damaged(content, rng)


@pytest.mark.long
def test_weights(made: Path, tmp_path: Path):
    run = tmp_path / "run"
    shutil.copytree(made / "finished", run)
    names = ["model.safetensors", "setup.safetensors"]
    whole = {name: (run / name).read_bytes() for name in names}
    samples = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)

    def case(rng: Random) -> None:
        for name, content in whole.items():
            (run / name).write_bytes(content)
        name = rng.choice(names)
        (run / name).write_bytes(any_file(whole[name], rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = load_run(run)
            found = model.predict(samples)
        assert found.scores.shape == (2, len(model.classes))

    fuzz(case)


@pytest.mark.long
def test_outputs(made: Path, tmp_path: Path):
    """The outputs on the test set, as the diagnosis and the audit of a run read them."""
    run = tmp_path / "run"
    shutil.copytree(made / "finished", run)
    whole = (run / "outputs.safetensors").read_bytes()

    def case(rng: Random) -> None:
        (run / "outputs.safetensors").write_bytes(any_file(whole, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = labelkin.audit_predictions(run)
        assert found.samples > 0

    fuzz(case)


@pytest.mark.long
def test_training_states(made: Path, tmp_path: Path):
    """An interrupted run continues from its state, or says that the state is damaged."""
    run = tmp_path / "run"
    shutil.copytree(made / "stopped", run)
    whole = {file.name: file.read_bytes() for file in run.iterdir()}
    (tensors,) = (name for name in whole if name.startswith("state-"))
    spec = run_spec(run)
    workspace = labelkin.runs.DataWorkspace(spec)

    def case(rng: Random) -> None:
        shutil.rmtree(run)
        run.mkdir()
        for name, content in whole.items():
            (run / name).write_bytes(content)
        if rng.random() < 0.4:
            content = json.dumps(changed(json.loads(whole["state.json"]), rng)).encode()
            (run / "state.json").write_bytes(damaged(content, rng))
        else:
            (run / tensors).write_bytes(any_file(whole[tensors], rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trained = train_run(spec, run, resume=True, workspace=workspace)
        assert RunFolder(run).final is not None
        assert trained.history

    fuzz(case)
