"""Label vectors and confusions by hand: neighbours, points, shapes, costs."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import labelkin
from labelkin._checks import InputError
from labelkin.analysis import (
    Confusion,
    confusion_matrix,
    costliest,
    disagreement,
    label_distances,
    mds,
    nearest,
    procrustes,
    tsne,
)
from labelkin.analysis import (
    _labels as labels,
)
from labelkin.structure import Taxonomy

NAMES = ("cat", "dog", "car", "bus")


def test_distances_of_an_objective_are_euclidean():
    one_hot = labelkin.OneHot(classes=4)
    expected = math.sqrt(2) * (1 - torch.eye(4, dtype=torch.float64))
    torch.testing.assert_close(label_distances(one_hot), expected)
    assert label_distances([[0, 0], [3, 4]]).tolist() == [[0, 5], [5, 0]]


def test_nearest_labels_are_the_largest_entries_of_a_row():
    embedding = [[9, 3, 1, 2], [0, 9, 5, 4], [7, 7, 0, 8], [1, 2, 3, 0]]
    found = nearest(embedding, NAMES, 2)
    assert found.neighbours == (("dog", "bus"), ("car", "bus"), ("bus", "cat"), ("car", "dog"))
    assert found.positions.tolist() == [[1, 3], [2, 3], [3, 0], [2, 1]]
    assert found.scores.tolist() == [[3, 2], [5, 4], [8, 7], [3, 2]]


def test_equals_come_in_class_order():
    names = [f"c{i}" for i in range(100)]
    assert nearest(torch.eye(100), names, 3).positions[50].tolist() == [0, 1, 2]


@pytest.mark.parametrize("block", [1, 2**24])
@pytest.mark.parametrize(
    ("rule", "neighbours", "scores"),
    [
        ("cosine", ["dog", "cat", "dog"], [math.sqrt(0.5), math.sqrt(0.5), math.sqrt(0.5)]),
        ("euclidean", ["dog", "cat", "dog"], [1.0, 1.0, math.sqrt(1 + 81)]),
    ],
)
def test_nearest_labels_by_other_rules(monkeypatch, block, rule, neighbours, scores):
    monkeypatch.setattr(labels, "BLOCK", block)
    found = nearest([[1.0, 0.0], [1.0, 1.0], [0.0, 10.0]], NAMES[:3], 1, rule=rule)
    assert [row[0] for row in found.neighbours] == neighbours
    assert found.scores.flatten().tolist() == pytest.approx(scores)


def test_rules_differ_where_they_should():
    vectors = [[1.0, 0.0], [0.9, 0.3], [5.0, 0.1], [0.0, 0.0]]
    assert nearest(vectors, NAMES, 1, rule="cosine").neighbours[0] == ("car",)
    assert nearest(vectors, NAMES, 1, rule="euclidean").neighbours[0] == ("dog",)
    assert nearest(vectors, NAMES, 1, rule="cosine").scores[3].tolist() == [0.0]


def test_the_rule_follows_the_objective():
    torch.manual_seed(0)
    names = tuple("abcdef")
    embedding = labelkin.LabelEmbedding(classes=names)
    with torch.no_grad():
        embedding.embedding[0, 4] = 0.5
    assert nearest(embedding, names, 2).neighbours[0] == ("e", "b")  # then equals, in class order
    compressed = labelkin.CompressedLabelEmbedding(classes=names, rank=3)
    cosines = torch.nn.functional.cosine_similarity(compressed.a[:, None], compressed.a, dim=-1)
    best = (cosines - 2 * torch.eye(6)).argmax(1)
    assert nearest(compressed, names, 1).positions.flatten().tolist() == best.tolist()


def test_mds_reproduces_distances_in_the_plane():
    points = torch.randn(12, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    distances = torch.cdist(points, points)
    found = mds(distances)
    torch.testing.assert_close(torch.cdist(found.points, found.points), distances, atol=1e-7, rtol=0)
    torch.testing.assert_close(found.points.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert found.explained == pytest.approx(1.0)
    assert found.eigenvalues[2:].abs().max() < 1e-10
    heads = found.points.gather(0, found.points.abs().argmax(0, keepdim=True))
    assert (heads > 0).all()
    assert procrustes(found.points, points).disparity == pytest.approx(0, abs=1e-12)


def test_mds_of_a_square_on_a_line_keeps_half():
    corners = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    found = mds(torch.cdist(corners, corners), dims=1)
    assert found.points.shape == (4, 1)
    assert found.explained == pytest.approx(0.5)
    assert found.eigenvalues.tolist() == pytest.approx([1, 1, 0, 0], abs=1e-6)


def test_mds_says_where_distances_are_not_euclidean():
    around = torch.tensor([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])  # a circle of four: -1/2 at the end
    assert mds(around).eigenvalues.tolist() == pytest.approx([2, 2, 0, -1])


def test_procrustes_looks_at_shape_alone():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(8, 3, dtype=torch.float64, generator=generator)
    turn, _ = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64, generator=generator))
    moved = 4 * vectors @ turn + 7
    assert procrustes(vectors, moved).disparity == pytest.approx(0, abs=1e-12)
    wider = torch.nn.functional.pad(moved, (0, 5))
    assert procrustes(vectors, wider).disparity == pytest.approx(0, abs=1e-12)
    shuffled = vectors[torch.randperm(8, generator=generator)]
    found = procrustes(vectors, shuffled)
    assert 0.1 < found.disparity <= 1
    assert found.disparity == pytest.approx(float((found.a - found.b).square().sum()))
    assert found.disparity == pytest.approx(procrustes(shuffled, vectors).disparity)


def test_procrustes_by_hand():
    """Four points on a line against a square, both of norm 1: the line's overlap is the largest singular value."""
    square = torch.tensor([[-1.0, -1], [-1, 1], [1, -1], [1, 1]])
    line = torch.tensor([[-1.0], [-1], [1], [1]])
    assert procrustes(square, line).disparity == pytest.approx(1 - 0.5)


