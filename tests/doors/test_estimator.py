"""The scikit-learn door: its own checks, and what it promises beyond them."""

# ruff: noqa: N806  (X is scikit-learn's own name)

import pickle
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import labelkin
from labelkin import OBJECTIVES, InputError, KinClassifier, Taxonomy
from labelkin.data import calibration_part
from labelkin.doors._training_inputs import held_out_rows
from labelkin.structure import _catalogue as catalogue
from labelkin.training import fit_calibration
from support.requires import skip_unless

# The checks of scikit-learn that cannot hold, by objective, each with its reason.
WEIGHT_CHECK = "check_sample_weight_equivalence_on_dense_data"
SPARSE_WEIGHT_CHECK = "check_sample_weight_equivalence_on_sparse_data"
BATCH_NORM = (
    "Batch norm between the levels counts samples, not their weights: a sample of weight 2 has one part in the statistics and "
    "two copies have two. The check holds with batch_norm=False."
)
EXPECTED_FAILURES = {"bilt": dict.fromkeys([WEIGHT_CHECK, SPARSE_WEIGHT_CHECK], BATCH_NORM)}
# Enough epochs and a high rate: the checks ask for an accuracy of .83 on blobs, and every fit must be short.
CHECKED = {"epochs": 5, "lr": 0.02}
CHECKED_OFTEN = ("one-hot", "hierarchical", "kin", "adaptive-labels", "retrospection", "static-labels")  # of every kind
SLOWER = {"static-labels": {"epochs": 15}}  # regression follows extreme class weights more slowly
NAMES = np.array(["ship", "cat", "dog"])  # of iris, to have a shipped tree: not in the order of the alphabet
TREE = Taxonomy.from_nested({"animal": ["dog", "cat"], "thing": ["ship", "car"]})


def iris(labels: Any = NAMES) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X, labels[y]


def quick(objective: str = "one-hot", **params: Any) -> KinClassifier:
    return KinClassifier(objective, **{"epochs": 15, "batch_size": 32, "random_state": 0, **params})


def expected_failures(estimator: KinClassifier) -> dict[str, str]:
    return EXPECTED_FAILURES.get(estimator.objective, {})


def checked(objectives: Iterable[str]) -> Any:
    """Run scikit-learn's checks for each of the objectives."""
    estimators = [KinClassifier(objective, **{**CHECKED, **SLOWER.get(objective, {})}) for objective in objectives]
    return parametrize_with_checks(estimators, expected_failed_checks=expected_failures)


@pytest.mark.long
@checked(CHECKED_OFTEN)
def test_scikit_learns_own_checks(estimator: KinClassifier, check: Any):
    check(estimator)


@pytest.mark.slow
@checked(objective for objective in OBJECTIVES if objective not in CHECKED_OFTEN)
def test_scikit_learns_own_checks_of_the_other_objectives(estimator: KinClassifier, check: Any):
    check(estimator)


@pytest.mark.long
def test_the_weight_check_fails_for_the_reason_given():
    """With `preset="memory"`, a label is the mean of the other samples of its class: a copy changes it, a weight does not."""
    checks = {check.func.__name__: check for _, check in estimator_checks_generator(KinClassifier())}
    check = checks[WEIGHT_CHECK]
    with pytest.raises(AssertionError, match="not equivalent"):
        check(KinClassifier("adaptive-labels", options={"preset": "memory"}, **CHECKED))
    check(KinClassifier("adaptive-labels", options={"leave_one_out": False, "memory": 0}, **CHECKED))
    for name in (WEIGHT_CHECK, SPARSE_WEIGHT_CHECK):
        checks[name](KinClassifier("bilt", options={"batch_norm": False}, **CHECKED))


@pytest.mark.long
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective(objective: str, classes: int):
    X, y = iris()
    few = np.isin(y, NAMES[:classes])
    model = quick(objective, epochs=10, lr=0.02).fit(X[few], y[few])
    assert model.classes_.tolist() == sorted(NAMES[:classes])
    assert model.score(X[few], y[few]) > 0.9
    decision = model.decision_function(X[few])
    best = (decision > 0).astype(int) if classes == 2 else decision.argmax(1)
    assert (model.classes_[best] == model.predict(X[few])).all()
    outputs = model.model_(torch.zeros(1, 4, dtype=torch.float64))
    try:
        model.model_.objective.log_probs(outputs)
    except InputError:
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")
    else:
        probabilities = model.predict_proba(X[few])
        assert (model.classes_[probabilities.argmax(1)] == model.predict(X[few])).all()
        np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)


