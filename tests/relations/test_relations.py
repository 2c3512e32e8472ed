"""Relations and targets against the papers' rules written out, class by class."""

import copy
import math
import random
import sys
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from labelkin import relations
from labelkin._checks import InputError
from labelkin.functional._naa import naa_distance
from labelkin.relations import DenseRows, GroupRows, Rows, SmoothedRows, as_rows, as_targets
from labelkin.relations._structured import farthest
from labelkin.structure import DISTANCES, Taxonomy
from support.memory import LargestTensor

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SEMANTIC_GROUPS = {  # 000 Table 1, the grouping made by hand
    "mass transport": ["airplane", "ship", "truck"],
    "personal transport": ["automobile", "horse"],
    "domestic animals": ["cat", "dog"],
    "other animals": ["bird", "deer", "frog"],
}


def close(actual, expected, atol=1e-12):
    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=torch.float64), atol=atol, rtol=0)


def is_relation(matrix, isolated=()):
    assert matrix.dtype == torch.float64
    assert not matrix.diagonal().any()
    assert matrix.min() >= 0
    close(matrix.sum(-1), [0.0 if i in isolated else 1.0 for i in range(len(matrix))])


def literal_rows(weight, classes):
    """Each row: the weights of the others, divided by their sum; zero where they are all zero."""
    rows = []
    for i in range(classes):
        row = [0.0 if i == j else weight(i, j) for j in range(classes)]
        rows.append([w / sum(row) if sum(row) else 0.0 for w in row])
    return rows


def random_taxonomy(seed, nodes=40):
    """Any shape: leaves at all depths, nodes with a single child, classes not in the order of the nodes."""
    chance = random.Random(seed)
    parents = [-1] + [chance.randrange(max(0, i - 1 - chance.randrange(9)), i) for i in range(1, nodes)]
    leaves = sorted(set(range(nodes)) - set(parents))
    chance.shuffle(leaves)
    return Taxonomy(parents, [f"n{i}" for i in range(nodes)], leaves)


def literal_tree_distance(taxonomy, kind, i, j):
    """By walking up from both leaves."""

    def up(node):
        return [node] if node == 0 else [node, *up(int(taxonomy.parents[node]))]

    left, right = up(int(taxonomy.leaves[i])), up(int(taxonomy.leaves[j]))
    common = next(node for node in left if node in right)
    if kind == "edges":
        return left.index(common) + right.index(common)
    if kind == "semantic":
        return max(len(left), len(right)) - len(up(common))
    if kind == "depth":
        return 0 if i == j else max(len(up(int(leaf))) for leaf in taxonomy.leaves) - len(up(common))
    below = [up(int(leaf)) for leaf in taxonomy.leaves]
    return max(path.index(common) for path in below if common in path)


# The rules.


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("values", [None, [3.0, -1.0, 0.5, 10.0, 2.0]])
def test_ordinal_is_000_equations_2_and_3(power, values):
    places = values or list(range(5))
    expected = literal_rows(lambda i, j: 1 / abs(places[i] - places[j]) ** power, 5)
    relation = relations.ordinal(5, power=power, values=values)
    close(relation, expected)
    is_relation(relation)


def test_ordinal_takes_names_and_a_steep_power_leaves_the_nearest():
    close(relations.ordinal(["low", "mid", "high"]), [[0, 2 / 3, 1 / 3], [0.5, 0, 0.5], [1 / 3, 2 / 3, 0]])
    steep = relations.ordinal(3, power=5_000, values=[0, 10, 30])
    close(steep, [[0, 1, 0], [1, 0, 0], [0, 1, 0]])


def test_groups_is_000_equation_4():
    group_of = {name: group for group, names in SEMANTIC_GROUPS.items() for name in names}
    expected = [[0.0] * 10 for _ in CIFAR10]
    for i, a in enumerate(CIFAR10):
        for j, b in enumerate(CIFAR10):
            if i != j and group_of[a] == group_of[b]:
                expected[i][j] = 1 / (len(SEMANTIC_GROUPS[group_of[a]]) - 1)
    relation = relations.groups(SEMANTIC_GROUPS, classes=CIFAR10)
    close(relation, expected)
    is_relation(relation)
    positions = {group: [CIFAR10.index(n) for n in names] for group, names in SEMANTIC_GROUPS.items()}
    ids = [group_of[name] for name in CIFAR10]
    for other in (relations.groups(positions), relations.groups(positions, classes=10), relations.groups(ids)):
        assert torch.equal(other, relation)


