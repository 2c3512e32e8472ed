"""Captured steps take the steps of the plain loop: the same samples, rates, losses and weights."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from test_training import model_for, weights
from torch import Tensor, nn

from labelkin import InputError, OneHot, data, models
from labelkin.objectives import OBJECTIVES
from labelkin.training import Classify, Model, Settings, Trainer
from labelkin.training._captured_steps import FEWEST_STEPS, CapturedSteps, make_steps
from labelkin.training._progress import Silent
from labelkin.training._steps import Steps
from support.requires import skip_unless
from support.steps import CountedSteps

NEVER = 10**9  # warm-up steps: the body of the graph runs as plain operations


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits", subset=0.3, validation_fraction=0.2)


class Captured(Trainer):
    """A trainer whose steps have the form that CUDA captures, on any device."""

    warm_up = NEVER

    def _prepare(self, resume: bool) -> None:
        super()._prepare(resume)
        self.steps = CapturedSteps(self.steps.bench, self.model.objective, required=False, warm_up=self.warm_up)


def fitted(trainer: type[Trainer], digits: data.Dataset, model: Model, **settings: Any) -> tuple[Tensor, list[Any]]:
    given: dict[str, Any] = {"epochs": 2, "batch_size": 64, "optimizer": "sgd", "lr": 0.05, "schedule": "cosine"}
    trained = trainer(model, Classify(digits), Settings(**{**given, **settings})).fit()
    return weights(model), trained.history


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"augment": ("shift",), "clip": 1.0}, {"optimizer": "adam", "lr": 1e-3}])
def test_the_body_of_the_graph_trains_like_the_plain_loop(digits, settings: dict[str, Any]):
    """Including the last batch, which is shorter, and the learning rate, which changes with every step."""
    plain = fitted(Trainer, digits, model_for(digits), **settings)
    captured = fitted(Captured, digits, model_for(digits), **settings)
    torch.testing.assert_close(captured[0], plain[0], atol=1e-6, rtol=1e-5)
    for ours, theirs in zip(captured[1], plain[1], strict=True):
        assert ours["lr"] == theirs["lr"]
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-6)


@pytest.mark.parametrize("balanced", [None, 4])
def test_take_returns_the_batches_of_an_epoch(digits, balanced: int | None):
    batches = data.Batches(
        digits.train,
        batch_size=40,
        shuffle=True,
        seed=3,
        augment=data.Shift(0.2),
        normalize=digits.normalize,
        balanced=balanced,
    )
    order, draws = batches.visits(2)
    for step, batch in enumerate(batches.epoch(2)):
        span = slice(40 * step, 40 * step + len(batch.targets))
        taken = batches.take(order[span], draws[span])
        assert not taken.weighted
        for ours, theirs in zip(taken, batch, strict=True):
            assert torch.equal(ours, theirs)


def test_epochs_can_begin_in_the_middle(digits):
    """As after a resumed run: the position and the rates follow the step."""
    found = []
    for trainer in (Trainer, Captured):
        model = model_for(digits)
        made = trainer(model, Classify(digits), Settings(epochs=2, batch_size=64, optimizer="sgd", lr=0.1))
        made._prepare(False)
        losses = [float(loss) for loss in made.steps.epoch(1, start=3)]
        assert len(losses) == len(made.batches) - 3
        found.append(losses)
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_saved_states_do_not_depend_on_capturing(digits):
    states = []
    for trainer in (Trainer, Captured):
        made = trainer(model_for(digits), Classify(digits), Settings(epochs=1, optimizer="adam", lr=1e-3))
        made._prepare(False)
        list(made.steps.epoch(0))
        states.append(made.steps.optimizer_state())
    assert states[0]["param_groups"] == states[1]["param_groups"]
    assert states[0]["state"].keys() == states[1]["state"].keys()


def steps_of(digits: data.Dataset, objective: nn.Module | None = None, **settings: Any) -> Steps:
    net = models.build("tiny-cnn", digits.shape)
    model = Model(net, objective or OneHot(digits.classes, features=net.features))
    made = Captured(model, Classify(digits), Settings(**settings))
    made._prepare(False)
    return made.steps


def test_a_changed_attribute_or_tensor_is_noticed(digits):
    steps = steps_of(digits)
    assert isinstance(steps, CapturedSteps)
    before = steps._dependencies()
    assert steps._dependencies() == before
    steps.objective.some_option = 2.0
    assert steps._dependencies() != before
    del steps.objective.some_option
    assert steps._dependencies() == before
    steps.objective.head.weight.data = steps.objective.head.weight.data.clone()
    assert steps._dependencies() != before


@pytest.mark.parametrize(("settings", "reason"), [({}, "NVIDIA"), ({"accumulate": 2}, "NVIDIA")])
def test_on_is_refused_where_steps_cannot_be_captured(digits, settings: dict[str, Any], reason: str):
    trainer = Trainer(
        model_for(digits), Classify(digits), Settings(graph="on", accelerator="cpu", epochs=5, **settings)
    )
    with pytest.raises(InputError, match=f"graph: expected 'auto' or 'off', because .*{reason}.*; got 'on'"):
        trainer.fit()


def test_graph_takes_three_values():
    with pytest.raises(InputError, match=r"graph: expected .*auto.*, got 'always'"):
        Settings(graph="always")


class BuildsATable(OneHot):
    """An objective that builds a table when it is first used, as those with targets from a tree do on a GPU."""

    table: Tensor | None = None

    def compute(self, outputs: Any, batch: Any) -> Any:
        if self.table is None:
            self.table = torch.eye(self.num_classes)
        return super().compute(outputs, batch)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(BuildsATable, None), (CountedSteps, "the objective stores part of its state outside of tensors")],
)
def test_an_objective_may_build_what_it_needs_in_the_first_step_alone(digits, kind: type[OneHot], reason: str | None):
    net = models.build("tiny-cnn", digits.shape)
    steps = steps_of(digits, kind(digits.classes, features=net.features), epochs=1, batch_size=40)
    list(steps.epoch(0))
    assert steps.not_captured == reason


class TestOnAGpu:
    """What only a GPU can show."""

    @pytest.fixture(autouse=True)
    def gpu(self) -> Iterator[None]:
        skip_unless(torch.cuda.is_available(), "a GPU", "gpu")
        before = torch.backends.cudnn.deterministic
        torch.backends.cudnn.deterministic = True
        yield
        torch.backends.cudnn.deterministic = before

    @staticmethod
    def trained(digits: data.Dataset, objective: str, graph: str, **settings: Any) -> tuple[Trainer, list[Any]]:
        given: dict[str, Any] = {"epochs": 5, "batch_size": 40, "optimizer": "sgd", "lr": 0.02, "momentum": 0.0}
        trainer = Trainer(
            model_for(digits, objective), Classify(digits), Settings(**{**given, **settings}, graph=graph)
        )
        return trainer, trainer.fit().history

    @pytest.mark.parametrize("objective", sorted(OBJECTIVES))
    def test_every_objective_trains_as_without_graphs(self, digits, objective: str):
        """More than 50 steps, short batches among them. Without momentum, rounding errors do not grow."""
        eager, history = self.trained(digits, objective, "off")
        captured, replayed = self.trained(digits, objective, "auto")
        assert captured.steps.not_captured is None, captured.steps.not_captured
        assert captured.steps._graphs  # type: ignore[attr-defined]
        for ours, theirs in zip(replayed, history, strict=True):
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=2e-3)
        torch.testing.assert_close(weights(captured.model), weights(eager.model), atol=2e-3, rtol=2e-2)

    @pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
    @pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
    def test_optimizers_and_precisions(self, digits, optimizer: str, precision: str):
        given = {"optimizer": optimizer, "precision": precision, "lr": 1e-3, "weight_decay": 1e-2, "clip": 1.0}
        _, history = self.trained(digits, "label-embedding", "off", **given, schedule="cosine")
        captured, replayed = self.trained(digits, "label-embedding", "on", **given, schedule="cosine")
        assert captured.steps._graphs  # type: ignore[attr-defined]
        for ours, theirs in zip(replayed, history, strict=True):
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=2e-2)

    def test_dropout_draws_new_numbers_in_every_step(self, digits):
        """The same ones as without graphs."""
        losses = []
        for graph in ("off", "on"):
            torch.manual_seed(0)
            net = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 32))
            model = Model(net, OneHot(digits.classes, features=32))
            settings = Settings(epochs=3, batch_size=48, optimizer="sgd", lr=1e-6, graph=graph)
            trainer = Trainer(model, Classify(digits), settings)
            trainer._prepare(False)
            model.train()
            losses.append(torch.stack([loss.clone() for epoch in range(3) for loss in trainer.steps.epoch(epoch)]))
        torch.testing.assert_close(losses[0], losses[1], atol=1e-4, rtol=1e-3)
        assert len(losses[1].unique()) == len(losses[1])

    def test_a_step_that_waits_for_the_device_runs_without_graphs(self, digits):
        notes = []

        class Waits(OneHot):
            def compute(self, outputs: Any, batch: Any) -> Any:
                assert float(outputs.sum()) == float(outputs.sum())
                return super().compute(outputs, batch)

        class Noted(Silent):
            def note(self, text: str) -> None:
                notes.append(text)

        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))
        model = Model(net, Waits(digits.classes, features=64))
        settings = Settings(epochs=4, batch_size=40)
        trained = Trainer(model, Classify(digits), settings, progress=lambda steps: Noted()).fit()
        assert trained.history[-1]["loss"] < trained.history[0]["loss"]
        assert len(notes) == 1
        assert "not captured" in notes[0]
        assert len(torch.rand(2, device="cuda").unique()) == 2  # the generator still works
        with pytest.raises(InputError, match="cannot be captured"):
            Trainer(model, Classify(digits), Settings(epochs=4, batch_size=40, graph="on")).fit()

    def test_a_count_in_python_is_not_captured(self, digits):
        net = models.build("tiny-cnn", digits.shape)
        model = Model(net, CountedSteps(digits.classes, features=net.features))
        trainer = Trainer(model, Classify(digits), Settings(epochs=3, batch_size=40))
        trainer.fit()
        assert trainer.steps.not_captured == "the objective stores part of its state outside of tensors"
        assert model.objective.steps >= 3 * len(trainer.batches)

    def test_short_runs_and_accumulation_are_not_captured(self, digits):
        for settings, reason in (({"epochs": 1, "batch_size": 400}, str(FEWEST_STEPS)), ({"accumulate": 2}, "accum")):
            trainer = Trainer(model_for(digits), Classify(digits), Settings(**{"epochs": 9, **settings}))
            trainer.fit()
            assert type(trainer.steps) is Steps
            assert reason in str(trainer.steps.not_captured)


def test_make_steps_is_plain_on_a_cpu(digits):
    bench = steps_of(digits, accelerator="cpu", epochs=9).bench
    made = make_steps(bench, OneHot(2))
    assert type(made) is Steps
    assert made.not_captured is None