def test_why_there_are_no_probabilities_is_said():
    with pytest.raises(AttributeError) as caught:
        quick("static-labels").predict_proba  # noqa: B018
    assert "use decision_function" in str(caught.value.__cause__)


def test_nothing_is_measured_on_the_way():
    model = quick(epochs=3).fit(*iris())
    assert [set(row) for row in model.history_] == [{"epoch", "lr", "loss"}] * 3
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


# Labels and trees


@pytest.mark.long
@pytest.mark.parametrize("labels", [np.array([7, 3, 5]), np.array([0.0, 2.0, 1.0]), NAMES, NAMES.astype(object)])
def test_labels_come_back_as_they_were(labels: np.ndarray):
    X, y = iris(labels)
    predicted = quick(epochs=30).fit(X, y).predict(X)
    assert predicted.dtype == y.dtype
    assert (predicted == y).mean() > 0.8


@pytest.mark.long
def test_two_labels_that_are_true_and_false():
    X, y = iris()
    predicted = quick(epochs=30).fit(X, y == "cat").predict(X)
    assert predicted.dtype == bool
    assert (predicted == (y == "cat")).mean() > 0.8


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tree", "file", "path"])
def test_a_tree_is_cut_to_the_classes_in_their_order(tmp_path: Path, kind: str):
    path = tmp_path / "tree.json"
    TREE.save(path)
    model = quick("hierarchical", taxonomy={"tree": TREE, "file": str(path), "path": path}[kind]).fit(*iris())
    assert model.taxonomy_.classes == ("cat", "dog", "ship")
    assert set(model.taxonomy_.names) == {"root", "animal", "thing", "cat", "dog", "ship"}
    assert model.model_.objective.taxonomy == model.taxonomy_
    outputs = model.model_.objective.head.out_features
    assert outputs == 5  # a logit for each node but the root


@pytest.mark.long
def test_a_shipped_tree_by_name():
    model = quick("conditional-softmax", taxonomy="cifar10").fit(*iris())
    assert model.taxonomy_ == catalogue.taxonomy("cifar10").restrict(["cat", "dog", "ship"])


@pytest.mark.long
def test_whole_numbers_are_found_in_a_tree_by_their_digits():
    tree = Taxonomy.from_groups({"low": ["1", "2"], "high": ["30"]})
    model = quick("hierarchical", taxonomy=tree).fit(*iris(np.array([30, 2, 1])))
    assert model.taxonomy_.classes == ("1", "2", "30")
    assert model.classes_.tolist() == [1, 2, 30]


def test_a_tree_from_the_data_stands_on_standardised_columns():
    """Wines pair up one way by their alcohol and another by their proline; the unit of neither has a say."""
    X, y = load_wine(return_X_y=True)
    units = np.where(np.arange(13) == 0, 1e6, 1)
    trees = [quick("hierarchical", epochs=1).fit(x, y).model_.objective.taxonomy for x in (X, X * units)]
    assert trees[0] == trees[1]


# Weights


