"""How far predictions lie from the truth in the tree: distances of the best classes, and shared ancestors."""

from typing import Literal, NamedTuple

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
    """Nodes on the way from the root, itself not counted, down to a node; one number a sample."""

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
    """Average hierarchical distance at `k` (Bertinetto et al., 2020): from the true class to the k best-scored ones.

    A sample's value is the mean distance over its `k` classes, hits (distance 0) and mistakes alike; `distance` is one of
    `Taxonomy.distance` (`kind` is its old name). From 0 to the largest distance in the tree; lower is better. With k > 1
    even a perfect model stays above 0, since only one of the k classes is the true one. The lowest position wins a tie of
    scores.
    Undefined without samples: NaN, with a warning.
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


def hierarchical_precision(
    predicted: Tensor,
    target: Tensor,
    taxonomy: Taxonomy,
    *,
    predicted_as: Positions = "classes",
    target_as: Positions = "classes",
) -> Metric:
    """Return the share of the predicted ancestor sets that is right (hP): 0 to 1, higher is better.

    A prediction stands for its node and the ancestors of that node without the root. `values` holds each sample's share,
    `mean` the sum of the shared nodes over the sum of the predicted ones (Kiritchenko et al., 2006; micro average), so
    that a deep prediction weighs more than a shallow one.

    Undefined without samples, and where every prediction is the root, which claims nothing: NaN, with a warning. A
    single prediction of the root has the value NaN.

    Args:
        predicted: (n,) positions of classes, or of nodes.
        target: (n,) positions of the true classes, or of nodes.
        taxonomy: the tree over the classes.
        predicted_as: "classes" for positions in `taxonomy.classes`, or "nodes" for positions in `taxonomy.names`, leaves
            and inner nodes alike, as `labelkin.decide._fallback` returns them.
        target_as: the same for `target`, whose samples may be labeled with inner nodes.
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
    """Return the share of the true ancestor sets that was predicted (hR): 0 to 1, higher is better.

    As `hierarchical_precision`, with the same arguments, over the sum of the true nodes. Undefined without samples, and
    where every target is the root: NaN, with a warning.
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

    Twice the shared nodes over the predicted and the true ones together, which is 0 where nothing is shared. The
    arguments are those of `hierarchical_precision`. Undefined without samples: NaN, with a warning.
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
    """What hP, hR and hF are made of, in time and memory of samples x depth."""
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
        reason = "there are no samples" if not len(part) else "every answer that it divides by is the root"
        warn_undefined(f"{metric}: {reason}, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(part.sum().double() / whole.sum()), part.double() / whole)
