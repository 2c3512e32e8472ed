"""The loop: what it trains, how the learning rate moves, and that parts of a batch make the whole."""

import subprocess
import sys
from math import cos, pi
from textwrap import dedent

import pytest
import torch
from torch import nn

import labelkin
from labelkin import InputError, data, models, objectives
from labelkin.runs import RunSpec
from labelkin.runs import train_run as train
from labelkin.training import Classify, Model, Settings, Trainer
from labelkin.training._fabric import make_fabric
from labelkin.training._optimizer import learning_rate, make_optimizer


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits", subset=0.3, validation_fraction=0.2)


def model_for(digits: data.Dataset, objective: str = "one-hot", **options) -> Model:
    torch.manual_seed(0)
    net = models.build("tiny-cnn", digits.shape)
    context = objectives.Context(
        classes=digits.classes, features=net.features, inputs=digits.train.inputs, targets=digits.train.targets
    )
    return Model(net, objectives.OBJECTIVES[objective].build(context, **options))


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.long
@pytest.mark.parametrize("objective", ["one-hot", "hierarchical", "semantic-smoothing"])
@pytest.mark.parametrize("parts", [2, 3])
def test_a_batch_in_parts_is_the_batch(digits, objective: str, parts: int):
    """Also the last batch, whose parts are of unequal size."""
    found = []
    for accumulate in (1, parts):
        model = model_for(digits, objective)
        settings = Settings(epochs=1, batch_size=100, optimizer="sgd", lr=0.1, accumulate=accumulate)
        trained = Trainer(model, Classify(digits), settings).fit()
        found.append((weights(model), trained.history[0]["loss"]))
    torch.testing.assert_close(found[0][0], found[1][0], atol=2e-6, rtol=1e-4)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-5)


@pytest.mark.parametrize("objective", ["adaptive-labels", "label-embedding", "compressed-label-embedding"])
def test_objectives_of_the_whole_batch_refuse_parts(digits, objective: str):
    with pytest.raises(
        InputError, match=r"accumulate: expected 1 for .*, whose loss is computed over the whole batch, got 2"
    ):
        Trainer(model_for(digits, objective), Classify(digits), Settings(accumulate=2))


def test_kin_is_trained_with_accumulated_gradients(tmp_path):
    """Its running means are no part of the gradient; an embedding that is learned by gradients needs the whole batch."""
    given = {"epochs": 1, "data_options": {"subset": 0.1}, "accumulate": 2, "batch_size": 32}
    trained = labelkin.train("digits", objective="kin", out=tmp_path / "kin", **given)
    assert trained.metrics["accuracy"] > 0
    with pytest.raises(InputError, match="accumulate: expected 1 for Kin, whose loss is computed over the whole batch"):
        labelkin.train("digits", objective="kin", options={"learning": "gradient"}, out=tmp_path / "gradient", **given)


@pytest.mark.parametrize(
    ("options", "settings", "sentence"),
    [
        ({"reduction": "sum"}, Settings(), "reduction: the training loop expects 'mean', got 'sum'"),
        ({"class_weight": [1.0] * 10}, Settings(accumulate=2), "accumulate: a mean that is divided by class weights"),
    ],
)
def test_the_loop_takes_means(digits, options: dict, settings: Settings, sentence: str):
    net = models.build("tiny-cnn", digits.shape)
    objective = objectives.OneHot(10, features=net.features, **options)
    with pytest.raises(InputError, match=sentence):
        Trainer(Model(net, objective), Classify(digits), settings)


def test_weight_decay_spares_what_the_objective_asks():
    model = Model(nn.Linear(4, 6), objectives.LabelEmbedding(classes=3, features=6))
    model.backbone.features = 6
    decayed, spared = make_optimizer(model, Settings(weight_decay=0.1)).param_groups
    assert [p.shape for p in spared["params"]] == [(3, 3)]
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.1, 0.0)


def test_learning_rates_by_hand():
    def rates(**settings) -> list[float]:
        return [learning_rate(Settings(lr=1.0, epochs=4, **settings), step, 2) for step in range(8)]

    assert rates() == [1.0] * 8
    assert rates(schedule="linear") == [1, 1, 0.75, 0.75, 0.5, 0.5, 0.25, 0.25]  # 0.1 (1 - e/200) in 000
    assert rates(schedule="step", milestones=(1, 3), gamma=0.2) == pytest.approx([1, 1, 0.2, 0.2, 0.2, 0.2, 0.04, 0.04])
    assert rates(schedule="cosine") == pytest.approx([(1 + cos(pi * s / 8)) / 2 for s in range(8)])
    assert rates(schedule="exponential", gamma=0.01) == pytest.approx([0.01 ** (s / 8) for s in range(8)])
    assert rates(warmup=1) == [0.5, 1, 1, 1, 1, 1, 1, 1]
    assert rates(warmup=2, schedule="cosine")[4:] == pytest.approx([(1 + cos(pi * s / 4)) / 2 for s in range(4)])


@pytest.mark.long
def test_the_epoch_that_counts_is_the_best_on_validation_data(digits):
    trained = Trainer(model_for(digits), Classify(digits), Settings(epochs=4, lr=0.05, optimizer="sgd")).fit()
    curve = [row["val_accuracy"] for row in trained.history]
    assert trained.epoch == max(e + 1 for e, accuracy in enumerate(curve) if accuracy == max(curve))
    assert trained.metrics["accuracy"] == trained.history[trained.epoch - 1]["test_accuracy"]


