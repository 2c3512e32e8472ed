"""Least-cost decisions of any scikit-learn classifier, and the scorers: scikit-learn's own checks, loops, reductions."""

# ruff: noqa: N806  (X is scikit-learn's own name)

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelkin import InputError, KinClassifier, Taxonomy, doors
from labelkin.doors import LeastCostClassifier, hierarchical_f1_scorer, mean_cost_scorer

NAMES = np.array(["ship", "cat", "dog"])  # of iris; sorted: cat, dog, ship
TREE = {"animal": ["dog", "cat"], "thing": ["ship", "car"]}
COSTS = {"cat": {"dog": 10, "ship": 4}, "dog": {"cat": 1, "ship": 9}, "ship": {"cat": 2, "dog": 0.5}}
MATRIX = np.array([[0, 10, 4], [1, 0, 9], [2, 0.5, 0]])  # the same, in the order of the classes
CHECK_LABELS = [str(number) for whole in range(-1, 10) for number in (whole, float(whole))]  # of scikit-learn's checks
CHECK_TREE = {"first": CHECK_LABELS[:9], "second": [*CHECK_LABELS[9:], "one", "two", "three", "eggs", "spam", "a", "b"]}


def iris(labels: Any = NAMES) -> tuple[np.ndarray, np.ndarray]:
    """Two columns only, so that there are mistakes."""
    X, y = load_iris(return_X_y=True)
    return X[:, :2], labels[y]


def bayes(**params: Any) -> LeastCostClassifier:
    return LeastCostClassifier(GaussianNB(), **params)


@pytest.mark.long
@parametrize_with_checks(
    [
        LeastCostClassifier(LogisticRegression()),
        LeastCostClassifier(LinearSVC()),
        LeastCostClassifier(GaussianNB(), taxonomy=CHECK_TREE, cv=3),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator: LeastCostClassifier, check: Any):
    check(estimator)


# Calibration


@pytest.mark.long
@pytest.mark.parametrize("classifier", [GaussianNB(), LogisticRegression()], ids=["overconfident", "regular"])
def test_probabilities_are_those_of_scikit_learns_temperature_scaling(classifier: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("labelkin.doors._least_cost.PRIOR", None)
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    theirs = CalibratedClassifierCV(classifier, method="temperature", cv=5, ensemble=False).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(LeastCostClassifier(classifier).fit(X, y).predict_proba(X), theirs, atol=1e-6)


def test_the_temperature_is_the_best_on_samples_the_classifier_did_not_see():
    X, y = iris()
    model = bayes().fit(X, y)
    probs = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    true = np.searchsorted(model.classes_, y)

    def loss(temperature: float) -> float:
        sharp = probs ** (1 / temperature)
        return -np.log(sharp[np.arange(150), true] / sharp.sum(1)).sum() + np.log(temperature) ** 2 / 2

    grid = [loss(model.temperature_ * factor) for factor in (0.9, 0.999, 1, 1.001, 1.1)]
    assert min(grid) == grid[2]


def test_samples_that_are_all_right_do_not_lead_to_certainty():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]  # two classes that a line separates
    model = LeastCostClassifier(LogisticRegression()).fit(X, y)
    assert (model.predict(X) == y).all()
    assert model.temperature_ > 0.05


@pytest.mark.long
def test_a_class_of_one_sample_stays_a_class():
    X, y = iris()
    y = y.astype(object)
    y[0] = "unicorn"
    with pytest.warns(UserWarning, match="least populated class"):
        model = LeastCostClassifier(LogisticRegression(max_iter=1000)).fit(X, y)
    assert model.classes_.tolist() == ["cat", "dog", "ship", "unicorn"]
    assert np.isfinite(model.predict_proba(X)).all()
    without = LeastCostClassifier(LogisticRegression()).fit(X[1:], y[1:])
    assert model.temperature_ == pytest.approx(without.temperature_, rel=0.2)


def test_a_probability_of_zero_does_not_end_the_calibration():
    X, y = iris()
    forest = RandomForestClassifier(5, random_state=0)
    assert (forest.fit(X, y).predict_proba(X) == 0).any()
    model = LeastCostClassifier(forest, taxonomy=TREE).fit(X, y)
    assert 1 < model.temperature_ < 100


def test_a_trained_classifier_is_calibrated_on_other_samples():
    X, y = iris()
    trained = GaussianNB().fit(X[::2], y[::2])
    model = LeastCostClassifier(FrozenEstimator(trained), taxonomy=TREE).fit(X[1::2], y[1::2])
    assert np.array_equal(model.estimator_.predict(X), trained.predict(X))
    rare = LeastCostClassifier(FrozenEstimator(trained), cv=2).fit(X[1:100:2], y[1:100:2])  # no dog among them
    assert rare.classes_.tolist() == ["cat", "dog", "ship"]


def test_weights_reach_the_classifier_and_the_calibration():
    X, y = iris()
    weight = np.where(y == "dog", 5, 1)
    model = bayes().fit(X, y, sample_weight=weight)
    assert model.predict_proba(X)[:, 1].mean() > bayes().fit(X, y).predict_proba(X)[:, 1].mean()
    splits = list(StratifiedKFold(3).split(X, y))
    place = np.repeat(np.arange(150), weight)
    repeated = [tuple(np.flatnonzero(np.isin(place, part)) for part in split) for split in splits]
    given = bayes(cv=splits).fit(X, y, sample_weight=weight)
    written_out = bayes(cv=repeated).fit(X[place], y[place])
    assert given.temperature_ == pytest.approx(written_out.temperature_, rel=1e-9)
    assert np.allclose(given.predict_proba(X), written_out.predict_proba(X))


# Decisions


@pytest.mark.parametrize(
    "params", [{"costs": COSTS}, {"taxonomy": TREE}, {"taxonomy": TREE, "distance": "edges"}], ids=str
)
def test_expected_costs_by_loops(params: dict[str, Any]):
    X, y = iris()
    model = bayes(**params).fit(X, y)
    tree = Taxonomy.from_nested(TREE).restrict(["cat", "dog", "ship"])
    costs = MATRIX if "costs" in params else tree.distance(params.get("distance", "height"))
    probs, expected = model.predict_proba(X), np.zeros((150, 3))
    for sample in range(150):
        for answer in range(3):
            for true in range(3):
                expected[sample, answer] += probs[sample, true] * costs[true, answer]
    np.testing.assert_allclose(model.expected_costs(X), expected, atol=1e-12)
    assert model.predict(X).tolist() == [model.classes_[row.argmin()] for row in expected]


def test_without_costs_the_decision_is_the_most_probable_class():
    X, y = iris()
    for method in ("temperature", "none"):
        model = bayes(method=method).fit(X, y)
        assert np.array_equal(model.predict(X), GaussianNB().fit(X, y).predict(X))
    assert model.temperature_ == 1
    np.testing.assert_allclose(model.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X), atol=1e-9)