@pytest.mark.long
def test_a_weight_of_two_is_the_sample_twice():
    X, y = iris()
    rows = np.random.default_rng(0).permutation(150)[:40]
    X, y, weight = X[rows], y[rows], np.arange(40) % 4
    whole = {"batch_size": 100, "epochs": 40}
    for objective in ("one-hot", "label-embedding", "label-smoothing"):
        weighted = quick(objective, **whole).fit(X, y, sample_weight=weight)
        repeated = quick(objective, **whole).fit(X.repeat(weight, axis=0), y.repeat(weight))
        plain = quick(objective, **whole).fit(X, y)
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-4)
        assert np.abs(weighted.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


@pytest.mark.long
def test_a_weight_of_nothing_leaves_the_sample_out():
    X, y = iris()
    weight = np.where(y == "ship", 0.0, 0.3)
    model = quick("adaptive-labels").fit(X, y, sample_weight=weight)
    without = quick("adaptive-labels").fit(X[y != "ship"], y[y != "ship"])
    assert model.classes_.tolist() == ["cat", "dog"]
    np.testing.assert_allclose(model.predict_proba(X), without.predict_proba(X), rtol=1e-9)


@pytest.mark.long
def test_weights_find_their_samples_in_shuffled_batches():
    """Every flower is there as three kinds; only the weights say which is meant."""
    X, y = iris(np.arange(3))
    claims = np.tile([0, 1, 2], 150)
    weight = np.where(claims == y.repeat(3), 20.0, 1.0)
    model = quick(epochs=40, batch_size=16).fit(X.repeat(3, axis=0), claims, sample_weight=weight)
    assert model.score(X, y) > 0.9


@pytest.mark.long
def test_a_relation_from_the_data_counts_the_weights():
    X, y = iris()
    weight = np.random.default_rng(0).integers(1, 5, 150)
    weight[y == "cat"] = np.where(X[y == "cat"][:, 0] > 5.8, 40, 1)
    whole = {"batch_size": 4000, "epochs": 5, "calibration": 0.0}  # other samples would be held out of repeated ones
    weighted = quick("mixed-cross-entropy", **whole).fit(X, y, sample_weight=weight)
    repeated = quick("mixed-cross-entropy", **whole).fit(X.repeat(weight, axis=0), y.repeat(weight))
    scaled = quick("mixed-cross-entropy", **whole).fit(X, y, sample_weight=weight * 1e-4)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7)
    np.testing.assert_allclose(weighted.predict_proba(X), scaled.predict_proba(X), rtol=1e-7)


def test_a_tree_from_the_data_counts_the_weights():
    """The samples of "b" lie near "a" and near "c": their weights say which of the two is its sibling."""
    X, y = np.array([[0.0], [1.0], [11.0], [12.0]]), np.array(["a", "b", "b", "c"])
    for weight, pair in (([1, 9, 1, 1], "ab"), ([1, 1, 9, 1], "bc")):
        tree = quick("hierarchical", epochs=1).fit(X, y, sample_weight=weight).model_.objective.taxonomy
        assert tree.distance("height", [0], [1]).item() == (1 if pair == "ab" else 2)


# Class weights


def few_eights() -> tuple[np.ndarray, np.ndarray]:
    """Digits of which only 20 are eights."""
    X, y = load_digits(return_X_y=True)
    kept = (y != 8) | (np.cumsum(y == 8) <= 20)
    return X[kept], y[kept]


@pytest.mark.long
@pytest.mark.parametrize("objective", ["one-hot", "hierarchical", "label-embedding"])
def test_balanced_class_weights_are_sample_weights_by_class(objective: str):
    X, y = few_eights()
    counts = np.bincount(y)
    by_hand = len(y) / (10 * counts)
    fitted = [
        quick(objective, epochs=2, class_weight=class_weight).fit(X, y).decision_function(X)
        for class_weight in ("balanced", dict(enumerate(by_hand)), None)
    ]
    np.testing.assert_allclose(fitted[0], fitted[1], rtol=1e-9)
    assert np.abs(fitted[0] - fitted[2]).max() > 0.01


@pytest.mark.long
def test_balanced_class_weights_find_more_of_a_rare_class():
    X, y = load_digits(return_X_y=True)
    rare, rare_y = few_eights()
    eights = X[y == 8]
    recall = {
        class_weight: np.mean(quick(epochs=4, class_weight=class_weight).fit(rare, rare_y).predict(eights) == 8)
        for class_weight in (None, "balanced")
    }
    assert recall["balanced"] > recall[None] + 0.05


@pytest.mark.long
def test_class_weights_multiply_sample_weights():
    """Balanced weights undo sample weights that are the same for all samples of a class."""
    X, y = few_eights()
    weight = np.where(y % 2, 2.0, 1.0)
    by_hand = {digit: 1 / weight[y == digit].sum() for digit in range(10)}
    balanced = quick(epochs=2, class_weight="balanced").fit(X, y, sample_weight=weight)
    given = quick(epochs=2, class_weight=by_hand).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X), rtol=1e-7)


