"""Answers that are not classes in scikit-learn, such as "ask a person": `LeastCostClassifier` and the scorers."""

# ruff: noqa: N806  (X is scikit-learn's own name)

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelkin import InputError
from labelkin.doors import KinClassifier, LeastCostClassifier, mean_cost_scorer

NAMES = np.array(["ship", "cat", "dog"])  # of iris; sorted: cat, dog, ship
COSTS = {
    "cat": {"dog": 10, "ask": 1, "ship": 4, "wait": 3},
    "dog": {"cat": 1, "ship": 9, "wait": 0.5, "ask": 1},
    "ship": {"cat": 2, "dog": 0.5, "ask": 1, "wait": 3},
}
MATRIX = np.array([[0, 10, 4, 1, 3], [1, 0, 9, 1, 0.5], [2, 0.5, 0, 1, 3]])  # the same: cat, dog, ship, ask, wait


def iris(labels: Any = NAMES) -> tuple[np.ndarray, np.ndarray]:
    """Two columns only, so that there are mistakes."""
    X, y = load_iris(return_X_y=True)
    return X[:, :2], labels[y]


def test_actions_are_chosen_as_a_loop_does():
    """They were dropped without a word: the samples that had to go to a person got a class."""
    X, y = iris()
    model = LeastCostClassifier(GaussianNB(), costs=COSTS).fit(X, y)
    assert model.classes_.tolist() == ["cat", "dog", "ship"]
    assert model.answers_.tolist() == ["cat", "dog", "ship", "ask", "wait"]
    assert model.predict_proba(X).shape == (150, 3)
    expected = [[sum(p * MATRIX[t, a] for t, p in enumerate(row)) for a in range(5)] for row in model.predict_proba(X)]
    np.testing.assert_allclose(model.expected_costs(X), expected, atol=1e-12)
    decided = model.predict(X).tolist()
    assert decided == [model.answers_[int(np.argmin(row))] for row in expected]
    assert set(decided) == {"cat", "dog", "ship", "ask", "wait"}
    assert model.score(X, y) == np.mean(np.array(decided) == y)  # an action is no right answer


def test_a_column_of_a_class_that_y_lacks_is_no_action():
    X, y = iris()
    wider = {true: {**row, "horse": 0} for true, row in COSTS.items()} | {"horse": {"zebra": 1}}
    model = LeastCostClassifier(GaussianNB(), costs=wider).fit(X, y)
    assert model.answers_.tolist() == ["cat", "dog", "ship", "ask", "wait"]


def test_without_actions_the_answers_are_the_classes():
    X, y = iris(np.array([10, 20, 30]))
    model = LeastCostClassifier(GaussianNB()).fit(X, y)
    assert model.answers_ is model.classes_
    assert model.predict(X).dtype == y.dtype


def test_classes_that_are_numbers_stay_numbers():
    X, y = iris(np.array([10, 20, 30]))
    costs = {10: {20: 10, 30: 4, "ask": 1}, 20: {10: 1, 30: 9, "ask": 1}, 30: {10: 2, 20: 0.5, "ask": 1}}
    model = LeastCostClassifier(GaussianNB(), costs=costs).fit(X, y)
    found = model.predict(X).tolist()
    assert set(found) == {10, 20, 30, "ask"}
    paid = [0 if true == answer else costs[true][answer] for true, answer in zip(y.tolist(), found, strict=True)]
    assert mean_cost_scorer(costs=costs)(model, X, y) == pytest.approx(-np.mean(paid))


def test_the_scorer_pays_for_actions():
    X, y = iris()
    model = LeastCostClassifier(GaussianNB(), costs=COSTS).fit(X, y)
    paid = [COSTS[true].get(answer, 0) for true, answer in zip(y, model.predict(X), strict=True)]
    assert mean_cost_scorer(costs=COSTS)(model, X, y) == pytest.approx(-np.mean(paid))
    everything = {true: {**row, "ask": 0} for true, row in COSTS.items()}
    only = LeastCostClassifier(GaussianNB(), costs=everything).fit(X, y)
    assert mean_cost_scorer(costs=everything)(only, X, y) == 0  # no answer is a class
    pipeline = make_pipeline(StandardScaler(), LeastCostClassifier(GaussianNB()))
    grid = {"leastcostclassifier__costs": [None, COSTS]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring=mean_cost_scorer(costs=COSTS)).fit(X, y)
    assert search.best_params_["leastcostclassifier__costs"] == COSTS


def test_a_table_of_pandas_may_have_actions():
    pandas = pytest.importorskip("pandas")
    X, y = iris()
    table = pandas.DataFrame(MATRIX, ["cat", "dog", "ship"], ["cat", "dog", "ship", "ask", "wait"])
    by_name = LeastCostClassifier(GaussianNB(), costs=COSTS).fit(X, y).predict(X)
    model = LeastCostClassifier(GaussianNB(), costs=table).fit(X, y)
    assert model.predict(X).tolist() == by_name.tolist()
    assert mean_cost_scorer(costs=table)(model, X, y) == mean_cost_scorer(costs=COSTS)(model, X, y)


def test_a_file_of_costs_is_that_of_the_commands(tmp_path: Path):
    X, y = iris()
    answers = ("wait", "dog", "cat", "ask", "ship", "horse")
    rows = {**{true: {true: 0, "horse": 9, **row} for true, row in COSTS.items()}, "horse": dict.fromkeys(answers, 9)}
    rows["horse"]["horse"] = 0
    lines = [",".join([true, *(str(row[answer]) for answer in answers)]) for true, row in rows.items()]
    (tmp_path / "costs.csv").write_text("\n".join([",".join(["", *answers]), *lines]))
    model = LeastCostClassifier(GaussianNB(), costs=tmp_path / "costs.csv").fit(X, y)
    assert model.answers_.tolist() == ["cat", "dog", "ship", "wait", "ask"]  # y has no horse
    assert model.predict(X).tolist() == LeastCostClassifier(GaussianNB(), costs=COSTS).fit(X, y).predict(X).tolist()
    scorer = mean_cost_scorer(costs=str(tmp_path / "costs.csv"))
    assert scorer(model, X, y) == mean_cost_scorer(costs=COSTS)(model, X, y)
    (tmp_path / "costs.csv").unlink()
    assert clone(model).get_params()["costs"] == tmp_path / "costs.csv"
    with pytest.raises(InputError, match="costs: there is no file"):
        clone(model).fit(X, y)


def test_a_network_decides_with_actions_inside_it():
    X, y = iris()
    network = KinClassifier("one-hot", epochs=20, lr=0.02, random_state=0)
    costs = {true: {answer: 1 if answer in NAMES else 0.1 for answer in row} for true, row in COSTS.items()}
    model = LeastCostClassifier(network, costs=costs, cv=2).fit(X, y)
    likely = model.predict_proba(X)
    expected = np.where(likely.max(1) < 0.9, "ask", model.classes_[likely.argmax(1)])
    assert model.predict(X).tolist() == expected.tolist()
    assert {"ask", "ship"} <= set(expected)


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (
            MATRIX,
            r"got \(3, 5\); give them by class name if some classes may be missing, or if some answers are not classes",
        ),
        ({**COSTS, "dog": {"cat": 1, "ship": 9, "ask": 1}}, "cost of the answer 'wait' for the true class 'dog'"),
    ],
    ids=["no names", "no cost"],
)
def test_actions_without_a_name_or_a_cost_are_refused(costs: Any, sentence: str):
    X, y = iris()
    with pytest.raises(InputError, match=sentence):
        LeastCostClassifier(GaussianNB(), costs=costs).fit(X, y)