def test_costs_by_name_are_those_in_the_order_of_the_classes():
    X, y = iris()
    backwards = {true: dict(reversed(row.items())) for true, row in reversed(COSTS.items())}
    expected = bayes(costs=MATRIX).fit(X, y).expected_costs(X)
    for costs in (COSTS, backwards, {**COSTS, "horse": {}}):
        assert np.array_equal(bayes(costs=costs).fit(X, y).expected_costs(X), expected)
    transposed = bayes(costs=MATRIX.T).fit(X, y)
    assert not np.allclose(transposed.expected_costs(X), expected)


def test_costs_may_be_a_table_of_pandas():
    pandas = pytest.importorskip("pandas")
    X, y = iris()
    table = pandas.DataFrame(MATRIX, ["cat", "dog", "ship"], ["cat", "dog", "ship"]).iloc[::-1, [1, 0, 2]]
    expected = bayes(costs=MATRIX).fit(X, y).expected_costs(X)
    assert np.array_equal(bayes(costs=table).fit(X, y).expected_costs(X), expected)
    assert mean_cost_scorer(costs=table)(bayes().fit(X, y), X, y) == mean_cost_scorer(costs=COSTS)(
        bayes().fit(X, y), X, y
    )


def test_a_table_of_pandas_with_a_name_twice_is_refused():
    pandas = pytest.importorskip("pandas")
    X, y = iris()
    for names, says in (
        (["cat", "cat", "ship"], "index: duplicate name 'cat'"),
        (["cat", "dog", "ship"], "columns: dup"),
    ):
        with pytest.raises(InputError, match=says):
            bayes(costs=pandas.DataFrame(MATRIX, names, ["cat", "dog", "dog"])).fit(X, y)


def test_numbers_as_labels_may_be_named_by_text():
    X, y = iris(np.array([10, 20, 30]))
    by_text = bayes(costs={"10": {"20": 1, "30": 2}, "20": {"10": 1, "30": 5}, "30": {"10": 1, "20": 1}}).fit(X, y)
    assert by_text.costs_.tolist() == [[0, 1, 2], [1, 0, 5], [1, 1, 0]]
    assert by_text.predict(X).dtype == y.dtype