def test_the_same_seed_gives_the_same_bits_and_another_does_not(digits):
    def run(seed: int) -> torch.Tensor:
        model = model_for(digits)
        Trainer(model, Classify(digits), Settings(epochs=1, seed=seed, augment=("shift",))).fit()
        return weights(model)

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


@pytest.mark.long
def test_all_objectives_start_from_the_same_backbone():
    spec = RunSpec(settings=Settings(epochs=1, lr=1e-12), data_options={"subset": 0.1})
    first, second = (
        train(RunSpec(objective=name, settings=spec.settings, data_options=spec.data_options)).model.backbone
        for name in ("one-hot", "conditional-softmax")
    )
    torch.testing.assert_close(weights(first), weights(second), atol=1e-9, rtol=0)


@pytest.mark.long
def test_figures_of_the_objective_are_recorded(digits):
    settings = Settings(epochs=2, lr=5e-3)
    for objective, options, figure in [
        ("mixed-cross-entropy", {"learn": True}, "mean_eps"),
        ("adaptive-labels", {"scale": "learned"}, "scale"),
    ]:
        trained = Trainer(model_for(digits, objective, **options), Classify(digits), settings).fit()
        watched = [row[figure] for row in trained.history]
        assert len(set(watched)) == 2, "it is learned, so it moves"
        assert watched[-1] == trained.model.objective._figures()[figure]


def test_gradients_are_clipped(digits):
    model = model_for(digits)
    before = weights(model)
    settings = Settings(epochs=1, batch_size=10_000, optimizer="sgd", momentum=0.0, lr=1.0, clip=1e-3)
    Trainer(model, Classify(digits), settings).fit()
    assert (weights(model) - before).norm() == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.long
def test_bf16_and_compiled_training_learn(digits):
    for settings in (Settings(epochs=8, lr=5e-3, precision="bf16-mixed"), Settings(epochs=8, lr=5e-3, compile=True)):
        trained = Trainer(model_for(digits, "adaptive-labels"), Classify(digits), settings).fit()
        assert trained.metrics["accuracy"] > 0.5


@pytest.mark.parametrize(("compile", "compiled"), [("on", 1), (True, 1), ("off", 0), ("auto", 0)])
def test_the_model_is_compiled_on_request_and_never_by_auto_on_a_cpu(digits, monkeypatch, compile, compiled):
    asked: list[torch.nn.Module] = []
    monkeypatch.setattr(torch, "compile", lambda model: asked.append(model) or model)
    settings = Settings(epochs=50_000, compile=compile)
    trainer = Trainer(model_for(digits), Classify(digits), settings)
    trainer._prepare(resume=False)
    assert len(asked) == compiled


def test_auto_compiles_on_a_gpu_if_the_steps_save_more_time_than_compiling_takes():
    settings = Settings(epochs=100, compile="auto")
    assert not settings.compiles(499, "cuda")
    assert settings.compiles(500, "cuda")
    assert not settings.compiles(500, "cpu")
    assert Settings(compile="on").compiles(1, "cpu")
    assert not Settings().compiles(10**9, "cuda")


def test_the_two_ways_to_say_whether_to_compile_are_the_same_settings():
    assert Settings(compile="on") == Settings(compile=True)
    assert Settings(compile="off") == Settings()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"epochs": 0}, "epochs: expected a whole number of at least 1, got 0"),
        ({"lr": -1.0}, r"lr: expected a number in \(0, inf\], got -1.0"),
        ({"schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"warmup": 10}, r"warmup: expected less than epochs \(10\), got 10"),
        ({"learning_rate": 1.0}, "learning_rate: there is no training setting of this name"),
        ({"compile": "yes"}, "compile: expected one of 'auto', 'on', 'off', got 'yes'"),
        ({"augment": ("flipp",)}, "Did you mean 'flip'"),
        ({"augment": ("flip:3",)}, "flip takes no number, got '3'"),
        ({"augment": ("pad-crop:x",)}, "expected a number after pad-crop:, got 'x'"),
    ],
)
def test_wrong_settings_are_named(digits, settings: dict, sentence: str):
    with pytest.raises(InputError, match=sentence):
        Trainer(model_for(digits), Classify(digits), Settings.of(**settings)).fit()


def test_a_run_says_nothing_of_its_precision(capfd, caplog):
    make_fabric(Settings(precision="bf16-mixed"))
    printed = capfd.readouterr()
    assert (printed.out, printed.err, caplog.text) == ("", "", "")


@pytest.mark.long
def test_training_does_not_import_what_fabric_only_asks_for_its_version():
    """A new process: no transformers through torchmetrics, and torchmetrics itself afterwards, whole."""
    code = """
        import importlib.metadata, sys
        from labelkin.training import Settings, make_fabric
        from labelkin.training._fabric import version_only
        make_fabric(Settings())
        print(*(name in sys.modules for name in ("lightning_fabric", "torchmetrics", "transformers")))
        with version_only("torchmetrics"):
            import torchmetrics as seen
        with version_only("no-such-package"):
            print("no-such-package" in sys.modules)
        import torchmetrics
        print(seen.__version__ == torchmetrics.__version__, hasattr(seen, "Metric"), hasattr(torchmetrics, "Metric"))
        with version_only("torchmetrics"):
            print(sys.modules["torchmetrics"] is torchmetrics)
        print(sys.modules["torchmetrics"] is torchmetrics)
    """
    pytest.importorskip("torchmetrics")
    pytest.importorskip("lightning_fabric")
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", *["False"] * 3, "True", "False", *["True"] * 3]
