"""Learning rates by part, late unfreezing, averaged weights, early stopping and dropout."""

import dataclasses

import pytest
import torch
from torch import nn

from labelkin import data, objectives
from labelkin._checks import InputError
from labelkin.data import Dataset
from labelkin.runs import RunFolder, RunSpec, train_run
from labelkin.training import Classify, Model, Settings, State, Trainer, reason_against
from labelkin.training._averages import WeightAverages
from labelkin.training._captured_steps import CapturedSteps
from labelkin.training._interrupt import Interrupted
from labelkin.training._optimizer import make_optimizer


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return data.load("digits", subset=0.2, validation_fraction=0.2)


def model_for(dataset: Dataset, *, dropout: float = 0.0) -> Model:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU())
    return Model(net, objectives.OneHot(classes=dataset.classes, features=16), dropout=dropout)


def weights(model: Model) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


# The learning rate of the backbone


def test_the_backbone_has_a_rate_of_its_own(digits):
    """With plain SGD and one batch, each weight moves by its rate times its gradient."""
    moved = {}
    for factor in (1.0, 0.25):
        model = model_for(digits)
        before = weights(model)
        settings = Settings(epochs=1, batch_size=10_000, optimizer="sgd", momentum=0.0, lr=0.1, backbone_lr=factor)
        Trainer(model, Classify(dataclasses.replace(digits, val=None)), settings).fit()
        moved[factor] = {name: value - before[name] for name, value in weights(model).items() if "weight" in name}
    for name, full in moved[1.0].items():
        expected = full * (0.25 if name.startswith("backbone") else 1.0)
        assert full.abs().max() > 0
        assert torch.allclose(moved[0.25][name], expected, atol=1e-6), name


def test_groups_keep_their_weight_decay(digits):
    net = nn.Linear(64, 16)
    model = Model(net, objectives.LabelEmbedding(10, features=16))
    groups = make_optimizer(model, Settings(weight_decay=0.1, backbone_lr=0.5)).param_groups
    assert [(group.get("scale"), group["weight_decay"], len(group["params"])) for group in groups] == [
        (0.5, 0.1, 2),
        (None, 0.1, 4),
        (None, 0.0, 1),
    ]
    assert len(make_optimizer(model, Settings(weight_decay=0.1)).param_groups) == 2


def test_captured_steps_scale_the_rate_as_plain_steps_do(digits, monkeypatch):
    """On the CPU a captured step runs without a graph, with the same rates from tensors."""
    settings = Settings(epochs=2, batch_size=50, optimizer="sgd", lr=0.1, backbone_lr=0.1, schedule="cosine")
    plain = Trainer(model_for(digits), Classify(digits), settings).fit()
    monkeypatch.setattr(
        "labelkin.training._loop.make_steps",
        lambda bench, objective: CapturedSteps(bench, objective, required=False, warm_up=10**9),
    )
    captured = Trainer(model_for(digits), Classify(digits), settings).fit()
    for name, value in weights(plain.model).items():
        assert torch.allclose(value, weights(captured.model)[name], atol=1e-6), name


# Unfreezing


def test_the_backbone_is_frozen_until_it_is_its_turn(digits):
    model, seen = model_for(digits), []
    before = weights(model)

    def log(row):
        seen.append({name for name, value in weights(model).items() if not torch.equal(value, before[name])})

    Trainer(model, Classify(digits), Settings(epochs=3, report="last", unfreeze_after=2), log=log).fit()
    assert all(name.startswith("objective.") for changed in seen[:2] for name in changed)
    assert seen[0]
    assert {"backbone.1.weight", "backbone.2.running_mean"} <= seen[2]


def test_parameters_that_were_never_trained_stay_so(digits):
    model = model_for(digits)
    model.backbone[1].bias.requires_grad_(False)
    before = model.backbone[1].bias.clone()
    Trainer(model, Classify(digits), Settings(epochs=2, unfreeze_after=1)).fit()
    assert torch.equal(model.backbone[1].bias, before)


# Averaged weights


def test_averages_follow_their_formula():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    averages = WeightAverages(net, 0.6)
    expected = {name: value.detach().clone() for name, value in net.state_dict().items()}
    for step in range(1, 12):
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(torch.randn_like(parameter))
        net(torch.randn(8, 3))  # moves the running statistics
        averages.update()
        decay = min(0.6, (1 + step) / (10 + step))
        for name, value in net.state_dict().items():
            averaged = decay * expected[name] + (1 - decay) * value
            expected[name] = value.clone() if name.endswith("tracked") else averaged
    current = {name: value.clone() for name, value in net.state_dict().items()}
    with averages.applied():
        for name, value in net.state_dict().items():
            assert torch.allclose(value, expected[name], atol=1e-5), name
    assert all(torch.equal(value, current[name]) for name, value in net.state_dict().items())


def test_the_averaged_weights_are_evaluated_and_kept(digits):
    """A large rate makes the last weights differ from their average."""
    settings = Settings(epochs=2, lr=0.05, report="last", ema=0.9)
    trained = Trainer(model_for(digits), Classify(digits), settings).fit()
    plain = Trainer(model_for(digits), Classify(digits), dataclasses.replace(settings, ema=0.0)).fit()
    first, second = weights(trained.model), weights(plain.model)
    assert not torch.allclose(first["backbone.1.weight"], second["backbone.1.weight"])
    assert trained.history[-1]["loss"] == plain.history[-1]["loss"]  # training itself is the same
    assert trained.metrics["accuracy"] == trained.history[-1]["test_accuracy"]


