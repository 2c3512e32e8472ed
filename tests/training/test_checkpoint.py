"""The loop saves to any `Checkpoint`, and knows no run folder."""

import ast
import copy
from pathlib import Path

import pytest
import torch
from test_training import model_for, weights

from labelkin import InputError, data
from labelkin.runs import RunFolder
from labelkin.training import Checkpoint, Classify, Interrupted, Settings, State, Trainer
from labelkin.training import _loop as loop
from support.stopping import PressCtrlC

SETTINGS = Settings(epochs=3, batch_size=64, augment=("shift",), schedule="cosine")


class Memory:
    """A checkpoint that keeps everything in memory."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.history: list[dict[str, float]] = []
        self.finished: tuple | None = None

    def save(self, state: State) -> None:
        self.state = copy.deepcopy(state)

    def load(self, *, clean: bool) -> State | None:
        return copy.deepcopy(self.state)

    def record(self, history) -> None:
        self.history = [dict(row) for row in history]

    def finish(self, model, metrics, outputs, *, seconds) -> None:
        self.finished = (model, metrics, outputs, seconds)


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits", subset=0.2)


def test_the_loop_knows_no_run_folder():
    tree = ast.parse(Path(loop.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "labelkin.runs._folder" not in modules
    assert not hasattr(loop, "RunFolder")


def test_a_run_in_memory_is_stopped_and_resumed_with_the_same_bits(digits):
    whole = Trainer(model_for(digits), Classify(digits), SETTINGS).fit()  # saves nothing
    memory = Memory()
    checkpoint: Checkpoint = memory
    with pytest.raises(Interrupted):
        Trainer(
            model_for(digits),
            Classify(digits),
            SETTINGS,
            checkpoint=checkpoint,
            progress=lambda steps: PressCtrlC(1, 2),
        ).fit()
    assert (memory.state.progress["epoch"], memory.state.progress["step"]) == (1, 2)
    resumed = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=checkpoint).fit(resume=True)
    assert torch.equal(weights(resumed.model), weights(whole.model))
    assert resumed.history == whole.history
    assert memory.finished[1] == pytest.approx({"epoch": 3, **whole.metrics}, rel=0, abs=0, nan_ok=True)
    assert memory.state.progress["history"] == whole.history


def test_a_run_folder_is_a_checkpoint(tmp_path: Path):
    folder: Checkpoint = RunFolder.create(tmp_path / "run", {"data": "digits"}, {})
    assert folder.load(clean=True) is None
    state = State({"epoch": 1, "step": 0, "history": [{"epoch": 1, "loss": 0.5}]}, {"model": torch.ones(2)})
    folder.save(state)
    found = folder.load(clean=False)
    assert found.progress["history"] == state.progress["history"]
    assert torch.equal(found.tensors["model"], torch.ones(2))


def test_each_process_continues_with_its_own_losses(digits):
    """As the second of two, whose loss is another than the first one's."""
    memory = Memory()
    first = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=memory)
    first._prepare(resume=False)
    first.loss_sum.add(torch.tensor(1.0))
    first.place = first.place._replace(
        world=2, gather=lambda part: torch.stack([part, part + torch.tensor([2.0, 0.0])])
    )
    first._save()
    second = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=memory)
    second._prepare(resume=False)
    second.place = second.place._replace(rank=1, world=2)
    second._restore()
    assert second.loss_sum.value() == 3.0


def test_a_state_of_an_older_version_is_read(digits):
    memory = Memory()
    trainer = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=memory)
    trainer._prepare(resume=False)
    trainer._save()
    del memory.state.progress["losses"]
    memory.state.progress["loss_sum"] = 2.5
    trainer._restore()
    assert trainer.loss_sum.value() == 2.5


@pytest.mark.long
def test_a_finished_run_keeps_no_training_state_and_is_read_again(digits, tmp_path: Path):
    """The optimizer's state is larger than the model; a finished run is only read and measured."""
    folder = RunFolder.create(tmp_path / "run", {"data": "digits"}, {})
    whole = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=folder).fit()
    assert not list((tmp_path / "run").glob("state*"))
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}
    again = Trainer(model_for(digits), Classify(digits), SETTINGS, checkpoint=folder).fit(resume=True)
    assert torch.equal(weights(again.model), weights(whole.model))
    assert again.metrics == pytest.approx(whole.metrics, rel=0, abs=0, nan_ok=True)
    assert again.history == whole.history
    assert {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_the_state_of_an_optimizer_fits_parameters_of_any_shape(kind):
    from labelkin.training._loop_checks import load_optimizer

    def optimizer(*shapes):
        parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
        made = kind(parameters, lr=0.1, **({"momentum": 0.9} if kind is torch.optim.SGD else {}))
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        made.step()
        return made

    saved = optimizer((), (2,)).state_dict()  # a scalar, such as a learned scale
    load_optimizer(optimizer((), (2,)), saved)
    with pytest.raises(InputError, match="does not fit a parameter of shape"):
        load_optimizer(optimizer((2,), ()), saved)
