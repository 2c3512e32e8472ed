"""NAA against its equations written out, on random data and on real digits."""

import math

import pytest
import torch
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from sklearn.datasets import load_digits

from labelkin._checks import InputError
from labelkin.functional import _naa as naa
from support.memory import LargestTensor


def samples(classes=4, features=5, count=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    activations = torch.randn(count, features, generator=generator, dtype=torch.float64)
    targets = torch.cat([torch.arange(classes), torch.randint(classes, (count - classes,), generator=generator)])
    return activations + targets[:, None] / 3, targets


def literal_correlations(activations, targets, classes):
    """000 Eq. 5 entry by entry: Z holds features in rows and samples in columns."""
    found = []
    for k in range(classes):
        columns = [z.tolist() for z, y in zip(activations, targets, strict=True) if y == k]
        features = range(len(columns[0]))
        found.append([[sum(z[a] * z[b] for z in columns) / len(columns) for b in features] for a in features])
    return found


def literal_trace(left, right):
    features = range(len(left))
    return sum(sum(left[a][b] * right[b][a] for b in features) for a in features)


def literal_distance(activations, targets, classes):
    """000 Eq. 6-7 with the traces written out."""
    r = literal_correlations(activations, targets, classes)
    own = [literal_trace(m, m) for m in r]
    return [
        [1 - literal_trace(r[i], r[j]) / math.sqrt(own[i] * own[j]) for j in range(classes)] for i in range(classes)
    ]


def close(actual, expected, atol=1e-12):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=torch.float64), atol=atol, rtol=0)


def test_correlations_are_equation_5():
    activations, targets = samples()
    close(naa.class_correlations(activations, targets, 4), literal_correlations(activations, targets, 4))


@pytest.mark.parametrize("form", naa.FORMS)
@pytest.mark.parametrize(("classes", "features", "count"), [(2, 1, 6), (4, 5, 40), (3, 30, 9)])
def test_distance_is_equation_7(form, classes, features, count):
    activations, targets = samples(classes, features, count)
    close(naa.naa_distance(activations, targets, classes, form), literal_distance(activations, targets, classes))


def test_generalised_cosine_by_eigenvectors():
    """Jaeger's form, 000 Eq. 8: |S_i^1/2 U_i^T U_j S_j^1/2|^2 / (|diag S_i| |diag S_j|)."""
    activations, targets = samples()
    r = naa.class_correlations(activations, targets, 4)
    values, axes = torch.linalg.eigh(r)
    for i in range(4):
        for j in range(4):
            root = values[i].sqrt()[:, None] * (axes[i].T @ axes[j]) * values[j].sqrt()
            expected = (root.square().sum() / (values[i].norm() * values[j].norm())).item()
            assert naa.naa_similarity(r)[i, j].item() == pytest.approx(expected, abs=1e-12)


def test_both_forms_agree_on_real_digits():
    digits = load_digits()
    images, targets = torch.tensor(digits.images, dtype=torch.float32), torch.tensor(digits.target)
    by_features = naa.naa_distance(images, targets, 10, "correlation")
    by_samples = naa.naa_distance(images, targets, 10, "gram")
    close(by_features, by_samples)
    assert torch.equal(by_samples, by_samples.T)
    assert torch.equal(by_features, by_features.T)
    assert linkage(squareform(by_features.numpy()), "average").shape == (9, 4)
    off = by_features[~torch.eye(10, dtype=torch.bool)]
    assert 0 < off.min() < off.max() < 1


def test_gram_form_works_in_blocks(monkeypatch):
    activations, targets = samples()
    whole = naa.naa_similarity_gram(activations, targets, 4)
    monkeypatch.setattr(naa, "GRAM_ENTRIES", 25)
    close(naa.naa_similarity_gram(activations, targets, 4), whole)


@pytest.mark.parametrize(
    ("count", "features", "classes", "form"),
    [(10_000, 64, 10, "correlation"), (300, 2_000, 10, "gram"), (50_000, 2_000, 100, "gram")],
)
def test_auto_takes_the_cheaper_form(count, features, classes, form):
    assert naa._cheaper(count, features, classes) == form