@pytest.mark.parametrize(
    ("class_weight", "sentence"),
    [
        ("balance", "class_weight: expected 'balanced', a dict of labels to weights, or None"),
        ([1, 2, 3], "class_weight: expected 'balanced', a dict"),
        ({"cat": -1.0, "dog": 1.0, "ship": 1.0}, r"class_weight\['cat'\]: expected a number in \[0, inf\], got -1.0"),
        ({"cat": 1.0, "bird": 1.0}, "class_weight: .*'bird'"),
        ({"cat": 0, "dog": 0, "ship": 0}, "class_weight: .*at least one weight above 0"),
    ],
)
def test_bad_class_weights_are_refused(class_weight: Any, sentence: str):
    with pytest.raises(InputError, match=sentence):
        quick(class_weight=class_weight).fit(*iris())


@pytest.mark.long
def test_a_dict_names_only_the_classes_whose_weight_is_not_one():
    X, y = iris()
    some = quick(epochs=2, class_weight={"cat": 5}).fit(X, y).predict_proba(X)
    every = quick(epochs=2, class_weight={"cat": 5, "dog": 1, "ship": 1}).fit(X, y).predict_proba(X)
    assert np.array_equal(some, every)


# Inner nodes as labels

DIGIT_TREE = Taxonomy.from_nested({"even": ["0", "2", "4", "6", "8"], "odd": ["1", "3", "5", "7", "9"]})
NODE_OBJECTIVES = [name for name, objective in OBJECTIVES.items() if objective.takes_nodes]