class Memory:
    """A checkpoint in memory that interrupts training after some saves."""

    def __init__(self, saves: int) -> None:
        self.state: State | None = None
        self.left = saves

    def save(self, state: State) -> None:
        self.state, self.left = state, self.left - 1
        if self.left == 0:
            raise Interrupted

    def load(self, *, clean: bool) -> State | None:
        return self.state

    def record(self, history) -> None: ...

    def finish(self, model, metrics, outputs, *, seconds) -> None: ...


@pytest.mark.long
def test_a_resumed_run_continues_its_averages(digits):
    settings = Settings(epochs=3, ema=0.9, report="last", unfreeze_after=1, backbone_lr=0.5)
    whole = Trainer(model_for(digits), Classify(digits), settings).fit()
    memory = Memory(saves=2)
    with pytest.raises(Interrupted):
        Trainer(model_for(digits), Classify(digits), settings, checkpoint=memory).fit()
    resumed = Trainer(model_for(digits), Classify(digits), settings, checkpoint=memory).fit(resume=True)
    for name, value in weights(whole.model).items():
        assert torch.equal(value, weights(resumed.model)[name]), name


# Early stopping


@pytest.mark.long
def test_training_stops_when_validation_gets_no_better():
    """A rate of almost 0 changes nothing, so the first epoch stays the best."""
    settings = Settings(epochs=10, lr=1e-12, patience=2, calibration=0.0)
    trained = train_run(RunSpec(settings=settings, data_options={"validation_fraction": 0.2, "subset": 0.2}))
    assert len(trained.history) == 3


def test_training_goes_on_while_validation_gets_better(digits):
    trained = Trainer(model_for(digits), Classify(digits), Settings(epochs=4, lr=1e-3, patience=4)).fit()
    assert len(trained.history) == 4


@pytest.mark.long
def test_a_stopped_run_is_finished(tmp_path):
    options = {"validation_fraction": 0.2, "subset": 0.2}
    spec = RunSpec(settings=Settings(epochs=10, lr=1e-12, patience=1), data_options=options)
    train_run(spec, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert folder.final is not None
    assert len(folder.history()) == 2
    assert len(train_run(spec, tmp_path / "run", resume=True).history) == 2


def test_patience_needs_a_validation_split():
    with pytest.raises(InputError, match=r"patience: 3 needs a validation split.*--validation 0\.1"):
        train_run(RunSpec(settings=Settings(patience=3)))


# Dropout


def test_dropout_drops_features_in_training_only(digits):
    inputs = torch.rand(64, 64)
    model = Model(nn.Identity(), objectives.OneHot(10, features=64), dropout=0.5)
    model.objective.requires_grad_(False)
    outputs = model.eval()(inputs)
    plain = Model(nn.Identity(), model.objective).eval()
    assert torch.equal(outputs, plain(inputs))
    torch.manual_seed(0)
    kept = torch.nn.functional.dropout(inputs, 0.5)
    torch.manual_seed(0)
    assert torch.equal(model.train()(inputs), plain(kept))
    assert set(model.state_dict()) == set(plain.state_dict())


@pytest.mark.long
def test_dropout_reaches_a_run():
    accuracy = [
        train_run(RunSpec(settings=Settings(epochs=2, dropout=dropout), data_options={"subset": 0.3})).history[-1][
            "loss"
        ]
        for dropout in (0.0, 0.9)
    ]
    assert accuracy[1] > accuracy[0] + 0.1


# Several runs as one batched model


@pytest.mark.parametrize(
    "given",
    [
        {"freeze": True},
        {"backbone_lr": 0.1},
        {"unfreeze_after": 1},
        {"ema": 0.9},
        {"patience": 2},
        {"dropout": 0.1},
        {"augment": ("mixup",)},
        {"augment": ("random-erasing",)},
    ],
)
def test_runs_that_are_fine_tuned_are_trained_one_by_one(digits, given):
    assert reason_against(Settings(augment=("flip",)), digits) is None
    assert reason_against(Settings(**given), digits) is not None


# What contradicts itself


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"freeze": True, "unfreeze_after": 1}, "unfreeze_after: expected 0 with freeze"),
        ({"freeze": True, "backbone_lr": 0.1}, "backbone_lr: expected 1 with freeze"),
        ({"unfreeze_after": 10}, r"unfreeze_after: expected less than epochs \(10\), got 10"),
        ({"unfreeze_after": 1, "devices": 2}, "unfreeze_after: expected one device"),
        ({"ema": 1.0}, "ema: expected a number below 1, got 1"),
        ({"ema": -0.1}, "ema: expected a number"),
        ({"dropout": 1}, "dropout: expected a number below 1"),
        ({"backbone_lr": 0}, r"backbone_lr: expected a number in \(0"),
        ({"patience": 0}, "patience: expected"),
        ({"preprocessing": "none"}, "preprocessing: expected"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        Settings(**given)


def test_translation_has_no_frozen_features():
    with pytest.raises(InputError, match="freeze: applies to classifiers"):
        RunSpec(data="multi30k:en-de", settings=Settings(freeze=True))
