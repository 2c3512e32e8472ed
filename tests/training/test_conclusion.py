"""What is said of a trained model: its figures worked out again, and measuring in training mode without training."""

import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import labelkin
from labelkin import decide, metrics
from labelkin.data import ArraySplit, Dataset
from labelkin.runs import DataWorkspace, RunFolder, RunSpec, load_run
from labelkin.runs import train_run as train
from labelkin.training import Classify, Place, Settings, Trained
from labelkin.training._final_metrics import final_metrics
from labelkin.training._optimizer import make_optimizer, match_memory_format
from labelkin.training._task import batch_statistics

QUICK = Settings(epochs=2, batch_size=128, lr=5e-3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    out = tmp_path_factory.mktemp("runs")
    found = {}
    for name in ("one-hot", "hierarchical", "static-labels", "adaptive-labels"):
        train(RunSpec(objective=name, settings=QUICK), out / name)
        found[name] = RunFolder(out / name)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", ["one-hot", "hierarchical", "adaptive-labels"])
def test_the_final_metrics_are_those_of_the_kept_outputs(runs: dict[str, RunFolder], name: str):
    predictor, final, outputs = load_run(runs[name].path), runs[name].final, runs[name].outputs()
    scores, target, tree = outputs["scores"], outputs["target"], predictor.taxonomy
    distance = tree.distance("height")
    probs = scores.double().exp().numpy()
    assert final["ece"] == pytest.approx(
        metrics.expected_calibration_error(torch.as_tensor(probs), target).error, abs=1e-6
    )
    assert final["brier"] == pytest.approx(np.mean(((probs - np.eye(10)[target]) ** 2).sum(1)), abs=1e-6)
    best = scores.topk(5).indices.numpy()
    assert final["ahd5"] == pytest.approx(distance[target.numpy()[:, None], best].mean())
    # CRM by a literal loop: every decision's expected distance.
    decided = np.array([min(range(10), key=lambda k, p=p: round(float(p @ distance[:, k]), 9)) for p in probs])
    wrong = decided != target.numpy()
    assert final["crm_accuracy"] == pytest.approx(1 - wrong.mean(), abs=2 / len(wrong))
    assert final["crm_severity"] == pytest.approx(distance[target.numpy()[wrong], decided[wrong]].mean(), rel=0.05)
    assert decide.least_cost(torch.as_tensor(probs), tree).shape == target.shape


@pytest.mark.long
def test_where_an_objective_learns_no_vectors_the_class_means_of_its_scores_stand_for_them(runs: dict[str, RunFolder]):
    outputs, final = runs["one-hot"].outputs(), runs["one-hot"].final
    means = torch.stack([outputs["scores"][outputs["target"] == k].double().mean(0) for k in range(10)])
    distances = load_run(runs["one-hot"].path).taxonomy.distance("height")
    expected = metrics.structure_correlation(means, distances, given="vectors").mean
    assert final["structure"] == pytest.approx(expected)
    learned = load_run(runs["adaptive-labels"].path).model.objective.label_vectors()
    expected = metrics.structure_correlation(learned, distances, given="vectors").mean
    assert runs["adaptive-labels"].final["structure"] == pytest.approx(expected)


@pytest.mark.long
def test_without_probabilities_what_rests_on_them_is_undefined(runs: dict[str, RunFolder]):
    final = runs["static-labels"].final
    assert [final[name] for name in ("ece", "brier", "crm_accuracy", "crm_severity", "crm_ahd5")] == [None] * 5
    assert final["ahd5"] > 0


def test_without_mistakes_or_tree_it_says_so_without_a_warning():
    objective = labelkin.OneHot(classes=6)
    target = torch.arange(6)
    scores = (torch.eye(6) * 50).log_softmax(-1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = final_metrics(objective, scores, target, None)
        assert set(found) == {"accuracy", "balanced_accuracy", "macro_f1", "top5", "ece", "brier"}
        tree = labelkin.Taxonomy.from_nested({"a": list("012"), "b": list("345")})
        assert math.isnan(final_metrics(objective, scores, target, tree)["crm_severity"])


# As some papers measured


def test_batch_statistics_are_the_batchs_own_and_nothing_is_kept():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten()).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    inputs = torch.randn(16, 1, 6, 6) * 3 + 5
    with torch.no_grad(), batch_statistics(net):
        found = net(inputs).reshape(16, 4, -1)
    assert found.mean((0, 2)).abs().max() < 1e-5
    assert not net.training
    assert not net[1].training
    assert net[1].momentum == 0.1
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
    with torch.no_grad():
        assert net(inputs).reshape(16, 4, -1).mean((0, 2)).abs().max() > 0.1


@pytest.mark.long
def test_the_best_epoch_on_the_test_set_is_reported_where_asked_for():
    data = {"subset": 0.3}
    settings = {"epochs": 6, "batch_size": 64, "lr": 0.02}
    spec = RunSpec(settings=Settings(**settings, report="best-test"), data_options=data)
    trained = train(spec, workspace=DataWorkspace(spec))
    accuracies = [row["test_accuracy"] for row in trained.history]
    assert trained.epoch == max(range(6), key=lambda e: (accuracies[e], e)) + 1
    assert trained.metrics["accuracy"] == max(accuracies)
    last = train(
        RunSpec(settings=Settings(**settings, report="last"), data_options={**data, "validation_fraction": 0.2})
    )
    assert last.epoch == 6


@pytest.mark.long
def test_evaluation_in_training_mode_changes_what_is_measured():
    def measured(way: str) -> Trained:
        settings = Settings(epochs=1, batch_size=256, evaluation=way)
        return train(RunSpec(settings=settings, backbone="resnet-3-0", data_options={"subset": 0.2}))

    found = [measured(way) for way in ("eval", "batch-statistics")]
    assert found[0].metrics["brier"] != found[1].metrics["brier"]
    for ours, theirs in zip(found[0].model.parameters(), found[1].model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_evaluation_in_training_mode_does_not_depend_on_the_order_of_the_test_set():
    """The batches of a test set that is sorted by class have one class each."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.arange(2).repeat_interleave(1200)
    inputs = torch.randn(2400, 4, generator=generator) + 3 * targets.unsqueeze(-1)
    split = ArraySplit(inputs, targets)
    torch.manual_seed(0)
    model = labelkin.Model(nn.BatchNorm1d(4), labelkin.OneHot(("a", "b"), features=4))
    with torch.no_grad():
        model.objective.head.weight.copy_(torch.tensor([[-1.0], [1.0]]).expand(2, 4))
        model.objective.head.bias.zero_()
    task = Classify(Dataset(name="sorted", classes=("a", "b"), train=split, test=split))
    with torch.no_grad(), batch_statistics(model.backbone):
        found = task.evaluate(model, "test", Place(torch.device("cpu")))
    assert found.metrics["accuracy"] > 0.95
    assert torch.equal(found.outputs["target"], targets)


# Resuming


def test_restored_moments_have_the_layout_of_their_parameters():
    """Files keep no memory format, and fused steps on a GPU demand that of the weights."""
    spec = RunSpec(settings=QUICK)
    model = train(spec).model.to(memory_format=torch.channels_last)
    optimizer = make_optimizer(model, QUICK)
    model(torch.randn(4, 1, 8, 8), torch.arange(4)).backward()
    optimizer.step()
    state = optimizer.state_dict()
    for kept in state["state"].values():
        for name, value in kept.items():
            kept[name] = value.contiguous()
    again = make_optimizer(model, QUICK)
    again.load_state_dict(state)
    match_memory_format(again)
    kernels = [p for p in model.parameters() if p.ndim == 4]
    assert any(not p.is_contiguous() for p in kernels)
    for parameter in kernels:
        for name in ("exp_avg", "exp_avg_sq"):
            assert again.state[parameter][name].stride() == parameter.stride()
            assert torch.equal(again.state[parameter][name], optimizer.state[parameter][name])
