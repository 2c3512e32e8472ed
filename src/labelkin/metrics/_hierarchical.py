"""Metrics of distances and shared ancestors in a tree."""

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._arrays import check_class_positions, ranked
from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._tree_tensors import TreeTensors, shared_depth, tree_tensors
from labelkin.metrics._validation import check_classes, check_length, check_scores
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

Positions = Literal["classes", "nodes"]
POSITIONS: tuple[Positions, ...] = ("classes", "nodes")


class AncestorCounts(NamedTuple):
    """Numbers of nodes on the paths to predicted and true node, without the root; one entry per sample."""

    shared: Tensor  # above or equal to both nodes
    predicted: Tensor
    true: Tensor


def average_distance(
    scores: Tensor,
    target: Tensor,
    taxonomy: Taxonomy,
    *,
    k: int = 1,
    distance: DistanceKind = "height",
    kind: DistanceKind | None = None,
) -> Metric:
    """Return the mean distance between the true class and the `k` best classes (Bertinetto et al., 2020); lower is better.

    Hits count with distance 0. With k > 1 even a perfect model is above 0, because only one of the k classes is the true one.
    Among equal scores the lowest class position comes first.

    Args:
        scores: (n, K) scores of the classes.
        target: (n,) true class positions.
        taxonomy: The tree of the classes.
        k: The number of best classes, at most K.
        distance: The kind of distance; see `Taxonomy.distance`.
        kind: The former name of `distance`, deprecated.

    Returns:
        A `Metric` with one value per sample, the mean over its `k` classes. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metrics.average_distance(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([0]), tree, k=2).mean
        0.5
    """
    distance = renamed("distance", distance, "kind", kind)
    classes = len(taxonomy.leaves)
    check_count("k", k)
    check_choice("distance", distance, DISTANCES)
    check_scores("scores", scores, target, classes)
    if k > classes:
        raise InputError(f"k: expected at most the number of classes, {classes}, got {k}.")
    best = ranked(scores, k)
    distances = taxonomy.distance(distance, target.cpu().numpy()[:, None], best.cpu().numpy())
    return mean_of("average_distance", torch.from_numpy(distances.mean(-1)))


def least_average_distance(
    target: Tensor, taxonomy: Taxonomy, *, k: int = 1, distance: DistanceKind = "height"
) -> Metric:
    """Return the least `average_distance` that the tree allows: that of the `k` classes nearest to the true class.

    Args:
        target: (n,) true class positions.
        taxonomy: The tree of the classes.
        k: The number of best classes, at most K.
        distance: The kind of distance; see `Taxonomy.distance`.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metrics.least_average_distance(torch.tensor([0, 2]), tree, k=2).values
        tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    classes = len(taxonomy.leaves)
    check_count("k", k)
    check_choice("distance", distance, DISTANCES)
    check_class_positions("target", target, classes, shape=(len(target),))
    if k > classes:
        raise InputError(f"k: expected at most the number of classes, {classes}, got {k}.")
    found, place = np.unique(target.cpu().numpy(), return_inverse=True)
    columns = np.arange(classes)
    least = [  # one class at a time, because the distances of all pairs may not fit in memory
        np.partition(taxonomy.distance(distance, np.full(classes, true), columns), k - 1)[:k].mean() for true in found
    ]
    values = np.asarray(least, dtype=np.float64)[place] if len(found) else np.zeros(0)
    return mean_of("least_average_distance", torch.from_numpy(values))


def hierarchical_precision(
    predicted: Tensor,
    target: Tensor,
    taxonomy: Taxonomy,
    *,
    predicted_as: Positions = "classes",
    target_as: Positions = "classes",
) -> Metric:
    """Return the share of predicted nodes that are right (hP): 0 to 1, higher is better.

    A prediction stands for its node and all ancestors of it except the root (Kiritchenko et al., 2006). The mean is a micro
    average, the number of shared nodes over the number of predicted ones, so a deep prediction counts more than a shallow one.

    Args:
        predicted: (n,) positions of classes or nodes.
        target: (n,) positions of the true classes or nodes.
        taxonomy: The tree of the classes.
        predicted_as: `"classes"` for positions in `taxonomy.classes`, or `"nodes"` for positions in `taxonomy.names`, as
            returned by `labelkin.decide.fallback`.
        target_as: The same for `target`, whose samples may be labeled with inner nodes.

    Returns:
        A `Metric` with one value per sample, NaN for a prediction of the root. Without samples, or if all predictions are
        the root, the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metrics.hierarchical_precision(torch.tensor([1, 2]), torch.tensor([0, 0]), tree).values
        tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    counts = _counts(predicted, target, taxonomy, predicted_as, target_as)
    return _ratio("hierarchical_precision", counts.shared, counts.predicted)