def digits_with_groups(share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digits, their names, and labels of which `share` say only "even" or "odd"."""
    X, y = load_digits(return_X_y=True)
    names = y.astype(str).astype(object)
    coarse = np.random.default_rng(0).random(len(y)) < share
    return X, names, np.where(coarse, np.where(y % 2, "odd", "even"), names)


@pytest.mark.long
@pytest.mark.parametrize("objective", NODE_OBJECTIVES)
def test_inner_nodes_are_labels(objective: str):
    X, names, labels = digits_with_groups(0.5)
    model = quick(objective, taxonomy=DIGIT_TREE, epochs=6).fit(X[:900], labels[:900])
    assert model.classes_.tolist() == [str(digit) for digit in range(10)]
    assert set(model.predict(X)) <= set(names)
    assert (model.predict(X) == names).mean() > 0.9  # half of them are new


@pytest.mark.long
def test_samples_of_inner_nodes_teach():
    """With two samples of each digit by name, hundreds known to be even or odd tell even from odd."""
    X, names, _ = digits_with_groups(0)
    named = np.concatenate([np.flatnonzero(names == str(digit))[:2] for digit in range(10)])
    labels = np.where(names.astype(int) % 2, "odd", "even").astype(object)
    labels[named] = names[named]
    parity = names.astype(int) % 2

    def parity_found(rows: Any) -> float:
        model = quick("conditional-softmax", taxonomy=DIGIT_TREE, epochs=15).fit(X[rows], labels[rows])
        return float((model.predict(X).astype(int) % 2 == parity).mean())

    assert parity_found(np.arange(len(X))) > parity_found(named) + 0.05


@pytest.mark.long
def test_inner_nodes_with_weights_of_classes_and_samples():
    X, names, labels = digits_with_groups(0.3)
    weight = np.where(labels == "odd", 0.0, 1.0)
    without = quick("hierarchical", taxonomy=DIGIT_TREE, epochs=2).fit(X[weight > 0], labels[weight > 0])
    weighted = quick("hierarchical", taxonomy=DIGIT_TREE, epochs=2).fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X), rtol=1e-9)
    balanced = quick("hierarchical", taxonomy=DIGIT_TREE, epochs=4, class_weight={"even": 0.1}).fit(X, labels)
    assert (balanced.predict(X) == names).mean() > 0.8


@pytest.mark.long
def test_inner_nodes_are_refused_where_they_have_no_meaning():
    X, _, labels = digits_with_groups(0.2)
    refused = [name for name in OBJECTIVES if name not in NODE_OBJECTIVES]
    assert refused
    for objective in refused:
        with pytest.raises(InputError, match=f"y: 'even', 'odd' .* inner nodes .*{objective}.* such as 'hierarchical'"):
            quick(objective, taxonomy=DIGIT_TREE).fit(X, labels)
    with pytest.raises(InputError, match="y: no sample is labeled with a class below the inner node 'odd'"):
        quick("hierarchical", taxonomy=DIGIT_TREE).fit(X, np.where(np.isin(labels, list("13579")), "odd", labels))


# Numbers


@pytest.mark.long
def test_columns_are_standardised_before_digits_are_lost():
    X, y = iris()
    far = quick(epochs=30).fit(X + 1e8, y)
    np.testing.assert_allclose(far.predict_proba(X + 1e8), quick(epochs=30).fit(X, y).predict_proba(X), atol=1e-3)


def test_a_number_too_large_for_single_precision_is_refused():
    X, y = iris()
    model = quick(epochs=1).fit(X.astype(np.float32), y)
    assert model.predict_proba(X).dtype == np.float32
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        model.predict(X * 1e60)


@pytest.mark.long
def test_the_same_seed_gives_the_same_network_and_torchs_own_state_stays():
    X, y = iris()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, second, other = (quick(epochs=2, random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(first, second)
    assert not np.allclose(first, other)
    stream = np.random.RandomState(0)
    model = quick(epochs=2, random_state=stream)
    assert not np.allclose(model.fit(X, y).predict_proba(X), model.fit(X, y).predict_proba(X))


# In scikit-learn's hands


@pytest.mark.long
def test_digits_by_cross_validation():
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert cross_val_score(quick(epochs=12), X, y, cv=folds).min() > 0.95


@pytest.mark.long
def test_a_pipeline_in_a_search_over_objectives_and_options():
    X, y = iris()
    pipeline = make_pipeline(MinMaxScaler(), quick(epochs=20, taxonomy=TREE))
    grid = [
        {"kinclassifier__objective": ["one-hot", "hierarchical"]},
        {
            "kinclassifier__objective": ["label-smoothing"],
            "kinclassifier__options": [{"smoothing": 0.1}, {"smoothing": np.float64(1.0)}],
            "kinclassifier__epochs": np.array([20]),
        },
    ]
    search = GridSearchCV(pipeline, grid, cv=StratifiedKFold(2, shuffle=True, random_state=0)).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[:3].min() > 0.8
    assert scores[3] < 0.6  # smoothed all the way, nothing is learned
    assert search.best_estimator_[-1].taxonomy_.classes == ("cat", "dog", "ship")


def test_clone_keeps_what_was_asked_and_nothing_that_was_learned():
    model = quick("hierarchical", taxonomy=TREE, options={"targets": "leaf"}, epochs=1).fit(*iris())
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")


@pytest.mark.long
@pytest.mark.parametrize("objective", ["retrospection", "adaptive-labels", "hierarchical"])
def test_a_fitted_model_survives_joblib(tmp_path: Path, objective: str):
    X, y = iris()
    model = quick(objective, taxonomy=TREE, epochs=3).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.taxonomy_ == model.taxonomy_
    assert np.array_equal(loaded.fit(X, y).predict_proba(X), model.predict_proba(X))


def test_a_model_from_a_gpu_is_pickled_for_any_machine():
    skip_unless(torch.cuda.is_available(), "a GPU", "gpu")
    X, y = iris()
    model = quick(device="cuda").fit(X, y)
    assert next(model.model_.parameters()).is_cuda
    loaded = pickle.loads(pickle.dumps(model))
    assert not next(loaded.model_.parameters()).is_cuda
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-4)


# Bad input


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"objective": "label-embeding"}, "objective: expected one of .* Did you mean 'label-embedding'"),
        ({"objective": None}, "objective: expected one of"),
        (
            {"options": {"smoothin": 0.1}, "objective": "label-smoothing"},
            "no option 'smoothin'. Did you mean 'smoothing'",
        ),
        ({"options": ["smoothing"]}, "options: expected a mapping"),
        ({"device": "gpu0"}, "device: expected one of 'cpu'"),
        ({"backbone": "mpl"}, "no backbone 'mpl'.*Did you mean 'mlp'"),
        ({"backbone": "tiny-cnn"}, "expected images"),
        ({"epochs": 0}, "epochs: expected a whole number"),
        ({"lr": -1.0}, "lr: expected a number"),
        ({"optimizer": "adm"}, "optimizer: .* Did you mean 'adam'"),
        ({"taxonomy": "cifar"}, "taxonomy: 'cifar' is neither a file nor one of .* Did you mean 'cifar10"),
        ({"taxonomy": Taxonomy.from_nested(["cat", "dog", "ships"])}, "no node 'ship' .similar: 'ships'"),
    ],
)
def test_bad_parameters_are_named_when_it_is_fitted(params: dict[str, Any], sentence: str):
    with pytest.raises(InputError, match=sentence):
        quick(**{"objective": "one-hot", **params}).fit(*iris())


def test_one_class_is_refused():
    X, y = iris()
    with pytest.raises(InputError, match="at least two classes, got 1 class"):
        quick().fit(X, np.full(150, "cat"))
    with pytest.raises(InputError, match="at least two classes"):
        quick().fit(X, y, sample_weight=y == "cat")


def test_scikit_learn_is_imported_for_the_estimator_alone():
    code = "import sys, labelkin; assert 'KinClassifier' in dir(labelkin); assert not {'sklearn', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scikit_learn_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "labelkin.doors._sklearn")
    with pytest.raises(ImportError, match=r"pip install 'labelkin\[sklearn\]'"):
        labelkin.KinClassifier  # noqa: B018


def test_what_follows_from_the_data_is_no_option():
    X, y = iris()
    for options in ({"classes": 5}, {"features": 5}):
        with pytest.raises(InputError, match=rf"OneHot has no option '{next(iter(options))}'"):
            quick("one-hot", options=options).fit(X, y)


def test_a_taxonomy_may_be_nested_names():
    X, y = iris()
    names = [str(name) for name in np.unique(y)]
    nested = {"a": names[:2], "b": names[2:]}
    assert quick("hierarchical", taxonomy=nested, epochs=1).fit(X, y).taxonomy_ == Taxonomy.from_nested(nested)


@pytest.fixture(scope="module")
def calibrated() -> KinClassifier:
    X, y = load_digits(return_X_y=True)
    return KinClassifier("one-hot", epochs=2, calibration=0.1, random_state=0).fit(X, y)


@pytest.mark.long
def test_probabilities_are_calibrated_on_samples_that_were_held_out(calibrated: KinClassifier):
    X, y = load_digits(return_X_y=True)
    part = calibration_part(torch.from_numpy(y), 0.1, seed=0)
    rest = KinClassifier("one-hot", epochs=2, calibration=0, random_state=0).fit(X[part.rest], y[part.rest])
    scores = torch.from_numpy(rest.decision_function(X))
    np.testing.assert_allclose(calibrated.decision_function(X), scores, atol=1e-5)
    expected = fit_calibration(rest.model_.objective, scores[part.part], torch.from_numpy(y)[part.part]).temperature
    assert (rest.temperature_, abs(expected - 1) > 0.05) == (1, True)
    assert calibrated.temperature_ == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(calibrated.predict_proba(X), torch.softmax(scores / expected, -1), atol=1e-4)
    np.testing.assert_allclose(np.exp(calibrated.predict_log_proba(X)), calibrated.predict_proba(X), atol=1e-6)


def test_samples_labeled_with_inner_nodes_are_not_held_out():
    place = np.array([0] * 300 + [1] * 300 + [2] * 300)
    held = held_out_rows(place, np.array([False, True, False]), 0.5)
    assert (held[:300].sum(), held[300:600].sum(), held[600:].sum()) == (150, 0, 150)
    assert not held_out_rows(place, np.array([False, True, False]), 0).any()


@pytest.mark.long
def test_least_cost_decisions_follow_the_taxonomy(calibrated: KinClassifier):
    X, y = load_digits(return_X_y=True)
    tree = {"round": ["0", "6", "8", "9"], "straight": ["1", "4", "7"], "open": ["2", "3", "5"]}
    model = KinClassifier("one-hot", taxonomy=tree, epochs=1, calibration=0.1, decide="crm", random_state=0).fit(X, y)
    expected = model.predict_proba(X).astype(np.float64) @ model.taxonomy_.distance("height")
    assert (expected[np.arange(len(X)), model.predict(X)] <= expected.min(1) + 1e-6).all()
    assert (model.predict(X) != model.predict_proba(X).argmax(1)).any()
    with pytest.raises(InputError, match="'crm' needs a taxonomy"):
        KinClassifier(decide="crm").fit(X, y)
    with pytest.raises(InputError, match="'crm' needs probabilities"):
        KinClassifier("static-labels", taxonomy=tree, decide="crm").fit(X, y)
    with pytest.raises(InputError, match="decide: expected"):
        KinClassifier(decide="best").fit(X, y)
