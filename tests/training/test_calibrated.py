"""Every run fits a temperature on held-out samples and decides its test samples by it."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy

from labelkin import InputError, OneHot, StaticLabels, Taxonomy, data
from labelkin.decide import Temperature
from labelkin.runs import DataWorkspace, RunFolder, RunSpec, Store, load_run, train_run
from labelkin.training import Calibration, Classify, Evaluation, Settings, decide_test, fit_calibration

TREE = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "wild": ["lynx"]}, "vehicle": ["car", "bus"]})
QUICK = Settings(epochs=2, batch_size=128, lr=5e-3, calibration=0.1)


def some_scores(samples: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Overconfident log-probabilities of five classes."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(samples, 5, generator=generator)
    target = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)
    return (3 * logits).log_softmax(-1), target


def test_the_temperature_is_the_most_probable_one_under_a_weak_prior():
    scores, target = some_scores(400)
    values = scores.double().numpy()

    def loss(log_temperature: float) -> float:
        total = 0.0
        for row, true in zip(values, target.tolist(), strict=True):
            z = row / math.exp(log_temperature)
            log_probs = z - np.log(np.exp(z - z.max()).sum()) - z.max()
            total -= log_probs[true]
        return total + log_temperature**2 / 2

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9})
    found = fit_calibration(OneHot(5), scores, target)
    assert found.samples == 400
    assert found.temperature == pytest.approx(math.exp(best.x), rel=1e-5)
    assert found.temperature == pytest.approx(3, rel=0.2)


def test_a_wide_prior_is_none_a_narrow_one_decides_and_any_keeps_samples_without_mistakes_finite():
    scores, target = some_scores(300)
    plain = Temperature().fit(scores, target).value
    assert Temperature().fit(scores, target, prior=1e6).value == pytest.approx(plain, rel=1e-6)
    assert Temperature().fit(scores, target, prior=1e-4).value == pytest.approx(1, abs=1e-3)
    assert 1 < Temperature().fit(scores, target, prior=0.1).value < plain  # type: ignore[operator]
    right = torch.eye(5).repeat(30, 1)
    with pytest.warns(UserWarning, match="beyond the limit"):
        Temperature().fit(right, right.argmax(-1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_calibration(OneHot(5), right, right.argmax(-1))
    assert 0.01 < found.temperature < 1  # more certain than before, but not without end
    assert found.samples == 150
    with pytest.raises(InputError, match="prior: expected a number"):
        Temperature().fit(scores, target, prior=0.0)


def test_too_few_samples_leave_probabilities_alone_and_other_scores_undecided():
    scores, target = some_scores(49)
    assert fit_calibration(OneHot(5), scores, target) == Calibration(1.0, 0)
    assert fit_calibration(OneHot(5), None, None) == Calibration(1.0, 0)
    vectors = StaticLabels(5, vectors=torch.eye(5))
    plain = fit_calibration(vectors, scores, target)
    assert math.isnan(plain.temperature)
    decided = decide_test(scores, target, TREE, plain)
    assert torch.equal(decided.outputs["answer"], scores.argmax(-1))
    assert math.isnan(decided.metrics["decided_cost"])
    assert decided.metrics["argmax_cost"] > 0
    assert fit_calibration(vectors, *some_scores(50)).samples == 50


def test_decisions_are_those_of_a_loop_over_samples_and_answers():
    scores, target = some_scores(60, seed=3)
    temperature, distance = 2.5, TREE.distance("height")
    found = decide_test(scores, target, TREE, Calibration(temperature, 500))
    answers, ranks, confidences = [], [], []
    for row in scores.double().numpy() / temperature:
        probs = np.exp(row) / np.exp(row).sum()
        expected = [sum(probs[j] * distance[j, k] for j in range(5)) for k in range(5)]
        order = sorted(range(5), key=lambda k: (round(expected[k], 12), -probs[k]))
        answers.append(order[0])
        ranks.append(order)
        confidences.append(probs)
    true = target.tolist()
    costs = [distance[t, a] for t, a in zip(true, answers, strict=True)]
    assert found.outputs["answer"].tolist() == answers
    assert found.outputs["cost"].tolist() == costs
    assert found.outputs["argmax"].tolist() == scores.argmax(-1).tolist()
    metrics = found.metrics
    assert metrics["decided_cost"] == pytest.approx(np.mean(costs))
    assert metrics["decided_severity"] == pytest.approx(np.mean([cost for cost in costs if cost]))
    assert metrics["decided_accuracy"] == pytest.approx(np.mean([cost == 0 for cost in costs]))
    every = np.mean([[distance[t, k] for k in order] for t, order in zip(true, ranks, strict=True)])
    assert metrics["decided_ahd5"] == pytest.approx(every)  # all five classes
    assert metrics["decided_ahd20"] == pytest.approx(every)
    recall = [np.mean([a == t for t, a in zip(true, answers, strict=True) if t == k]) for k in set(true)]
    assert metrics["decided_balanced_accuracy"] == pytest.approx(np.mean(recall))
    assert metrics["temperature"] == 2.5
    assert metrics["calibration_samples"] == 500


def test_the_average_distances_count_the_first_five_and_twenty_classes():
    tree = Taxonomy.from_nested({f"g{i}": [f"c{i}{j}" for j in range(5)] for i in range(6)})
    scores = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    target = torch.arange(40) % 30
    from labelkin.decide import least_cost_top_k

    found = decide_test(scores, target, tree, Calibration(1.0, 0)).metrics
    best = least_cost_top_k(scores.double().exp(), tree, 20)
    distances = tree.distance("height", target.numpy()[:, None], best.numpy())
    assert found["decided_ahd5"] == pytest.approx(distances[:, :5].mean())
    assert found["decided_ahd20"] == pytest.approx(distances.mean())
    # The true class, then the other four of its group at distance 1, then 15 of other groups at distance 2.
    assert found["ahd5_floor"] == pytest.approx(4 / 5)
    assert found["ahd20_floor"] == pytest.approx((4 + 2 * 15) / 20)


def test_without_a_tree_the_decision_is_the_most_probable_class():
    scores, target = some_scores(50)
    found = decide_test(scores, target, None, Calibration(2.0, 100))
    assert torch.equal(found.outputs["answer"], scores.argmax(-1))
    assert torch.isnan(found.outputs["cost"]).all()
    assert math.isnan(found.metrics["decided_cost"])
    assert found.metrics["decided_accuracy"] == pytest.approx(float((scores.argmax(-1) == target).float().mean()))
    assert found.metrics["decided_ece"] >= 0


def test_decisions_do_not_depend_on_the_order_of_samples_or_on_a_constant():
    scores, target = some_scores(80, seed=5)
    order = torch.randperm(80, generator=torch.Generator().manual_seed(1))
    plain = decide_test(scores, target, TREE, Calibration(1.7, 200))
    moved = decide_test(scores[order] + 3.0, target[order], TREE, Calibration(1.7, 200))
    assert torch.equal(plain.outputs["answer"][order], moved.outputs["answer"])
    assert plain.metrics == pytest.approx(moved.metrics)


def test_impossible_classes_do_not_stop_the_fit():
    scores, target = some_scores(120)
    scores[:, 0] = torch.where(target == 0, scores[:, 0], -math.inf)
    found = fit_calibration(OneHot(5), scores, target)
    assert math.isfinite(found.temperature)
    assert math.isfinite(decide_test(scores, target, TREE, found).metrics["decided_cost"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("store")
    for name in ("one-hot", "static-labels"):
        train_run(RunSpec(objective=name, settings=QUICK), out / name)
    return out


def test_a_run_is_calibrated_on_samples_that_it_was_not_trained_on(store):
    folder = RunFolder(store / "one-hot")
    final, outputs = folder.final, folder.outputs()
    held = data.load("digits", calibration=0.1).calibration
    assert torch.equal(outputs["calibration_target"], held.targets)
    predicted = load_run(folder.path).predict(held.inputs)
    torch.testing.assert_close(predicted.scores, outputs["calibration_scores"], atol=1e-4, rtol=1e-4)
    again = fit_calibration(OneHot(10), outputs["calibration_scores"], outputs["calibration_target"])
    assert final["temperature"] == pytest.approx(again.temperature)
    assert final["calibration_samples"] == len(held.targets) == 144
    scaled = outputs["calibration_scores"].double() / final["temperature"]
    losses = [cross_entropy(scores, held.targets) for scores in (scaled, outputs["calibration_scores"].double())]
    assert losses[0] <= losses[1]
    assert sorted(outputs) == ["calibration_scores", "calibration_target", "scores", "target"]


def test_the_stored_decisions_give_the_final_metrics(store):
    for record in Store(store).records():
        found, final = record.decisions(), record.final
        assert found is not None
        assert final is not None
        assert (found.target.dtype, found.answer.dtype, found.cost.dtype) == (np.int32, np.int32, np.float32)
        assert found.cost.mean() == pytest.approx(final["decided_cost"])
        assert found.argmax_cost.mean() == pytest.approx(final["argmax_cost"])
        assert (found.answer == found.target).mean() == pytest.approx(final["decided_accuracy"])
        assert (found.argmax == found.target).mean() == pytest.approx(final["accuracy"])
        assert (found.temperature, found.calibration_samples) == (final["temperature"], 144)
        assert (record.path / "decisions.npz").stat().st_size < 20 * 359


def test_scores_without_probabilities_get_them_from_the_temperature(store):
    final = RunFolder(store / "static-labels").final
    assert final["ece"] is None
    assert final["decided_ece"] < 0.2
    assert final["calibration_samples"] == 144


@pytest.mark.long
def test_a_validation_split_calibrates_and_nothing_more_is_held_out(tmp_path):
    options = {"validation_fraction": 0.2}
    trained = train_run(RunSpec(data_options=options, settings=QUICK))
    assert torch.equal(trained.outputs["calibration_target"], data.load("digits", **options).val.targets)
    assert trained.metrics["calibration_samples"] == 288


@pytest.mark.long
def test_nothing_held_out_means_temperature_one(tmp_path):
    trained = train_run(RunSpec(settings=Settings(epochs=1, calibration=0)), tmp_path / "run")
    assert (trained.metrics["temperature"], trained.metrics["calibration_samples"]) == (1, 0)
    found = Store(tmp_path).records()[0].decisions()
    assert found is not None
    assert (found.temperature, found.calibration_samples) == (1, 0)


def test_the_held_out_part_is_the_same_for_every_objective_and_seed_and_never_reaches_the_objective():
    first, other = (
        RunSpec(objective=name, settings=Settings(seed=seed, calibration=0.1))
        for name, seed in (("one-hot", 0), ("semantic-smoothing", 7))
    )
    one, two = DataWorkspace(first), DataWorkspace(other)
    assert torch.equal(one.dataset.calibration.inputs, two.dataset.calibration.inputs)
    assert len(one.context.targets) == len(one.dataset.train) == 1438 - 144
    assert one.serves(other)
    assert not one.serves(RunSpec(settings=Settings(calibration=0.2)))


def test_the_task_evaluates_the_part_it_calibrates_on_once():
    found = data.load("digits", calibration=0.1)
    task, asked = Classify(found), []
    scores = torch.zeros(len(found.test), 10)

    def evaluate(part: str) -> Evaluation:
        asked.append(part)
        held = found.splits[part]
        return Evaluation({}, {"scores": torch.randn(len(held), 10), "target": held.targets})

    class Model:
        objective = OneHot(10)

    tested = Evaluation({"accuracy": 0.1}, {"scores": scores, "target": found.test.targets})
    task.calibrate(Model(), tested, evaluate)  # type: ignore[arg-type]
    assert asked == ["calibration"]


def test_sentences_are_not_calibrated():
    assert RunSpec(data="multi30k:en-de").settings.calibration == 0
    assert RunSpec(data="digits").settings.calibration == Settings().calibration > 0


@pytest.mark.parametrize("share", [-0.1, 0.6, float("nan")])
def test_a_share_outside_its_range_is_refused(share: float):
    with pytest.raises(InputError, match=r"calibration: expected a number in"):
        Settings(calibration=share)