def test_other_names_for_the_classes_change_no_decision():
    X, y = iris()
    other = {"cat": "z", "dog": "a", "ship": "m"}
    renamed = {other[true]: {other[answer]: cost for answer, cost in row.items()} for true, row in COSTS.items()}
    ours = bayes(costs=COSTS).fit(X, y).predict(X)
    theirs = bayes(costs=renamed).fit(X, np.array([other[label] for label in y])).predict(X)
    assert [other[label] for label in ours] == theirs.tolist()


@pytest.mark.long
def test_decisions_cost_less_than_the_most_probable_classes():
    X, y = load_digits(return_X_y=True)
    tree = {"straight": ["1", "4", "7"], "round": ["0", "6", "8", "9"], "open": ["2", "3", "5"]}
    scorer = mean_cost_scorer(taxonomy=tree)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    plain, decided = (
        cross_val_score(model, X, y, cv=folds, scoring=scorer).mean()
        for model in (GaussianNB(), LeastCostClassifier(GaussianNB(), taxonomy=tree))
    )
    assert decided > plain


@pytest.mark.parametrize("labels", [NAMES, np.array(["ship", "cat", "cat"])], ids=["three classes", "two classes"])
def test_scores_serve_where_there_are_no_probabilities(labels: np.ndarray):
    X, y = iris(labels)
    model = LeastCostClassifier(LinearSVC(), taxonomy=TREE).fit(X, y)
    assert not hasattr(LinearSVC(), "predict_proba")
    assert np.allclose(model.predict_proba(X).sum(1), 1)
    scores = LinearSVC().fit(X, y).decision_function(X)
    best = scores.argmax(1) if scores.ndim == 2 else (scores > 0).astype(int)
    assert np.array_equal(model.predict_proba(X).argmax(1), best)


def test_texts_go_to_the_classifier_as_they_are():
    texts = ["a purring kitten", "the cat purrs", "a barking puppy", "dogs bark", "sails and masts", "the sails"] * 4
    y = ["cat", "cat", "dog", "dog", "ship", "ship"] * 3 + ["cat", "dog", "cat", "dog", "ship", "ship"]
    model = LeastCostClassifier(make_pipeline(CountVectorizer(), MultinomialNB()), taxonomy=TREE, cv=4).fit(texts, y)
    assert model.predict(["purring cat", "sails"]).tolist() == ["cat", "ship"]


@pytest.mark.long
def test_labels_of_inner_nodes_do_not_calibrate():
    X, y = iris()
    y = np.where(np.arange(150) % 3 == 0, np.where(y == "ship", y, "animal"), y)
    inner = KinClassifier("hierarchical", taxonomy=TREE, epochs=2, random_state=0)
    model = LeastCostClassifier(inner, taxonomy=TREE, cv=2).fit(X, y)
    assert model.classes_.tolist() == ["cat", "dog", "ship"]


# Scorers


def test_the_mean_cost_by_a_loop():
    X, y = iris()
    model = GaussianNB().fit(X, y)
    tree = Taxonomy.from_nested(TREE)
    far = {
        (a, b): tree.distance("height")[i, j] for i, a in enumerate(tree.classes) for j, b in enumerate(tree.classes)
    }
    paid, distances, weighted, weights = 0.0, 0.0, 0.0, np.arange(150) % 4
    for sample, (true, answer) in enumerate(zip(y, model.predict(X), strict=True)):
        cost = COSTS[true].get(answer, 0)
        paid, distances = paid + cost / 150, distances + far[true, answer] / 150
        weighted += cost * weights[sample] / weights.sum()
    assert mean_cost_scorer(costs=COSTS)(model, X, y) == pytest.approx(-paid)
    assert mean_cost_scorer(costs=MATRIX)(model, X, y) == pytest.approx(-paid)
    assert mean_cost_scorer(costs=COSTS)(model, X, y, sample_weight=weights) == pytest.approx(-weighted)
    assert mean_cost_scorer(taxonomy=tree)(model, X, y) == pytest.approx(-distances)


def test_hierarchical_f1_by_a_loop_and_with_inner_nodes():
    X, y = iris()
    above = {"cat": {"cat", "animal"}, "dog": {"dog", "animal"}, "ship": {"ship", "thing"}, "animal": {"animal"}}
    model = GaussianNB().fit(X, y)
    for truth in (y, np.where(np.arange(150) % 5 == 0, np.where(y == "ship", y, "animal"), y)):
        pairs = [(above[true], above[answer]) for true, answer in zip(truth, model.predict(X), strict=True)]
        shared = sum(len(true & answer) for true, answer in pairs)
        f1 = 2 * shared / sum(len(true) + len(answer) for true, answer in pairs)
        assert hierarchical_f1_scorer(TREE)(model, X, truth) == pytest.approx(f1)