def test_gram_form_makes_nothing_of_feature_by_feature():
    activations, targets = samples(3, 2_000, 30)
    with LargestTensor() as memory:
        naa.naa_distance(activations, targets, 3)
    assert memory.numel <= activations.numel()


@pytest.mark.parametrize("form", ["correlation", "gram"])
def test_a_class_of_zeros_is_far_from_all_but_itself(form):
    activations, targets = samples()
    activations[(targets == 1) | (targets == 2)] = 0
    distance = naa.naa_distance(activations, targets, 4, form)
    assert torch.equal(distance[1], torch.tensor([1.0, 0, 1, 1], dtype=torch.float64))
    assert torch.equal(distance[:, 2], torch.tensor([1.0, 1, 0, 1], dtype=torch.float64))
    kept = (targets == 0) | (targets == 3)
    left = literal_distance(activations[kept], (targets[kept] == 3).long(), 2)
    assert distance[0, 3].item() == pytest.approx(left[0][1], abs=1e-12)


@pytest.mark.parametrize("form", ["correlation", "gram"])
@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_scale_of_a_class_changes_nothing(form, scale):
    activations, targets = samples()
    scaled = torch.where(targets[:, None] == 2, activations * scale, activations)
    close(naa.naa_distance(scaled, targets, 4, form), naa.naa_distance(activations, targets, 4, form))


@pytest.mark.parametrize("form", ["correlation", "gram"])
def test_sample_order_and_class_names_do_not_matter(form):
    activations, targets = samples()
    distance = naa.naa_distance(activations, targets, 4, form)
    shuffled = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    close(naa.naa_distance(activations[shuffled], targets[shuffled], 4, form), distance)
    renamed = torch.tensor([2, 0, 3, 1])
    moved = naa.naa_distance(activations, renamed[targets], 4, form)
    close(moved[renamed][:, renamed], distance)


def test_half_precision_is_computed_in_double():
    activations, targets = samples()
    coarse = (activations * 1000).half()  # squares overflow half
    close(naa.naa_distance(coarse, targets, 4), literal_distance(coarse.double(), targets, 4))


def test_target_distance_is_one_minus_squared_cosine():
    targets = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])
    rows = targets.double().tolist()
    expected = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            inner = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
            norms = sum(a * a for a in rows[i]) * sum(b * b for b in rows[j])
            expected[i][j] = 1 - inner**2 / norms
    close(naa.target_distance(targets), expected)
    one_hot = naa.target_distance(torch.eye(5))
    assert torch.equal(one_hot, 1 - torch.eye(5, dtype=torch.float64))


FINE = torch.ones(4, 3)
LABELS = torch.tensor([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("activations", "targets", "classes", "sentence"),
    [
        (FINE, LABELS, 4, "no sample of class 2, 3"),
        (FINE, LABELS, 1, "positions from 0 to 0, got 1"),
        (FINE, LABELS - 1, 2, "positions from 0 to 1, got -1"),
        (FINE, LABELS.float(), 2, "whole numbers, got torch.float32"),
        (FINE, LABELS[:3], 2, r"got shapes \(4, 3\) and \(3,\)"),
        (FINE[0], LABELS[:3], 2, r"got shapes \(3,\)"),
        (FINE * torch.nan, LABELS, 2, "finite"),
        (FINE[:0], LABELS[:0], 2, "no sample of class 0, 1"),
        (FINE, LABELS, 0, "classes: expected a whole number of at least 1"),
    ],
)
def test_bad_samples_are_refused(activations, targets, classes, sentence):
    for form in naa.FORMS:
        with pytest.raises(InputError, match=sentence):
            naa.naa_distance(activations, targets, classes, form)


def test_other_bad_input_is_refused():
    with pytest.raises(InputError, match=r"form: expected one of .* Did you mean 'gram'"):
        naa.naa_distance(FINE, LABELS, 2, "grem")
    with pytest.raises(InputError, match=r"expected \(K, F, F\), got shape \(4, 3\)"):
        naa.naa_similarity(FINE)
    with pytest.raises(InputError, match=r"got shape \(4,\)"):
        naa.target_distance(LABELS)