@pytest.mark.long
def test_tsne_keeps_the_neighbours_of_digits():
    digits = load_digits()
    data, target = digits.data[:300], digits.target[:300]
    found = tsne(data, seed=1)  # 64 wide, so PCA comes first
    assert found.components == 50
    assert found.points.shape == (300, 2)
    nearest_points = NearestNeighbors(n_neighbors=2).fit(found.points).kneighbors(return_distance=False)[:, 0]
    assert np.mean(target[nearest_points] == target) > 0.85
    assert torch.equal(tsne(data, seed=1).points, found.points)
    assert tsne(data[:40, :50], perplexity=5).components is None


TREE = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "bus"]}).reorder(["cat", "car", "dog", "bus"])
TARGET = torch.tensor([0, 0, 0, 0, 1, 1, 2, 3, 3])  # cat x4, car x2, dog, bus x2
PREDICTED = torch.tensor([0, 2, 2, 1, 1, 3, 2, 3, 0])


def test_confusions_lie_in_the_order_of_the_tree():
    found = confusion_matrix(PREDICTED, TARGET, taxonomy=TREE)
    assert found.names == ("cat", "dog", "car", "bus")
    assert found.order.tolist() == [0, 2, 1, 3]
    assert found.counts.tolist() == [[1, 2, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]]


def test_a_deeper_tree_is_read_from_left_to_right():
    deep = Taxonomy.from_nested({"x": {"y": ["a", "b"], "z": ["c"]}, "w": ["d"]}).reorder(["d", "b", "c", "a"])
    found = confusion_matrix([0, 1, 2, 3], [0, 1, 2, 3], taxonomy=deep)
    assert found.names == ("a", "b", "c", "d")
    assert torch.equal(found.counts, torch.eye(4, dtype=torch.int64))


def test_the_costliest_confusions():
    found = costliest(PREDICTED, TARGET, names=TREE.classes, distances=TREE.distance("height"), top=3)
    assert found.confusions == (
        Confusion("cat", "dog", 2, 1.0, 2.0),
        Confusion("cat", "car", 1, 2.0, 2.0),
        Confusion("bus", "cat", 1, 2.0, 2.0),
    )
    assert found.total == 2 + 2 + 2 + 1
    free = torch.zeros(4, 4)
    free[1, 3] = 0.5
    assert costliest(PREDICTED, TARGET, names=TREE.classes, distances=free).confusions == (
        Confusion("car", "bus", 1, 0.5, 0.5),
    )
    assert costliest(TARGET, TARGET, names=TREE.classes, distances=free) == ((), 0.0)


def test_predictions_that_occurred_several_times_count_as_often():
    target, predicted, times = [0, 1, 3, 3, 2], [1, 1, 0, 0, 3], [3, 2, 1, 4, 0]
    each = [[k for k, n in zip(part, times, strict=True) for _ in range(n)] for part in (predicted, target)]
    expected = confusion_matrix(*each, taxonomy=TREE).counts
    assert torch.equal(confusion_matrix(predicted, target, taxonomy=TREE, times=times).counts, expected)
    options = {"names": TREE.classes, "distances": TREE.distance("height")}
    assert costliest(predicted, target, times=torch.tensor(times), **options) == costliest(*each, **options)


def test_where_two_runs_disagree():
    other = torch.tensor([0, 0, 3, 1, 3, 3, 2, 3, 3])
    found = disagreement(PREDICTED, other, TARGET, classes=4)
    assert found[:5] == (3, 1, 2, 3, 4)
    assert found.by_class.tolist() == [[1, 0, 1, 2, 2], [0, 1, 0, 1, 1], [1, 0, 0, 0, 0], [1, 0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest(torch.eye(4), NAMES[:3], 1), "names: expected 4"),
        (lambda: nearest(torch.eye(4), NAMES, 4), "at most 3"),
        (lambda: nearest(torch.eye(4)[:, :2], NAMES, 1, rule="entry"), 'use "cosine"'),
        (lambda: nearest(torch.eye(4), NAMES, 1, rule="cosin"), "Did you mean 'cosine'"),
        (lambda: label_distances(torch.zeros(3)), r"\(K, D\)"),
        (lambda: label_distances([[1.0, math.nan], [0, 0]]), "finite"),
        (lambda: mds([[0, 1], [2, 0]]), "symmetric"),
        (lambda: mds(1 - torch.eye(3), dims=4), "at most 3"),
        (lambda: tsne(torch.eye(4)), "perplexity: expected less than the 4"),
        (lambda: procrustes(torch.eye(3), torch.eye(4)), "the number in a"),
        (lambda: procrustes(torch.eye(3), torch.ones(3, 2)), "b: expected label vectors that differ"),
        (lambda: confusion_matrix([0, 4], [0, 1], taxonomy=TREE), "from 0 to 3, got 4"),
        (lambda: confusion_matrix([0.5, 1], [0, 1], taxonomy=TREE), "class positions"),
        (lambda: confusion_matrix([0], [0, 1], taxonomy=TREE), "expected 2 predictions"),
        (lambda: confusion_matrix([0], [0], taxonomy=TREE, times=[-1]), "times: expected a whole number"),
        (lambda: confusion_matrix([0], [0], taxonomy=TREE, times=[1, 2]), "for each of 1 predictions"),
        (lambda: costliest([0], [1], names=NAMES, distances=torch.eye(3)), "4 x 4"),
        (lambda: disagreement([0], [0, 1], [0], classes=2), "b: expected 1 predictions"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
