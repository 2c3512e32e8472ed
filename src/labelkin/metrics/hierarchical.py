"""How far predictions lie from the truth in the tree: distances of the best classes, and shared ancestors."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count
from labelkin.metrics.basic import Metric, mean_of, warn_undefined
from labelkin.metrics.inputs import check_pair, check_scores
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy
from labelkin.structure.distances import Ints, shared_depth


class AncestorCounts(NamedTuple):
    """Nodes on the way from the root, itself not counted, down to a class; one number a sample."""

    shared: Tensor  # above or equal to both classes
    predicted: Tensor
    true: Tensor


def average_distance(
    scores: Tensor, target: Tensor, taxonomy: Taxonomy, *, k: int = 1, kind: DistanceKind = "height"
) -> Metric:
    """Average hierarchical distance at `k` (Bertinetto et al., 2020): from the true class to the k best-scored ones.

    A sample's value is the mean distance over its `k` classes, hits (distance 0) and mistakes alike; `kind` is one of
    `Taxonomy.distance`. From 0 to the largest distance in the tree; lower is better. With k > 1 even a perfect model
    stays above 0, since only one of the k classes is the true one. Among equal scores the order is torch.topk's.
    Undefined without samples: NaN, with a warning.
    """
    classes = len(taxonomy.leaves)
    check_count("k", k)
    check_choice("kind", kind, DISTANCES)
    check_scores("scores", scores, target, classes)
    if k > classes:
        raise InputError(f"k: expected at most the number of classes, {classes}, got {k}.")
    best = scores.topk(k, dim=-1).indices
    distances = taxonomy.distance(kind, target.cpu().numpy()[:, None], best.cpu().numpy())
    return mean_of("average_distance", torch.from_numpy(distances.mean(-1)))


def hierarchical_precision(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> Metric:
    """The share of the predicted classes' ancestor sets that is right: 0 to 1, higher is better.

    A class stands for itself and its ancestors without the root. `values` holds each sample's share, `mean` the sum of
    the shared nodes over the sum of the predicted ones (hP of Kiritchenko et al., 2006; micro average), so that a deep
    prediction weighs more than a shallow one. Undefined without samples: NaN, with a warning.
    """
    counts = ancestor_counts(predicted, target, taxonomy)
    return _ratio("hierarchical_precision", counts.shared, counts.predicted)


def hierarchical_recall(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> Metric:
    """The share of the true classes' ancestor sets that was predicted: 0 to 1, higher is better.

    As `hierarchical_precision`, over the sum of the true nodes (hR). Undefined without samples: NaN, with a warning.
    """
    counts = ancestor_counts(predicted, target, taxonomy)
    return _ratio("hierarchical_recall", counts.shared, counts.true)


def hierarchical_f1(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> Metric:
    """The harmonic mean of hierarchical precision and recall (hF): 0 to 1, higher is better.

    Twice the shared nodes over the predicted and the true ones together, which is 0 where nothing is shared. Undefined
    without samples: NaN, with a warning.
    """
    counts = ancestor_counts(predicted, target, taxonomy)
    return _ratio("hierarchical_f1", 2 * counts.shared, counts.predicted + counts.true)


def ancestor_counts(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> AncestorCounts:
    """What hP, hR and hF are made of, in time and memory of samples x depth."""
    check_pair(predicted, target, len(taxonomy.leaves))
    guessed, true = (_nodes(taxonomy, given) for given in (predicted, target))
    shared = shared_depth(taxonomy.paths, guessed, true)
    counts = (shared, taxonomy.depth[guessed], taxonomy.depth[true])
    return AncestorCounts(*(torch.from_numpy(np.array(count)) for count in counts))


def _nodes(taxonomy: Taxonomy, classes: Tensor) -> Ints:
    nodes: Ints = taxonomy.leaves[classes.cpu().numpy()]
    return nodes


def _ratio(metric: str, part: Tensor, whole: Tensor) -> Metric:
    if not len(part):
        warn_undefined(f"{metric}: there are no samples, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(part.sum().double() / whole.sum()), part.double() / whole)