@pytest.mark.long
def test_a_search_takes_the_scorers():
    X, y = iris()
    scorers = {"cost": mean_cost_scorer(costs=COSTS), "f1": hierarchical_f1_scorer(TREE)}
    grid = {"estimator__C": [0.01, 1.0], "costs": [None, COSTS]}
    search = GridSearchCV(
        LeastCostClassifier(LogisticRegression(), cv=2),
        grid,
        cv=2,
        scoring=pickle.loads(pickle.dumps(scorers)),
        refit="cost",
    ).fit(X, y)
    found = search.cv_results_["mean_test_cost"]
    assert search.best_params_["costs"] == COSTS
    assert found.max() == found[list(search.cv_results_["params"]).index(search.best_params_)]
    assert search.cv_results_["mean_test_f1"].max() > 0.8


def test_a_scorer_by_name_takes_a_class_that_was_not_seen():
    X, y = iris()
    two = GaussianNB().fit(X[y != "dog"], y[y != "dog"])
    answers = two.predict(X[y == "dog"])
    assert mean_cost_scorer(costs=COSTS)(two, X[y == "dog"], y[y == "dog"]) == pytest.approx(
        -np.mean([COSTS["dog"][answer] for answer in answers])
    )
    with pytest.raises(InputError, match=r"'dog'.* not among the classes"):
        mean_cost_scorer(costs=MATRIX[:2, :2])(two, X, y)


# Bad input


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"taxonomy": TREE, "costs": COSTS}, "either a taxonomy or costs, got both"),
        ({"costs": MATRIX[:2]}, r"expected shape \(3, 3\).*'cat', 'dog', 'ship', got \(2, 3\)"),
        ({"costs": {"cat": {}}}, "cost of the answer 'dog' for the true class 'cat'"),
        ({"costs": {"dog": {}}}, "a row of costs for the true class 'cat', got rows for 'dog'"),
        ({"costs": MATRIX * np.nan}, "got 9 NaN or infinite"),
        ({"costs": "cheap"}, "expected a .csv or .npz file, got 'cheap'"),
        ({"taxonomy": {"animal": ["cat", "dogs"]}}, "no node 'dog' .similar: 'dogs'"),
        ({"method": "isotonic"}, "method: expected one of 'temperature', 'none'"),
        ({"distance": "heigth"}, "Did you mean 'height'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params: dict[str, Any], sentence: str):
    X, y = iris()
    with pytest.raises(InputError, match=sentence):
        bayes(**params).fit(X, y)


def test_an_estimator_without_usable_scores_is_named():
    with pytest.raises(InputError, match="predict_proba or decision_function, got StandardScaler"):
        LeastCostClassifier(StandardScaler()).fit(*iris())
    X, y = load_digits(return_X_y=True)
    with pytest.raises(InputError, match="estimator: expected a classifier with predict_proba or decision_function"):
        LeastCostClassifier(_OnlyPredicts()).fit(X, y)
    with pytest.raises(InputError, match=r"one score for each of 10 classes .* got 45; use decision_function_shape"):
        LeastCostClassifier(SVC(decision_function_shape="ovo"), cv=2).fit(X[:300], y[:300])


def test_weights_that_a_classifier_does_not_take_are_refused():
    X, y = iris()
    with pytest.raises(InputError, match=r"Pipeline\.fit takes no sample_weight"):
        LeastCostClassifier(make_pipeline(Perceptron())).fit(X, y, sample_weight=np.ones(150))


def test_scorers_refuse_what_they_cannot_use():
    with pytest.raises(InputError, match="a taxonomy or costs, got neither"):
        mean_cost_scorer()
    with pytest.raises(InputError, match="got both"):
        mean_cost_scorer(taxonomy=TREE, costs=COSTS)
    with pytest.raises(InputError, match="from_wordnet"):
        hierarchical_f1_scorer("wordnet")


def test_without_scikit_learn_the_line_that_installs_it_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "labelkin.doors._least_cost")
    with pytest.raises(ImportError, match=r"pip install 'labelkin\[sklearn\]'"):
        doors.LeastCostClassifier  # noqa: B018


class _OnlyPredicts(DummyClassifier):
    predict_proba = property()  # type: ignore[assignment]
    predict_log_proba = property()  # type: ignore[assignment]