def hierarchical_recall(
    predicted: Tensor,
    target: Tensor,
    taxonomy: Taxonomy,
    *,
    predicted_as: Positions = "classes",
    target_as: Positions = "classes",
) -> Metric:
    """Return the share of true nodes that were predicted (hR): 0 to 1, higher is better.

    As `hierarchical_precision`, divided by the number of true nodes.

    Args:
        predicted: (n,) positions of classes or nodes.
        target: (n,) positions of the true classes or nodes.
        taxonomy: The tree of the classes.
        predicted_as: `"classes"` or `"nodes"`; see `hierarchical_precision`.
        target_as: The same for `target`.

    Returns:
        A `Metric` with one value per sample. Without samples, or if all targets are the root, the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> animal = torch.tensor([tree.node("animal")])
        >>> metrics.hierarchical_recall(animal, torch.tensor([0]), tree, predicted_as="nodes").mean
        0.5
    """
    counts = _counts(predicted, target, taxonomy, predicted_as, target_as)
    return _ratio("hierarchical_recall", counts.shared, counts.true)


def hierarchical_f1(
    predicted: Tensor,
    target: Tensor,
    taxonomy: Taxonomy,
    *,
    predicted_as: Positions = "classes",
    target_as: Positions = "classes",
) -> Metric:
    """Return the harmonic mean of hierarchical precision and recall (hF): 0 to 1, higher is better.

    It is twice the number of shared nodes over the number of predicted and true nodes.

    Args:
        predicted: (n,) positions of classes or nodes.
        target: (n,) positions of the true classes or nodes.
        taxonomy: The tree of the classes.
        predicted_as: `"classes"` or `"nodes"`; see `hierarchical_precision`.
        target_as: The same for `target`.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metrics.hierarchical_f1(torch.tensor([1, 2]), torch.tensor([0, 2]), tree).mean
        0.75
    """
    counts = _counts(predicted, target, taxonomy, predicted_as, target_as)
    return _ratio("hierarchical_f1", 2 * counts.shared, counts.predicted + counts.true)


def ancestor_counts(
    predicted: Tensor,
    target: Tensor,
    tree: TreeTensors,
    *,
    predicted_as: Positions = "classes",
    target_as: Positions = "classes",
    read_values: bool = True,
) -> AncestorCounts:
    """Return the counts from which hP, hR and hF are computed."""
    guessed = _nodes("predicted", predicted, tree, predicted_as, read_values)
    true = _nodes("target", target, tree, target_as, read_values)
    check_length("target", target, len(predicted), "the predictions")
    return AncestorCounts(shared_depth(tree, guessed, true), tree.depth[guessed], tree.depth[true])


def check_positions_as(predicted_as: Positions, target_as: Positions) -> None:
    check_choice("predicted_as", predicted_as, POSITIONS)
    check_choice("target_as", target_as, POSITIONS)


def _counts(
    predicted: Tensor, target: Tensor, taxonomy: Taxonomy, predicted_as: Positions, target_as: Positions
) -> AncestorCounts:
    check_positions_as(predicted_as, target_as)
    tree = tree_tensors(taxonomy, predicted.device if isinstance(predicted, Tensor) else None)
    return ancestor_counts(predicted, target, tree, predicted_as=predicted_as, target_as=target_as)


def _nodes(argument: str, given: Tensor, tree: TreeTensors, positions: Positions, read_values: bool) -> Tensor:
    if positions == "classes":
        check_classes(argument, given, len(tree.leaves), read_values=read_values)
        return tree.leaves[given.long()]
    check_classes(argument, given, read_values=False)
    check_class_positions(argument, given, len(tree.depth), read_values=read_values, what="node positions")
    return given.long()


def _ratio(metric: str, part: Tensor, whole: Tensor) -> Metric:
    total = float(whole.sum())
    if not total:
        reason = "there are no samples" if not len(part) else "the only node in the denominator is the root"
        warn_undefined(f"{metric}: {reason}, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(part.sum().double() / whole.sum()), part.double() / whole)