def test_groups_of_names_alone_follow_the_listing():
    relation = relations.groups({"pets": ["dog", "cat"], "rest": ["car"]})
    close(relation, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    is_relation(relation, isolated={2})


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("seed", range(4))
def test_tree_is_the_exponential_of_the_distance(seed, distance):
    taxonomy = random_taxonomy(seed)
    classes = len(taxonomy.leaves)
    pairs = [[literal_tree_distance(taxonomy, distance, i, j) for j in range(classes)] for i in range(classes)]
    largest = max(map(max, pairs))
    relation = relations.tree(taxonomy, beta=4.0, distance=distance)
    close(relation, literal_rows(lambda i, j: math.exp(-4 * pairs[i][j] / largest), classes))
    is_relation(relation)

    soft = [[math.exp(-4 * pairs[i][j] / largest) for j in range(classes)] for i in range(classes)]
    targets = relations.tree_targets(taxonomy, beta=4.0, distance=distance)
    close(targets, [[w / sum(row) for w in row] for row in soft])
    assert targets.argmax(-1).tolist() == list(range(classes))


@pytest.mark.parametrize("distance", DISTANCES)
def test_tree_of_known_shapes(distance):
    flat = Taxonomy([-1, 0, 0, 0], ["r", "a", "b", "c"])
    close(relations.tree(flat, distance=distance), [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    pairs = Taxonomy([-1, 0, 0, 1, 1, 2, 2], ["r", "x", "y", "a", "b", "c", "d"])
    near, far = math.exp(-1), math.exp(-2)
    row = [0, near, far, far]
    close(relations.tree(pairs, beta=2.0, distance=distance)[0], [w / sum(row) for w in row])
    steep = relations.tree(pairs, beta=1e6, distance=distance)
    close(steep, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("rule", "of"),
    [("clip", lambda c: max(0.0, c)), ("shift", lambda c: (1 + c) / 2), ("softmax", lambda c: math.exp(c / 0.3))],
)
def test_embedding_is_a_rule_on_cosines(rule, of):
    vectors = np.random.default_rng(0).normal(size=(6, 3))

    def weight(i, j):
        inner = sum(a * b for a, b in zip(vectors[i], vectors[j], strict=True))
        return of(inner / math.sqrt(sum(a * a for a in vectors[i]) * sum(b * b for b in vectors[j])))

    relation = relations.embedding(vectors, rule=rule, temperature=0.3)
    close(relation, literal_rows(weight, 6))
    is_relation(relation, isolated={2} if rule == "clip" else ())
    close(relations.embedding(vectors * [[1e-200], [1e150], [1], [2], [3], [4]], rule=rule, temperature=0.3), relation)


def test_embedding_isolates_what_has_no_positive_cosine():
    turned = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    orthogonal = relations.embedding(turned)  # cosines of about 1e-17, not zeros
    assert not orthogonal.any()
    opposite = relations.embedding([[1.0, 0], [-1.0, 0], [-2.0, 0]], rule="shift")
    close(opposite, [[0, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_confusion_drops_the_diagonal_and_smooths():
    counts = [[50, 3, 0], [1, 40, 4], [0, 0, 9]]
    smoothed = relations.confusion(counts, smoothing=0.5)
    close(smoothed, literal_rows(lambda i, j: counts[i][j] + 0.5, 3))
    is_relation(smoothed)
    close(relations.confusion(counts)[0], [0, 4 / 5, 1 / 5])
    is_relation(relations.confusion(counts, smoothing=0.0), isolated={2})


def test_activations_is_one_minus_the_naa_distance():
    digits = load_digits()
    distance = naa_distance(torch.tensor(digits.data), torch.tensor(digits.target), 10)
    relation = relations.activations(distance)
    d = distance.tolist()
    close(relation, literal_rows(lambda i, j: 1 - d[i][j], 10))
    is_relation(relation)
    almost = 1 - 2e-16  # a distance of 1, computed
    is_relation(relations.activations([[0, almost, 1], [almost, 0, 0.25], [1, 0.25, 0]]), isolated={0})


def test_infogain_weights():
    close(relations.infogain_weights([50, 200, 100]), [1.0, 0.25, 0.5])


# LDA.


def digits_for_lda():
    digits = load_digits()
    varies = [any(digits.data[digits.target == k].var(0)[f] for k in range(10)) for f in range(64)]
    return digits.data[:, varies], digits.target


def literal_lda_cosines(inputs, targets, components=None):
    """The generalised eigenproblem of between and within scatter, on centred data (004 Sec. 4)."""
    from scipy.linalg import eigh

    centred = inputs - inputs.mean(0)
    classes = targets.max() + 1
    means = np.array([centred[targets == k].mean(0) for k in range(classes)])
    within = sum((centred[targets == k] - means[k]).T @ (centred[targets == k] - means[k]) for k in range(classes))
    between = sum((targets == k).sum() * np.outer(means[k], means[k]) for k in range(classes))
    axes = eigh(between, within)[1][:, ::-1][:, : components or classes - 1]
    placed = means @ axes
    unit = placed / np.linalg.norm(placed, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("components", [None, 3])
def test_lda_is_004_equation_12_on_digits(components):
    inputs, targets = digits_for_lda()
    cosine = literal_lda_cosines(inputs, targets, components)
    expected = literal_rows(lambda i, j: 1 / (1 + math.exp(1 - cosine[i, j])), 10)
    relation = relations.lda(inputs, targets, components=components)
    close(relation, expected, atol=1e-9)
    is_relation(relation)
    # s spans .12 to .5 only, so no entry is far from uniform; and row sums break the symmetry.
    assert relation[~torch.eye(10, dtype=torch.bool)].min() > 0.119 / (0.119 + 8 * 0.5)
    assert relation.max() < 0.5 / (0.5 + 8 * 0.119)
    assert not torch.allclose(relation, relation.T)


def test_lda_centres_flattens_and_takes_any_falling_similarity():
    digits = load_digits()
    images, targets = torch.tensor(digits.images), torch.tensor(digits.target)
    relation = relations.lda(images, targets, classes=[str(i) for i in range(10)])
    close(relations.lda(images + 100, targets), relation, atol=1e-9)
    kept = [0, 1, 3]
    few = torch.isin(targets, torch.tensor(kept))
    renamed = torch.tensor([0, 1, -1, 2])[targets[few]]
    inputs = np.asarray(digits.data[few.numpy()])
    inputs = inputs[:, [all(inputs[renamed.numpy() == k].var(0)[f] for k in range(3)) for f in range(64)]]
    cosine = literal_lda_cosines(inputs, renamed.numpy())
    chosen = relations.lda(inputs, renamed, similarity=lambda d: torch.exp(-3 * d))
    close(chosen, literal_rows(lambda i, j: math.exp(-3 * (1 - cosine[i, j])), 3), atol=1e-9)


def test_lda_class_at_the_centre_counts_as_distance_one():
    inputs = np.array([[x + dx, dx * dy] for x in (-0.7, 0, 0.7) for dx in (-0.5, 0.5) for dy in (-1, 1)])
    s = [1 / (1 + math.exp(d)) for d in (1, 2)]
    row = [0, s[0] / sum(s), s[1] / sum(s)]
    inputs = inputs * 0.7 + 1 / 3  # so that rounding leaves about 1e-16 of the mean of class 1
    close(relations.lda(inputs, np.repeat([0, 1, 2], 4)), [row, [0.5, 0, 0.5], row[::-1]])


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # scikit-learn's, of an empty ratio
def test_lda_of_classes_that_coincide_is_refused():
    with pytest.raises(InputError, match="all class means are equal"):
        relations.lda([[0.0], [2.0], [1.0]], [0, 0, 1])


def test_lda_without_scikit_learn_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.discriminant_analysis", None)
    with pytest.raises(ImportError, match=r"relations\.lda needs sklearn.*pip install 'labelkin\[sklearn\]'"):
        relations.lda(TWO, [0, 1, 1])


# Similarities as vectors.


def test_vectors_have_the_positive_part_as_gram_matrix():
    similarity = np.random.default_rng(1).normal(size=(7, 7))
    symmetric = (similarity + similarity.T) / 2
    scaled = (symmetric - symmetric.min()) / (symmetric.max() - symmetric.min())
    values, axes = np.linalg.eig(scaled)
    positive = sum(v * np.outer(a, a) for v, a in zip(values, axes.T, strict=True) if v > 0)
    vectors = relations.similarity_to_vectors(similarity)
    close(vectors @ vectors.T, positive)
    assert vectors.shape == (7, int((values > 0).sum()))
    assert (vectors.square().sum(0).diff() < 0).all()
    assert (vectors.amax(0) >= vectors.abs().amax(0)).all()


def test_vectors_of_a_gram_matrix_keep_its_rank():
    close(relations.similarity_to_vectors(torch.eye(4)).norm(dim=-1), torch.ones(4))
    angles = torch.linspace(0, math.pi / 2, 8, dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin()], dim=-1)
    vectors = relations.similarity_to_vectors(points @ points.T)
    assert vectors.shape == (8, 2)
    close(vectors @ vectors.T, points @ points.T)


# Targets.


@pytest.mark.parametrize("sigma", [0.0, 0.3, [0.1, 0.2, 0.3, 0.4]])
def test_smooth_is_000_equation_1_and_isolated_classes_stay_one_hot(sigma):
    relation = relations.groups(["a", "a", "a", "b"])
    moved = [sigma] * 4 if isinstance(sigma, float) else sigma
    expected = [[moved[i] * relation[i, j].item() + (1 - moved[i]) * (i == j) for j in range(4)] for i in range(4)]
    expected[3] = [0, 0, 0, 1]
    close(relations.smooth(relation, sigma), expected)
    close(relations.smooth(relation.numpy().tolist(), sigma), expected)
    assert not as_targets(relations.smooth(relation, sigma), 4).isolated().any()


def digit_threshold(digit):
    """Where sigma * largest = 1 - sigma: the nearest digit has 1/S of the weight, so sigma = S / (1 + S)."""
    total = sum(Fraction(1, abs(digit - other)) for other in range(10) if other != digit)
    return total / (1 + total)


def overtaken(relation, sigma):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        relations.smooth(relation, sigma)
    if not caught:
        return ""
    assert len(caught) == 1
    assert caught[0].category is UserWarning
    assert caught[0].filename == __file__
    return str(caught[0].message).partition("targets of class ")[2].partition(" give")[0]


def test_digits_warn_exactly_from_their_thresholds():
    assert [round(float(digit_threshold(d)), 4) for d in range(5)] == [0.7388, 0.788, 0.8036, 0.8107, 0.8137]
    digits = relations.ordinal(10)
    for sigma, named in [(0.73, ""), (0.74, "0, 9"), (0.78, "0, 9"), (0.79, "0, 1, 8, 9"), (0.8, "0, 1, 8, 9")]:
        assert overtaken(digits, sigma) == named
    for digit in range(10):
        at = float(digit_threshold(digit))
        alone = [0.0] * 10
        alone[digit] = at - 1e-9
        assert overtaken(digits, alone) == ""
        alone[digit] = at
        assert overtaken(digits, alone) == str(digit)
        assert overtaken(DenseRows(digits, dtype=torch.float32), alone) == str(digit)


def test_groups_warn_where_they_tie():
    assert overtaken(relations.groups([0, 0, 1, 1]), 0.4999) == ""
    assert overtaken(relations.groups([0, 0, 1, 1, 2]), 0.5) == "0, 1, 2, 3"
    threes = relations.groups([0, 0, 0], structured=True)
    assert overtaken(threes, 0.6666) == ""
    assert overtaken(threes, 2 / 3) == "0, 1, 2"
    assert overtaken(relations.groups([0, 1, 2]), 1.0) == ""


# Renaming the classes renames the relation.


def test_permuting_the_classes_permutes_every_relation():
    order = torch.tensor([2, 0, 4, 1, 3])  # class i of the renamed is class order[i] of the first
    rng = np.random.default_rng(0)
    values, vectors, counts = rng.normal(size=5), rng.normal(size=(5, 3)), rng.integers(0, 9, (5, 5))
    distances = np.abs(rng.uniform(size=(5, 5)))
    ids = np.array([0, 1, 0, 2, 1])
    taxonomy = Taxonomy([-1, 0, 0, 1, 1, 2, 2, 2], list("rxyabcde"))
    reordered = taxonomy.reorder([taxonomy.classes[i] for i in order])
    inputs, targets = rng.normal(size=(60, 6)), np.arange(60) % 5
    inputs += rng.normal(size=(5, 6))[targets]
    rename = order.argsort().numpy()
    pick = order.numpy()
    cases = [
        (relations.ordinal(5, values=values), relations.ordinal(5, values=values[pick])),
        (relations.embedding(vectors), relations.embedding(vectors[pick])),
        (relations.confusion(counts), relations.confusion(counts[pick][:, pick])),
        (relations.activations(distances), relations.activations(distances[pick][:, pick])),
        (relations.groups(ids.tolist()), relations.groups(ids[pick].tolist())),
        (relations.tree(taxonomy), relations.tree(reordered)),
        (relations.tree_targets(taxonomy, beta=3.0), relations.tree_targets(reordered, beta=3.0)),
        (relations.lda(inputs, targets), relations.lda(inputs, rename[targets])),
    ]
    for first, renamed in cases:
        close(renamed, first[order][:, order])
        assert not torch.equal(renamed, first)


# Rows on demand.


def all_kinds_of_rows():
    taxonomy = random_taxonomy(5)
    classes = len(taxonomy.leaves)
    group = [i % 4 for i in range(classes - 1)] + [99]
    return {
        "dense": DenseRows(relations.ordinal(classes)),
        "groups": relations.groups(group, structured=True),
        "tree": relations.tree(taxonomy, structured=True),
        "edges": relations.tree(taxonomy, distance="edges", structured=True),
        "semantic": relations.tree(taxonomy, distance="semantic", structured=True),
        "tree targets": relations.tree_targets(taxonomy, beta=5.0, structured=True),
        "smoothed groups": relations.smooth(relations.groups(group, structured=True), 0.3),
        "smoothed dense": relations.smooth(DenseRows(relations.ordinal(classes)), np.linspace(0, 0.4, classes)),
    }


KINDS = all_kinds_of_rows()
every_kind = pytest.mark.parametrize("rows", KINDS.values(), ids=KINDS.keys())


@every_kind
def test_rows_are_rows_of_the_matrix_for_any_leading_shape(rows):
    dense = rows.dense()
    assert dense.shape == (rows.classes, rows.classes)
    generator = torch.Generator().manual_seed(0)
    for shape in [(), (1,), (7,), (2, 3), (0,)]:
        index = torch.randint(rows.classes, shape, generator=generator)
        assert rows(index).shape == (*shape, rows.classes)
        close(rows(index), dense[index])
    assert torch.equal(rows.isolated(), (dense == 0).all(-1))


@pytest.mark.parametrize("seed", range(5))
def test_structured_rows_equal_dense_rows(seed):
    taxonomy = random_taxonomy(seed, nodes=60)
    ids = [random.Random(seed).randrange(12) for _ in range(30)]
    literal = [[(ids[i] == ids[j] and i != j) / max(1, ids.count(ids[i]) - 1) for j in range(30)] for i in range(30)]
    close(relations.groups(ids, structured=True).dense(), literal)
    for kind in DISTANCES:
        d = taxonomy.distance(kind)
        assert farthest(taxonomy, kind) == d.max()
        rows = relations.tree(taxonomy, distance=kind, beta=3.0, structured=True)
        close(rows.dense(), literal_rows(lambda i, j, d=d: math.exp(-3 * d[i, j] / d.max()), len(d)))
        smoothed = relations.smooth(rows, 0.3)
        assert isinstance(smoothed, SmoothedRows)
        close(smoothed.dense(), relations.smooth(rows.dense(), 0.3))


@pytest.mark.long
@every_kind
def test_rows_compile_in_one_graph(rows):
    index = torch.tensor([[0, 3], [1, 1]])
    compiled = torch.compile(rows, fullgraph=True, backend="aot_eager")
    close(compiled(index), rows(index))


@every_kind
def test_rows_save_copy_and_change_precision(rows):
    index = torch.arange(4)
    expected = rows(index)
    copied = copy.deepcopy(rows)
    for buffer in copied.buffers():
        buffer.zero_()
    assert torch.equal(rows(index), expected)
    copied.load_state_dict(rows.state_dict())
    assert torch.equal(copied(index), expected)
    single = copied.to(torch.float32)(index)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), expected, atol=1e-6, rtol=0)


def test_dense_rows_keep_the_precision_given():
    values = [[0.0, 1.0], [1.0, 0.0]]
    assert DenseRows(values).matrix.dtype == torch.float32
    assert DenseRows(torch.tensor(values)).matrix.dtype == torch.float32
    assert DenseRows(np.array(values)).matrix.dtype == torch.float64
    assert DenseRows(values, dtype=torch.float64).matrix.dtype == torch.float64
    assert as_rows(np.array(values), 2).matrix.dtype == torch.float64
    assert as_rows(values, 2).matrix.dtype == torch.float32
    given = torch.tensor(values)
    rows = as_rows(given, 2)
    given.zero_()
    assert rows.matrix.any()


def structured_rows(taxonomy: Taxonomy, ids: list[int], batch: Tensor) -> list[Tensor]:
    tree = relations.smooth(relations.tree(taxonomy, structured=True), 0.4)
    groups = relations.smooth(relations.groups(ids, structured=True), 0.4)
    soft = relations.tree_targets(taxonomy, beta=10.0, structured=True)
    return [rows(batch) for rows in (tree, groups, soft)]


@pytest.mark.long
def test_ten_thousand_classes_make_nothing_of_k_by_k():
    classes = 10_000
    parents = [-1, *([0] * 20), *(1 + i % 20 for i in range(400)), *(21 + i % 400 for i in range(classes))]
    taxonomy = Taxonomy(parents, [str(i) for i in range(len(parents))])
    ids = [i % 400 for i in range(classes)]
    batch = torch.randint(classes, (32,), generator=torch.Generator().manual_seed(0))
    with LargestTensor():  # imports what torch and the functions import on first use
        structured_rows(Taxonomy.from_paths(["a/b", "a/c", "d"]), [0, 0, 1], torch.tensor([0]))
    tracemalloc.start()
    with LargestTensor() as memory:
        made = structured_rows(taxonomy, ids, batch)
    numpy_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory.numel <= 32 * (classes + 1)
    assert memory.peak_bytes < 10 * 32 * classes * 8
    assert numpy_peak < classes**2 / 4  # bytes
    for rows in made:
        close(rows.sum(-1), torch.ones(32))
        assert torch.equal(rows.argmax(-1), batch)


def test_the_largest_tensor_is_seen():
    """The recorder itself: a hidden K x K is found, views and freed storages do not add up."""
    x = torch.ones(100, requires_grad=True)
    with LargestTensor() as memory:
        (x[:, None] * x).sum().backward()
        x.detach()[:, None].expand(100, 500)
    assert memory.numel == 10_000
    assert memory.shape == (100, 100)
    with LargestTensor() as memory:
        for _ in range(10):
            torch.ones(1000)
    assert memory.peak_bytes == 4000
    with LargestTensor() as memory:
        kept = x.exp().exp().exp()
        held = memory.live_bytes
        del kept
    assert (held, memory.live_bytes) == (1200, 0)


# Bad input, each with its sentence.

FINE = [[0.0, 1.0], [1.0, 0.0]]
NAN = float("nan")
TWO = [[0.0], [1.0], [2.0]]  # samples of two classes


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ([[0, NAN], [1, 0]], r"relation: expected finite numbers, got nan at \[0, 1\]"),
        ([[0, 1], [float("inf"), 0]], r"got inf at \[1, 0\]"),
        ([[0, 1], [1.5, -0.5]], r"not negative, got -0.5 at \[1, 1\]"),
        ([[0, 1, 0], [1, 0, 0]], r"square matrix.*got shape \(2, 3\)"),
        ([0, 1], r"square matrix.*got shape \(2,\)"),
        (np.eye(3)[[1, 2, 0]], "expected 2 x 2 for 2 classes, got 3 x 3"),
        ([[0, 0.9], [1, 0]], "sum to 1 or are zero, got the sum 0.9 in row 0"),
        ([[0.1, 0.9], [1, 0]], "zero diagonal.*got 0.1 in row 0"),
        ([[0, 1], [1]], "rows of one length, got list"),
        ([["a", "b"], ["c", "d"]], "expected an array of numbers"),
        (np.array([[0, 1j], [1, 0]]), "expected an array of numbers"),
        (torch.eye(2, dtype=torch.complex64), "expected real numbers, got torch.complex64"),
        (GroupRows([0, 0, 1]), r"expected rows for 2 classes, got GroupRows\(classes=3\)"),
        (SmoothedRows(DenseRows(FINE), 0.1), "expected a relation, whose diagonal is zero, got targets"),
        (DenseRows(np.eye(2)), "expected a relation, whose diagonal is zero, got targets"),
    ],
)
def test_what_is_no_relation_is_refused(relation, sentence):
    with pytest.raises(InputError, match=sentence):
        as_rows(relation, 2)
    if not isinstance(relation, Rows) and "2 classes" not in sentence:
        with pytest.raises(InputError, match=sentence):
            relations.smooth(relation, 0.1)


def test_a_relation_may_miss_rows_and_rounding():
    assert as_rows([[0, 0], [1, 0]], 2).isolated().tolist() == [True, False]
    as_rows([[0, 1 - 9e-4], [1, 0]], 2)
    with pytest.raises(InputError, match=r"sum to 1"):
        as_rows([[0, 1 - 2e-3], [1, 0]], 2)
    third = torch.full((4, 4), 1 / 3).fill_diagonal_(0)
    assert as_rows(third, 4).matrix.dtype == torch.float32


@pytest.mark.parametrize("take", [as_rows, as_targets, lambda rows, _: relations.smooth(rows, 0.1)])
def test_rows_taken_leave_those_given_alone(take):
    given = DenseRows(np.array(FINE))
    taken = take(given, 2)
    taken.float()
    assert given.matrix.dtype == torch.float64
    assert given(torch.tensor(0)).tolist() == FINE[0]


def test_any_weights_pass_without_distribution_but_not_nonsense():
    close(as_rows([[2, 0], [0.5, 3]], 2, distribution=False).dense().double(), [[2, 0], [0.5, 3]])
    with pytest.raises(InputError, match=r"weights: expected numbers that are not negative, got -1.0 at \[0, 0\]"):
        as_rows([[-1.0, 0], [0, 1]], 2, argument="weights", distribution=False)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([[1, 0], [0, 0]], "targets: expected rows that sum to 1, got the sum 0 in row 1"),
        ([[1, 0], [NAN, 0]], r"targets: expected finite numbers, got nan at \[1, 0\]"),
        (np.eye(3), "expected 2 x 2"),
        (GroupRows([0, 1]), "got a row of zeros for class 0, 1"),
        (GroupRows([0, 0, 0]), "expected rows for 2 classes"),
    ],
)
def test_what_is_no_target_is_refused(targets, sentence):
    with pytest.raises(InputError, match=sentence):
        as_targets(targets, 2)


