"""Label vectors as numbers: distances, nearest labels, points in the plane, agreement of two sets.

`labels` is an objective, whose `label_vectors()` are used, or vectors (K, D).
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from scipy.spatial import procrustes as scipy_procrustes
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, check_names, check_number, counted, plain_names
from labelkin._extras import require
from labelkin.analysis._linkage import condensed
from labelkin.objectives import Objective
from labelkin.relations import read_numbers, read_square

Rule = Literal["entry", "cosine", "euclidean"]
RULES: tuple[Rule, ...] = ("entry", "cosine", "euclidean")
BLOCK = 2**24  # maximum number of scores in memory at once
PCA_WIDTH = 50


class Nearest(NamedTuple):
    """The nearest other classes of each class, nearest first.

    Example:
        >>> from labelkin.analysis import nearest
        >>> nearest([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["a", "b", "c"], 1).neighbours
        (('b',), ('a',), ('b',))
    """

    names: tuple[str, ...]
    neighbours: tuple[tuple[str, ...], ...]  # K x k
    positions: Tensor  # (K, k) int64
    scores: Tensor  # (K, k) float64: the entry, the cosine, or the Euclidean distance


class Points(NamedTuple):
    """Result of classical multidimensional scaling.

    Example:
        >>> from labelkin.analysis import mds
        >>> round(mds([[0, 3], [3, 0]], dims=1).explained, 6)
        1.0
    """

    points: Tensor  # (K, dims) float64, centered; each column's entry of largest size is positive
    eigenvalues: Tensor  # (K,) of the doubly centered squared distances, largest first; negative ones: not Euclidean
    explained: float  # share of the positive eigenvalues that `points` keeps, 0 to 1


class Embedded(NamedTuple):
    """Result of t-SNE: points in the plane and the final divergence.

    Example:
        >>> import torch
        >>> from labelkin.analysis import Embedded
        >>> Embedded(torch.zeros(3, 2), divergence=0.1, components=None).points.shape
        torch.Size([3, 2])
    """

    points: Tensor  # (n, 2) float64
    divergence: float  # the final Kullback-Leibler divergence; lower is better
    components: int | None  # number of PCA components; None if there was no PCA


class Agreement(NamedTuple):
    """Result of Procrustes analysis: both sets centered, of norm 1, and `b` rotated, mirrored and scaled onto `a`.

    Example:
        >>> from labelkin.analysis import procrustes
        >>> triangle = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
        >>> abs(round(procrustes(triangle, triangle).disparity, 6))
        0.0
    """

    disparity: float  # sum of squared differences, 0 (the same shape) to 1; the same with a and b exchanged
    a: Tensor  # (K, D) float64
    b: Tensor  # (K, D) float64


def label_distances(labels: Any) -> Tensor:
    """Compute Euclidean distances between label vectors, as 001 Eq. 4 does.

    Args:
        labels: An objective, or vectors (K, D).

    Returns:
        Distances (K, K) in float64, symmetric, with a zero diagonal.

    Example:
        >>> from labelkin.analysis import label_distances
        >>> label_distances([[0.0, 0.0], [3.0, 4.0]]).tolist()
        [[0.0, 5.0], [5.0, 0.0]]
    """
    vectors = _vectors("labels", labels)
    return torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")


def nearest(labels: Any, names: Sequence[str], k: int, *, rule: Rule | None = None) -> Nearest:
    """Find the nearest other classes of each class (003 Table 5); ties are in class order.

    With many classes, the K x K scores are computed in parts.

    Args:
        labels: An objective, or vectors (K, D).
        names: Names of the classes.
        k: Number of neighbors.
        rule: "entry": the largest `e_y[i]`, entries of row y of an embedding K x K (`LabelEmbedding`). "cosine": the largest
            cosine of two rows (`CompressedLabelEmbedding`, whose vectors are rows of A); a zero vector has cosine 0 with
            every other. "euclidean": the least distance (adaptive labels, 001). By default "entry" for K x K vectors and
            "cosine" for others.

    Returns:
        Names, positions and scores of the neighbors.

    Example:
        >>> from labelkin.analysis import nearest
        >>> found = nearest([[0.0], [1.0], [5.0]], ["a", "b", "c"], 1, rule="euclidean")
        >>> found.neighbours, found.scores.flatten().tolist()
        ((('b',), ('a',), ('b',)), [1.0, 1.0, 4.0])
    """
    vectors = _vectors("labels", labels)
    names = plain_names(names)
    check_names("names", names, least=2)
    size = len(vectors)
    if len(names) != size:
        raise InputError(f"names: expected {counted(size, 'name')}, one for each label vector, got {len(names)}.")
    check_count("k", k)
    if k >= size:
        raise InputError(f"k: expected at most {size - 1}, the number of other classes, got {k}.")
    if rule is None:
        rule = "entry" if vectors.shape[1] == size else "cosine"
    check_choice("rule", rule, RULES)
    if rule == "entry" and vectors.shape[1] != size:
        raise InputError(f'rule: "entry" needs an embedding K x K, got {size} x {vectors.shape[1]}; use "cosine".')
    parts = [_nearest_of(rows, vectors, k, rule) for rows in torch.split(torch.arange(size), max(1, BLOCK // size))]
    positions, scores = (torch.cat(part) for part in zip(*parts, strict=True))
    neighbours = tuple(tuple(names[i] for i in row) for row in positions.tolist())
    return Nearest(tuple(names), neighbours, positions, scores)


def mds(distances: Any, *, dims: int = 2) -> Points:
    """Place points whose distances approximate the given ones, by classical multidimensional scaling.

    The result is deterministic, and distances of points in `dims` dimensions are reproduced exactly.

    Args:
        distances: Symmetric distances, (K, K).
        dims: Number of dimensions.

    Returns:
        Points, eigenvalues, and the share of the positive eigenvalues that the points keep.

    Example:
        >>> from labelkin.analysis import mds
        >>> points = mds([[0, 2], [2, 0]], dims=1).points
        >>> round(float((points[0] - points[1]).abs()), 6)
        2.0
    """
    condensed(distances)  # raises if this is not a matrix of distances
    given = read_square("distances", distances).double().cpu()
    check_count("dims", dims)
    if dims > len(given):
        raise InputError(f"dims: expected at most {len(given)}, the number of classes, got {dims}.")
    squared = ((given + given.T) / 2).square()
    centered = squared - squared.mean(0) - squared.mean(1, keepdim=True) + squared.mean()
    values, axes = (found.flip(-1) for found in torch.linalg.eigh(-centered / 2))
    points = axes[:, :dims] * values[:dims].clamp(min=0).sqrt()
    heads = points.gather(0, points.abs().argmax(0, keepdim=True))
    positive = values.clamp(min=0)
    whole = float(positive.sum())
    explained = float(positive[:dims].sum()) / whole if whole else 1.0
    return Points(points * torch.where(heads < 0, -1.0, 1.0), values, explained)


def tsne(vectors: Any, *, perplexity: float = 30.0, seed: int = 0) -> Embedded:
    """Place vectors in the plane by scikit-learn's t-SNE, after PCA to 50 dimensions if they are wider.

    The plot shows neighborhoods: distances and sizes of groups in it mean nothing. 000 uses 100 images per class.

    Args:
        vectors: Outputs or label vectors, (n, D), or an objective.
        perplexity: Effective number of neighbors, below n.
        seed: Seed of the optimization.

    Returns:
        Points, and the final Kullback-Leibler divergence.

    Example:
        >>> import torch
        >>> from labelkin.analysis import tsne
        >>> tsne(torch.eye(8), perplexity=2).points.shape
        torch.Size([8, 2])
    """
    given = _vectors("vectors", vectors)
    check_number("perplexity", perplexity, low=1)
    check_count("seed", seed, least=0)
    if perplexity >= len(given):
        raise InputError(f"perplexity: expected less than the {len(given)} vectors, got {perplexity}.")
    components = min(PCA_WIDTH, len(given)) if given.shape[1] > PCA_WIDTH else None
    array = given.numpy()
    if components is not None:
        decomposition = require("sklearn.decomposition", extra="sklearn", use="analysis.tsne")
        array = decomposition.PCA(n_components=components, svd_solver="full").fit_transform(array)
    manifold = require("sklearn.manifold", extra="sklearn", use="analysis.tsne")
    fitted = manifold.TSNE(n_components=2, perplexity=perplexity, init="pca", random_state=seed).fit(array)
    return Embedded(torch.from_numpy(fitted.embedding_).double(), float(fitted.kl_divergence_), components)


def procrustes(a: Any, b: Any) -> Agreement:
    """Compare two sets of label vectors by shape: position, rotation, reflection and size are ignored.

    Args:
        a: An objective, or vectors (K, D).
        b: The same classes in another set; the narrower set is padded with zeros, which changes no distance.

    Returns:
        The disparity from 0 (same shape) to 1, and both sets after alignment.

    Example:
        >>> from labelkin.analysis import procrustes
        >>> abs(round(procrustes([[0, 0], [1, 0], [0, 2]], [[5, 5], [5, 7], [1, 5]]).disparity, 6))
        0.0
    """
    first, second = _vectors("a", a), _vectors("b", b)
    if len(first) != len(second):
        raise InputError(f"b: expected {len(first)} label vectors, the number in a, got {len(second)}.")
    width = max(first.shape[1], second.shape[1])
    pair = [torch.nn.functional.pad(vectors, (0, width - vectors.shape[1])).numpy() for vectors in (first, second)]
    for name, array in zip("ab", pair, strict=True):
        if not np.ptp(array, axis=0).any():
            raise InputError(f"{name}: expected label vectors that differ, got {len(array)} equal ones.")
    left, right, disparity = scipy_procrustes(*pair)
    return Agreement(float(disparity), torch.from_numpy(left), torch.from_numpy(right))


def _nearest_of(rows: Tensor, vectors: Tensor, k: int, rule: Rule) -> tuple[Tensor, Tensor]:
    own = vectors[rows]
    if rule == "entry":
        scores = own.clone()
    elif rule == "cosine":
        scores = _unit(own) @ _unit(vectors).T
    else:
        scores = -torch.cdist(own, vectors, compute_mode="donot_use_mm_for_euclid_dist")
    scores[torch.arange(len(rows)), rows] = -torch.inf
    found, places = scores.sort(dim=1, descending=True, stable=True)
    return places[:, :k].clone(), found[:, :k].abs() if rule == "euclidean" else found[:, :k].clone()


def _unit(vectors: Tensor) -> Tensor:
    norms = vectors.norm(dim=1, keepdim=True)
    return vectors / torch.where(norms > 0, norms, 1.0)


def _vectors(argument: str, labels: Any) -> Tensor:
    given = read_numbers(argument, labels.label_vectors() if isinstance(labels, Objective) else labels).double().cpu()
    if given.ndim != 2 or len(given) < 2 or not given.shape[1]:
        raise InputError(
            f"{argument}: expected (K, D), one vector for each of two classes or more, got {tuple(given.shape)}."
        )
    return given
