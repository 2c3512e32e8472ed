"""Sparse features, such as TF-IDF, in the estimators."""

# ruff: noqa: N806  (X is scikit-learn's own name)

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from labelkin import Context, InputError, KinClassifier
from labelkin._sparse_rows import SparseRows, row_blocks
from labelkin.doors import LeastCostClassifier
from support.memory import LargestTensor

# The subjects of 20 Newsgroups in small: words of a group of its own, and words that its relatives use as well.
TREE = {"rec": ["autos", "hockey"], "sci": ["space", "crypt"]}
WORDS = {
    "autos": "car engine dealer wheel brake sedan mileage",
    "hockey": "puck goalie rink stick ice league coach",
    "space": "orbit rocket lunar shuttle probe launch planet",
    "crypt": "cipher key encrypt algorithm secret decode bits",
    "rec": "fun weekend team fast season",
    "sci": "research theory paper measure data",
}
COMMON = ["the", "a", "of", "to", "and", "in", "is", "it", "that", "was", "from", "some", "writes", "article"]


def texts(count: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    random = np.random.default_rng(seed)
    above = {name: group for group, names in TREE.items() for name in names}
    labels = random.choice(list(above), count)

    def words(label: str) -> list[str]:
        own, shared = WORDS[label].split(), WORDS[above[label]].split()
        return [*random.choice(own, 2), *random.choice(shared, 3), *random.choice(COMMON, 12)]

    return [" ".join(random.permutation(words(label))) for label in labels], labels


def quick(objective: str = "one-hot", **params: Any) -> KinClassifier:
    return KinClassifier(objective, **{"epochs": 4, "random_state": 0, "batch_size": 32, **params})


def tfidf(count: int = 160) -> tuple[Any, np.ndarray]:
    X, y = texts(count)
    return TfidfVectorizer().fit_transform(X), y


def test_texts_as_tfidf_are_classified():
    train, test = texts(400), texts(200, seed=1)
    pipeline = make_pipeline(TfidfVectorizer(), quick("hierarchical", taxonomy=TREE, decide="crm", epochs=10))
    assert pipeline.fit(*train).score(*test) > 0.9
    assert pipeline.predict_proba(test[0]).sum(1) == pytest.approx(1)
    assert cross_val_score(make_pipeline(TfidfVectorizer(), quick()), *train, cv=2).mean() > 0.8


@pytest.mark.long
@pytest.mark.parametrize("objective", ["one-hot", "hierarchical", "kin", "label-embedding", "adaptive-labels"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_features_give_the_same_network(objective: str, dtype: Any):
    X, y = tfidf(300)
    X = X.astype(dtype)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options = {"calibration": 0.4, "class_weight": "balanced"}
    dense = quick(objective, **options).fit(X.toarray(), y, weight)
    expected = dense.decision_function(X.toarray())
    assert dense.temperature_ != 1
    for form in (X, X.tocsc(), sparse.coo_array(X)):
        found = quick(objective, **options).fit(form, y, weight)
        tolerance = 1e-3 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(found.decision_function(form), expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(found.decision_function(X.toarray()), found.decision_function(form))
        np.testing.assert_array_equal(found.predict(form), dense.predict(X.toarray()))
        assert found.temperature_ == pytest.approx(dense.temperature_, rel=tolerance)
        assert found.n_features_in_ == X.shape[1]


def test_inner_nodes_and_a_tree_from_the_data_with_sparse_features():
    X, y = tfidf()
    y[::5] = np.where(np.isin(y[::5], TREE["rec"]), "rec", "sci")
    found = [quick("hierarchical", taxonomy=TREE).fit(form, y).predict_proba(X) for form in (X, X.toarray())]
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert quick("hierarchical").fit(X, tfidf()[1]).score(X, tfidf()[1]) > 0.9


def test_the_matrix_never_becomes_dense():
    rows, columns = 3_000, 4_000
    random = np.random.default_rng(0)
    X = sparse.random_array((rows, columns), density=0.002, format="csr", rng=random)
    y = random.integers(0, 3, rows)
    quick("hierarchical", epochs=1).fit(X[:90, :9], y[:90]).predict(X[:90, :9])  # imports what is imported late
    tracemalloc.start()  # sees what numpy makes
    with LargestTensor() as made:
        model = quick("hierarchical", epochs=1, batch_size=64).fit(X, y)  # builds its tree from the data
        model.predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.numel < rows * columns / 4
    assert peak < 8 * rows * columns / 4


def test_wrong_numbers_in_a_sparse_matrix_are_refused():
    X, y = tfidf()
    model = quick(epochs=1).fit(X, y)
    X.data[7] = np.nan
    for call in (lambda: model.predict(X), lambda: quick().fit(X, y)):
        with pytest.raises(ValueError, match="NaN"):
            call()
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])


def test_repeated_entries_of_a_sparse_matrix_are_sums():
    """A table of counts that is built word by word has an entry for each word; scikit-learn's deviation is of the entries."""
    column, rows = np.random.default_rng(0).integers(0, 4, 600), np.arange(0, 601, 5)
    X = sparse.csr_matrix((np.ones(600), column, rows), shape=(120, 4))
    y = np.where(X.toarray()[:, 0] > 1, "many", "few")
    assert not X.has_canonical_format
    model, dense = quick().fit(X, y), quick().fit(X.toarray(), y)
    np.testing.assert_allclose(model.scaler_.scale_, dense.scaler_.scale_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), dense.predict_proba(X.toarray()), rtol=1e-9)
    assert X.nnz == 600  # the caller's matrix is unchanged


def test_least_cost_passes_sparse_features_on():
    train, test = texts(300), texts(200, seed=1)
    vectorizer = TfidfVectorizer()
    X = vectorizer.fit_transform(train[0])
    costs = {true: {answer: float(true != answer) + 9 * (true == "crypt") for answer in WORDS} for true in WORDS}
    model = LeastCostClassifier(MultinomialNB(), costs=costs).fit(X, train[1], np.ones(300))
    assert model.temperature_ != 1
    found = model.predict_proba(vectorizer.transform(test[0]))
    np.testing.assert_allclose(found, model.predict_proba(vectorizer.transform(test[0]).tocsc()))
    assert (model.predict(vectorizer.transform(test[0])) == test[1]).mean() > 0.9
    assert model.__sklearn_tags__().input_tags.sparse
    assert quick().__sklearn_tags__().input_tags.sparse
    kin = LeastCostClassifier(quick("hierarchical", taxonomy=TREE), taxonomy=TREE, cv=2).fit(X, train[1])
    assert kin.score(vectorizer.transform(test[0]), test[1]) > 0.8


@pytest.mark.parametrize("width", [3, 600])
def test_trees_and_similarities_from_sparse_rows_are_those_from_a_tensor(width: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("labelkin.objectives._context.LDA_SAMPLES", 1_000)  # every other row
    matrix = sparse.random_array((2_500, width), density=0.2, format="csr", rng=np.random.default_rng(0))
    rows = SparseRows(matrix, lambda part: torch.from_numpy(part.toarray()), torch.float64)
    dense, targets = torch.from_numpy(matrix.toarray()), torch.arange(2_500) // 3 % 4
    assert torch.equal(torch.cat(list(row_blocks(rows))), dense)
    assert len(list(row_blocks(rows))) > 1
    some = torch.tensor([5, 3, 3])
    assert torch.equal(rows[some], dense[some])
    assert torch.equal(rows.take(dense[:, 0] > 0)[torch.arange(9)], dense[dense[:, 0] > 0][:9])
    names = ("a", "b", "c", "d")
    weights = torch.rand(2_500, generator=torch.Generator().manual_seed(0))
    found, expected = (Context(names, inputs=given, targets=targets, weights=weights) for given in (rows, dense))
    assert found._data is not None
    assert expected._data is not None
    assert found._data.tree.to_newick() == expected._data.tree.to_newick()
    np.testing.assert_allclose(found._data._class_means(), expected._data._class_means(), rtol=1e-12)
    torch.testing.assert_close(found._data.similarity, expected._data.similarity)
    with pytest.raises(InputError, match="expected a tensor"):
        Context(names, inputs=matrix, targets=targets)