def test_targets_pass():
    assert as_targets(np.eye(2), 2).keeps_diagonal
    close(as_targets(SmoothedRows(DenseRows(FINE), 0.1), 2).dense().double(), [[0.9, 0.1], [0.1, 0.9]], atol=1e-7)


TREE = Taxonomy([-1, 0, 0], ["r", "a", "b"])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: relations.smooth(FINE, 1.1), r"sigma: expected a number in \[0, 1\], got 1.1\."),
        (lambda: relations.smooth(FINE, -0.1), r"sigma: expected a number in \[0, 1\], got -0.1\."),
        (lambda: relations.smooth(FINE, [0.1, 2.0]), "got 2.0 for class 1"),
        (lambda: relations.smooth(FINE, NAN), "sigma: expected finite numbers, got nan"),
        (lambda: relations.smooth(FINE, [0.1] * 3), r"one for each of 2 classes, got shape \(3,\)"),
        (lambda: relations.smooth(DenseRows(np.eye(2)), 0.1), "expected a relation"),
        (lambda: relations.ordinal(1), "classes: expected a whole number of at least 2, got 1"),
        (lambda: relations.ordinal(["a"]), "classes: expected at least 2 names"),
        (lambda: relations.ordinal(["a", "a"]), "duplicate name 'a'"),
        (lambda: relations.ordinal(3, power=-1), "power: expected a number in"),
        (lambda: relations.ordinal(3, values=[1, 2]), r"expected 3 numbers, one per class, got shape \(2,\)"),
        (lambda: relations.ordinal(3, values=[5, 2, 5]), "classes 0 and 2 both have the value 5"),
        (lambda: relations.ordinal(3, values=[0, NAN, 1]), r"values: .*got nan at \[1\]"),
        (lambda: relations.groups({"a": [0, 1], "b": []}), "group 'b' is empty"),
        (lambda: relations.groups({"a": [0, 1], "b": [1, 2]}), "class 1 is in 'a' and again in 'b'"),
        (lambda: relations.groups({"a": [0, 0], "b": [1]}), "class 0 is in 'a' and again in 'a'"),
        (lambda: relations.groups({"a": [0], "b": [2]}), "class 1 is in no group"),
        (lambda: relations.groups({"a": ["cat"]}, classes=["cat", "dog"]), "class 'dog' is in no group"),
        (lambda: relations.groups({"a": ["cat", "dgo"]}, classes=["cat", "dog"]), "'dgo' is not .* Did you mean 'dog'"),
        (lambda: relations.groups({"a": [0, 5]}, classes=2), "positions from 0 to 1, got 5"),
        (lambda: relations.groups({"a": [0, -1]}), "positions from 0 to 0, got -1|at least 2"),
        (lambda: relations.groups({"a": "cat"}), "expected a list of classes for group 'a', got the string 'cat'"),
        (lambda: relations.groups({"a": [0, "cat"]}, classes=2), "'cat' is not among the 2 classes"),
        (lambda: relations.groups({"a": [0.5, 1]}), "expected class names or whole numbers, got 0.5"),
        (lambda: relations.groups([[0, 1], [2]]), "got a list of lists; give each group a name"),
        (lambda: relations.groups([0, 0, 1], classes=4), "the group of each of 4 classes, got 3"),
        (lambda: relations.groups({}), "at least 2"),
        (lambda: GroupRows([0.5, 1.0]), "group: expected a whole number"),
        (lambda: relations.tree(TREE, beta=-1.0), "beta: expected a number in"),
        (lambda: relations.tree(TREE, distance="hight"), "Did you mean 'height'"),
        (lambda: relations.tree_targets(TREE, beta=0.0), r"beta: expected a number in \(0"),
        (lambda: relations.embedding([1.0, 2.0]), r"vectors: expected \(K, D\)"),
        (lambda: relations.embedding([[1.0], [0.0]]), "class 1 has a zero vector"),
        (lambda: relations.embedding(FINE, rule="clop"), "Did you mean 'clip'"),
        (lambda: relations.embedding(FINE, rule="softmax", temperature=0.0), "temperature: expected"),
        (lambda: relations.confusion([[1, -1], [0, 1]]), r"matrix: .*not negative, got -1.0 at \[0, 1\]"),
        (lambda: relations.confusion(FINE, smoothing=-1.0), "smoothing: expected"),
        (lambda: relations.activations([[0, 1.5], [1.5, 0]]), r"numbers in \[0, 1\], got 1.5 at \[0, 1\]"),
        (lambda: relations.infogain_weights([3, 0, 2]), "got none of class 1"),
        (lambda: relations.infogain_weights([[3, 2]]), r"got shape \(1, 2\)"),
        (lambda: relations.similarity_to_vectors(np.ones((2, 2))), "got 1.0 everywhere"),
        (lambda: relations.lda([[0.0], [1.0]], [0, 2]), "no sample of class 1"),
        (lambda: relations.lda([[0.0], [1.0]], [0, 1], classes=3), "no sample of class 2"),
        (lambda: relations.lda([[0.0], [1.0]], [0, 3], classes=2), "positions from 0 to 1, got 3"),
        (lambda: relations.lda([[0.0], [1.0]], [0.0, 1.0]), "of torch.float64"),
        (lambda: relations.lda([[0.0], [1.0]], [0]), "a class position for each sample"),
        (lambda: relations.lda(np.ones((0, 2)), np.ones(0, dtype=int)), "expected samples of every class"),
        (lambda: relations.lda([[0.0], [NAN]], [0, 1]), r"inputs: .*got nan at \[1, 0\]"),
        (lambda: relations.lda([[0.0], [1.0]], [0, 1]), "samples that vary within their class"),
        (lambda: relations.lda([[0.0], [0.0], [1.0]], [0, 0, 1]), "samples that vary within their class"),
        (lambda: relations.lda(TWO, [0, 1, 1], components=2), "components: expected at most 1"),
        (lambda: relations.lda(TWO, [0, 1, 1], similarity="cosine"), "expected one of 'logistic'"),
        (lambda: relations.lda(TWO, [0, 1, 1], similarity=torch.exp), "that decrease over"),
        (lambda: relations.lda(TWO, [0, 1, 1], similarity=lambda d: -d), "that decrease over"),
        (lambda: relations.lda(TWO, [0, 1, 1], similarity=torch.ones_like), "that decrease over"),
    ],
)
def test_bad_input_is_refused_with_its_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
