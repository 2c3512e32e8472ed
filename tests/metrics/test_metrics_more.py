"""Weighted, cost, calibration, superclass, curve and structure metrics against scikit-learn, scipy and literal loops."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from sklearn.metrics import brier_score_loss, classification_report

from labelkin import InputError, metrics
from support.later import Later
from support.trees import random_taxonomy

torchmetrics = Later("torchmetrics.functional.classification")

CLASSES = 7
WEIGHTED = {
    "precision": metrics.weighted_precision,
    "recall": metrics.weighted_recall,
    "f1-score": metrics.weighted_f1,
}


def classes_drawn(seed: int, samples: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    predicted, target = torch.randint(CLASSES, (2, samples), generator=draw)
    return torch.where(torch.rand(samples, generator=draw) < 0.5, target, predicted), target


def probs_drawn(seed: int, samples: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(samples, CLASSES, generator=draw, dtype=torch.float64)
    return logits.softmax(-1), torch.randint(CLASSES, (samples,), generator=draw)


ALL_ONE = torch.ones(CLASSES, CLASSES) - torch.eye(CLASSES)
TREE = random_taxonomy(np.random.default_rng(2), CLASSES, "unbalanced")
SEMANTIC = TREE.distance("semantic")


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("left_out", [None, "true", "predicted", "both"])
@pytest.mark.filterwarnings("ignore::labelkin.metrics.UndefinedMetric")
def test_with_distances_of_0_and_1_they_are_scikit_learns(left_out: str | None, normalize: bool):
    predicted, target = classes_drawn(0)
    if left_out in ("true", "both"):
        target = torch.where(target == 3, 4, target)
    if left_out in ("predicted", "both"):
        predicted = torch.where(predicted == 3, 4, predicted)
    report = classification_report(target, predicted, labels=range(CLASSES), output_dict=True, zero_division=np.nan)
    confusion = metrics.confusion_matrix(predicted, target, CLASSES)
    for name, metric in WEIGHTED.items():
        found = metric(confusion, ALL_ONE, normalize=normalize)
        expected = [report[str(label)][name] for label in range(CLASSES)]
        assert found.values.tolist() == pytest.approx(expected, nan_ok=True)
        assert found.mean == pytest.approx(np.nanmean(expected))
    overall = metrics.weighted_accuracy(confusion, ALL_ONE, normalize=normalize)
    assert overall.mean == pytest.approx(float((predicted == target).double().mean()))
    assert overall.values.tolist() == pytest.approx(
        metrics.weighted_recall(confusion, ALL_ONE).values.tolist(), nan_ok=True
    )


@pytest.mark.parametrize("normalize", [False, True])
def test_weighted_metrics_by_a_loop(normalize: bool):
    """Distances that are not symmetric, so that a swap of rows and columns shows."""
    predicted, target = classes_drawn(1)
    distances = SEMANTIC + np.triu(np.full((CLASSES, CLASSES), 0.25), 1)
    pairs = [distances[i][j] for i in range(CLASSES) for j in range(CLASSES) if i != j]
    scale = sum(pairs) / len(pairs) if normalize else 1.0
    hits, negatives, positives = [0.0] * CLASSES, [0.0] * CLASSES, [0.0] * CLASSES
    for guess, true in zip(predicted.tolist(), target.tolist(), strict=True):
        hits[true] += guess == true
        negatives[true] += distances[true][guess] / scale
        positives[guess] += distances[true][guess] / scale
    confusion = metrics.confusion_matrix(predicted, target, CLASSES)
    counts = metrics.weighted_counts(confusion, distances, normalize=normalize)
    for found, expected in zip(counts, (hits, negatives, positives), strict=True):
        assert found.tolist() == pytest.approx(expected)
    precision = [h / (h + p) for h, p in zip(hits, positives, strict=True)]
    recall = [h / (h + n) for h, n in zip(hits, negatives, strict=True)]
    f1 = [2 * p * r / (p + r) for p, r in zip(precision, recall, strict=True)]
    for metric, expected in zip(WEIGHTED.values(), (precision, recall, f1), strict=True):
        found = metric(confusion, distances, normalize=normalize)
        assert found.values.tolist() == pytest.approx(expected)
        assert found.mean == pytest.approx(sum(expected) / CLASSES)
    overall = metrics.weighted_accuracy(confusion, distances, normalize=normalize).mean
    assert overall == pytest.approx(sum(hits) / (sum(hits) + sum(negatives)))


def test_confusion_has_true_classes_as_rows():
    confusion = metrics.confusion_matrix(torch.tensor([2, 2, 0]), torch.tensor([1, 1, 0]), 3)
    assert confusion.tolist() == [[1, 0, 0], [0, 0, 2], [0, 0, 0]]


def test_a_class_without_samples_or_predictions_is_named():
    confusion = np.diag([3.0, 0.0, 2.0])
    with pytest.warns(metrics.UndefinedMetric, match=r"weighted_f1: undefined \(NaN\) for 1 of 3 classes \(1\)"):
        found = metrics.weighted_f1(confusion, 1 - np.eye(3))
    assert math.isnan(found.values[1])
    assert found.mean == 1


def test_expected_cost_and_ordinal_error_by_a_loop():
    predicted, target = classes_drawn(3)
    costs = np.random.default_rng(0).normal(size=(CLASSES, CLASSES))
    values = [0.0, 1.0, 2.5, 7.0, -3.0, 10.0, 11.0]
    pairs = list(zip(predicted.tolist(), target.tolist(), strict=True))
    assert metrics.expected_cost(predicted, target, costs).values.tolist() == [costs[t][p] for p, t in pairs]
    assert metrics.expected_cost(predicted, target, costs).mean == pytest.approx(
        np.mean([costs[t][p] for p, t in pairs])
    )
    assert metrics.ordinal_mse(predicted, target).mean == pytest.approx(np.mean([(p - t) ** 2 for p, t in pairs]))
    expected = [(values[p] - values[t]) ** 2 for p, t in pairs]
    assert metrics.ordinal_mse(predicted, target, values).values.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_calibration_error_is_torchmetrics_and_a_loop(bins: int):
    probs, target = probs_drawn(0)
    found = metrics.expected_calibration_error(probs, target, bins=bins)
    theirs = torchmetrics.multiclass_calibration_error(probs, target, num_classes=CLASSES, n_bins=bins, norm="l1")
    assert found.error == pytest.approx(float(theirs), abs=1e-6)
    error, top = 0.0, [(max(row), row.index(max(row))) for row in probs.tolist()]
    for low in range(bins):
        inside = [i for i, (p, _) in enumerate(top) if low / bins < p <= (low + 1) / bins]
        assert found.samples[low] == len(inside)
        if inside:
            right = sum(top[i][1] == target[i] for i in inside) / len(inside)
            error += len(inside) / len(top) * abs(right - sum(top[i][0] for i in inside) / len(inside))
        else:
            assert math.isnan(found.confidence[low])
            assert math.isnan(found.accuracy[low])
    assert found.error == pytest.approx(error)


def test_a_bin_holds_its_upper_edge():
    probs = torch.tensor([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])
    assert metrics.expected_calibration_error(probs, torch.tensor([0, 0, 0]), bins=4).samples.tolist() == [0, 1, 1, 1]


def test_brier_score_is_scikit_learns_and_spans_0_to_2():
    probs, target = probs_drawn(1)
    expected = brier_score_loss(target, probs.numpy(), labels=range(CLASSES), scale_by_half=False)
    assert metrics.brier_score(probs, target).mean == pytest.approx(expected)
    certain = torch.eye(2)
    assert metrics.brier_score(certain, torch.tensor([0, 0])).values.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("probs", "sentence"),
    [
        (torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), "look like logits.*softmax"),
        (torch.full((4, 3), 1 / 3).log(), "look like logits or log-probabilities"),
        (torch.tensor([[0.5, 0.5, 0], [0.5, 0.3, 0], [1, 0, 0], [0.9, 0.9, 0]]), r"2 of 4 .*row 1 sums to 0\.8"),
        (torch.tensor([[math.nan, 0.5, math.nan]] + [[1.0, 0, 0]] * 3), r"probs: 2 NaN in 1 of 4 rows \(0\)"),
        (torch.ones(4, 3, dtype=torch.long), "probs: expected floating-point numbers, got torch.int64"),
    ],
)
@pytest.mark.parametrize(
    "metric",
    [
        metrics.expected_calibration_error,
        metrics.brier_score,
        lambda probs, target: metrics.superclass_accuracy(probs, target, [0, 0, 1]),
    ],
)
def test_what_is_no_probability_is_refused(metric, probs, sentence: str):
    with pytest.raises(InputError, match=sentence):
        metric(probs, torch.tensor([0, 1, 2, 0]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_probabilities_in_low_precision_pass(dtype):
    """In bfloat16, 900 times 1/900 is 1.0025."""
    probs = torch.full((2, 900), 1 / 900).to(dtype)
    assert metrics.brier_score(probs, torch.tensor([0, 1])).mean == pytest.approx(1, abs=0.01)


def test_superclass_by_sums_of_probabilities():
    probs, target = probs_drawn(2)
    groups = [4, 0, 4, 9, 0, 9, 9]
    expected = []
    for row, true in zip(probs.tolist(), target.tolist(), strict=True):
        sums = {group: sum(p for p, g in zip(row, groups, strict=True) if g == group) for group in groups}
        expected.append(max(sums, key=sums.__getitem__) == groups[true])
    assert metrics.superclass_accuracy(probs, target, groups).values.tolist() == expected
    apart = torch.tensor([[0.4, 0.3, 0.3]])  # the best class is not in the best group
    assert metrics.superclass_accuracy(apart, torch.tensor([1]), [0, 1, 1]).mean == 1


@pytest.mark.parametrize("shift", [0, 1, 2])  # whatever numbers k-means gives its clusters
def test_superclass_by_kmeans_finds_planted_clusters_and_counts_what_strays(shift: int):
    groups = (torch.tensor([0, 1, 2, 0, 1, 2, 0]) + shift) % 3
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(CLASSES, (120,), generator=draw)
    member = torch.nn.functional.one_hot(groups, 3).double()
    centres = member @ member.T / (member.sum(0)[groups])[:, None]  # a group's classes share its probability
    outputs = 0.95 * centres[target] + 0.05 * torch.rand(120, CLASSES, generator=draw).softmax(-1)
    assert metrics.superclass_accuracy_by_kmeans(outputs, outputs, target, groups).mean == 1
    strays = target.clone()
    strays[:12] = (target[:12] + 1) % 6  # classes 0 to 5 go round the groups, and so does 6
    found = metrics.superclass_accuracy_by_kmeans(outputs, outputs, strays, groups)
    wrong = groups[strays] != groups[target]
    assert wrong.sum() > 5
    assert found.values.tolist() == (~wrong).tolist()


def test_curves():
    assert metrics.auac([0.2, 0.6, 0.7]).mean == pytest.approx(0.5)
    assert metrics.auac([0.2, 0.6, 0.7]).values.tolist() == [0.2, 0.6, 0.7]
    reference = [0.1, 0.5, 0.6, 0.6, 0.4]
    assert metrics.epochs_saved([0.1, 0.6, 0.9], reference).mean == pytest.approx(1 - 2 / 5)
    assert metrics.epochs_saved([0.1, 0.6, 0.9], reference).values.tolist() == [False, True, True]
    assert metrics.epochs_saved(reference, reference).mean == pytest.approx(1 - 3 / 5)
    assert metrics.epochs_saved([0.1] * 7 + [0.7], reference).mean == pytest.approx(1 - 8 / 5)
    with pytest.warns(metrics.UndefinedMetric, match="never reaches the reference's best"):
        assert math.isnan(metrics.epochs_saved([0.1, 0.2], reference).mean)


def test_the_share_of_epochs_saved_is_read_without_torch():
    """As comparisons read it: None where it is not reached, and epochs that were not measured count for nothing."""
    nan = math.nan
    assert metrics.share_of_epochs_saved([0.1, 0.6, 0.9], [0.1, 0.5, 0.6, 0.6, 0.4]) == pytest.approx(1 - 2 / 5)
    assert metrics.share_of_epochs_saved([nan, 0.7], [nan, 0.6, 0.7, 0.7]) == pytest.approx(1 - 2 / 4)
    assert metrics.share_of_epochs_saved([0.0, 0.1], [0.0, 0.0]) == pytest.approx(1 - 1 / 2)
    for ours, reference in [([0.1], [0.2]), ([], [0.2]), ([0.1], []), ([0.1], [nan])]:
        assert metrics.share_of_epochs_saved(ours, reference) is None
    code = "import sys; from labelkin.metrics import share_of_epochs_saved; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


RESULTS = {
    "accuracy": lambda p, y: metrics.accuracy(p.argmax(-1), y),
    "top_k_accuracy": lambda p, y: metrics.top_k_accuracy(p, y, k=2),
    "expected_cost": lambda p, y: metrics.expected_cost(p.argmax(-1), y, SEMANTIC),
    "ordinal_mse": lambda p, y: metrics.ordinal_mse(p.argmax(-1), y),
    "expected_calibration_error": metrics.expected_calibration_error,
    "brier_score": metrics.brier_score,
    "superclass_accuracy": lambda p, y: metrics.superclass_accuracy(p, y, [k % 2 for k in range(CLASSES)]),
    "weighted_f1": lambda p, y: metrics.weighted_f1(metrics.confusion_matrix(p.argmax(-1), y, CLASSES), SEMANTIC),
    "structure_correlation": lambda p, y: metrics.structure_correlation(SEMANTIC, SEMANTIC, given="distances"),
    "auac": lambda p, y: metrics.auac([0.5, 0.6]),
    "epochs_saved": lambda p, y: metrics.epochs_saved([0.5, 0.6], [0.5, 0.6]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_metric_returns_a_mean_and_values(name: str):
    found = RESULTS[name](*probs_drawn(0))
    assert isinstance(found, metrics.Metric)
    assert isinstance(found.mean, float)
    assert isinstance(found.values, torch.Tensor)
    assert found.values.ndim == 1


def euclidean(a: list[float], b: list[float]) -> float:
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


@pytest.mark.parametrize("given", ["vectors", "distances"])
def test_structure_correlation_by_a_loop(given: str):
    tree = random_taxonomy(np.random.default_rng(7), 12, "unbalanced")
    reference = tree.distance("edges")
    vectors = np.random.default_rng(8).integers(0, 4, size=(12, 4)).tolist()  # with ties
    distances = [[euclidean(a, b) for b in vectors] for a in vectors]
    expected = []
    for i in range(12):
        others = [j for j in range(12) if j != i]
        expected.append(kendalltau([distances[i][j] for j in others], [reference[i][j] for j in others]).statistic)
    found = metrics.structure_correlation(vectors if given == "vectors" else distances, reference, given=given)
    assert found.values.tolist() == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(expected))
    assert found.dropped == 0


def test_structure_correlation_is_1_of_itself_and_drops_what_has_no_order():
    reference = np.array([[0, 1, 1, 1], [1, 0, 2, 3], [1, 2, 0, 4], [1, 3, 4, 0]], dtype=float)
    found = metrics.structure_correlation(reference, reference, given="distances")
    assert found.mean == pytest.approx(1)
    assert found.dropped == 1
    assert math.isnan(found.values[0])


@pytest.mark.parametrize("turned", [False, True])
def test_one_hot_labels_have_no_structure(turned: bool):
    vectors = np.eye(CLASSES)
    if turned:  # equal distances, but for rounding
        vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(CLASSES, CLASSES)))[0]
    with pytest.warns(metrics.UndefinedMetric, match="in every class all distances are equal"):
        found = metrics.structure_correlation(vectors, SEMANTIC, given="vectors")
    assert math.isnan(found.mean)
    assert found.dropped == CLASSES


NONE = torch.zeros(0, dtype=torch.long)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.accuracy(NONE, NONE).mean,
        lambda: metrics.top_k_accuracy(torch.zeros(0, 3), NONE, k=1).mean,
        lambda: metrics.expected_cost(NONE, NONE, np.eye(3)).mean,
        lambda: metrics.ordinal_mse(NONE, NONE).mean,
        lambda: metrics.expected_calibration_error(torch.zeros(0, 3), NONE).error,
        lambda: metrics.brier_score(torch.zeros(0, 3), NONE).mean,
        lambda: metrics.superclass_accuracy(torch.zeros(0, 3), NONE, [0, 1, 1]).mean,
        lambda: metrics.superclass_accuracy_by_kmeans(torch.zeros(5, 3), torch.zeros(0, 3), NONE, [0, 1, 1]).mean,
        lambda: metrics.weighted_accuracy(np.zeros((3, 3)), 1 - np.eye(3)).mean,
    ],
)
def test_without_samples_they_are_nan_with_a_warning(call):
    with pytest.warns(metrics.UndefinedMetric, match="undefined") as caught:
        assert math.isnan(call())
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: metrics.confusion_matrix(torch.tensor([0, 3]), torch.tensor([0, 1]), 3),
            "predicted: .* 0 to 2, got 3",
        ),
        (lambda: metrics.weighted_f1(np.eye(3), np.eye(3)), "distances: expected 0 from each class to itself"),
        (
            lambda: metrics.weighted_f1(np.eye(3), np.zeros((2, 2))),
            r"distances: expected a table of 3 x 3, got .*\(2, 2\)",
        ),
        (lambda: metrics.weighted_f1(-np.eye(3), np.zeros((3, 3))), "confusion: expected counts of 0 or more"),
        (lambda: metrics.weighted_f1(np.eye(3), np.zeros((3, 3)), normalize=True), "got only zeros"),
        (lambda: metrics.expected_cost(NONE, NONE, [[0, math.nan], [1, 0]]), "costs: .*got 1 NaN or infinite of 4"),
        (lambda: metrics.expected_cost(NONE, NONE, "cheap"), "costs: expected numbers, got str"),
        (lambda: metrics.ordinal_mse(torch.tensor([2]), torch.tensor([0]), [1.0, 2.0]), "predicted: .*got 2"),
        (
            lambda: metrics.superclass_accuracy(torch.eye(3), torch.arange(3), [0, 1]),
            "group of each of 3 classes, got 2",
        ),
        (
            lambda: metrics.superclass_accuracy_by_kmeans(torch.eye(3)[:1], torch.eye(3), torch.arange(3), [0, 1, 1]),
            "at least 2 rows, one per group, got 1",
        ),
        (lambda: metrics.auac([]), "accuracies: expected one accuracy per epoch, got none"),
        (lambda: metrics.epochs_saved([0.1, math.nan], [0.2]), "curve: expected finite numbers, got 1 NaN"),
        (lambda: metrics.structure_correlation(np.eye(3), 1 - np.eye(3), given="vector"), "Did you mean 'vectors'"),
        (lambda: metrics.structure_correlation(np.eye(3), 1 - np.eye(3), given="distances"), "labels: expected 0 from"),
        (lambda: metrics.structure_correlation(np.eye(2), 1 - np.eye(2), given="vectors"), "at least 3 classes"),
    ],
)
def test_bad_input_is_refused(call, sentence: str):
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_nan_score_is_never_a_hit():
    scores = torch.tensor([[math.nan, 0.0, 1.0], [2.0, math.nan, 1.0]])
    assert metrics.top_k_accuracy(scores, torch.tensor([0, 0]), k=1).values.tolist() == [False, False]


@pytest.mark.parametrize(
    ("vectors", "expected"), [([0.0, 1.0, 3.0], 1.0), ([0.0, 3.0, 1.0], -1.0), ([0.0, 1.0, 1.5], 1 / 3)]
)
def test_structure_correlation_of_three_classes_is_a_sign_a_class(vectors: list[float], expected: float):
    """Each class has two distances, which are in the reference's order or not: counted by hand."""
    reference = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    found = metrics.structure_correlation(torch.tensor(vectors).unsqueeze(1), reference, given="vectors")
    assert found.mean == pytest.approx(expected)
