"""A less specific answer where a class is unsure, and what it gains over all thresholds."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide._validation import check_node_probs, check_target
from labelkin.structure import Taxonomy


class OperatingCurve(NamedTuple):
    """Means over samples (T,), in float64, a value a threshold; all lie from 0 to 1 and higher is better.

    - `specificity`: `1 - log(classes below the answer) / log(K)`, the share of the information of a class that the
      answer gives, right or wrong: 1 for a class, 0 for the root. It never rises with the threshold.
    - `correctness`: how often the answer is the true class or a node above it. It never falls with the threshold.
    - `leaf_share`: how often the answer is a class. It never rises with the threshold.
    """

    threshold: Tensor
    specificity: Tensor
    correctness: Tensor
    leaf_share: Tensor


def fallback(node_probs: Tensor, taxonomy: Taxonomy, threshold: float) -> Tensor:
    """Return the node (n,) to answer: the last one of a walk down the tree whose probability reaches `threshold`.

    The walk starts at the root and goes to the most probable child each time; among equally probable children it takes
    the one that holds the lowest class position. It does not depend on the threshold, which gives these guarantees:

    - At a threshold above 0.5 the answer is the deepest of all nodes whose probability reaches it. (Below, nodes on several
      branches may reach it, and the answer is the one on the walk.)
    - Answers are nested: a higher threshold gives the same node or one above it, so an answer that was right stays right.
    - Where no node reaches the threshold the answer is the root, and at a threshold of 0 it is a class: the end of the
      walk. That need not be the class of `argmax`, which may lie in a less probable branch.

    Args:
        node_probs: (n, N) with a column for each node, as `decide.node_probs` makes it.
        taxonomy: the tree.
        threshold: from 0 to 1; a probability equal to it reaches it.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> nodes = decide.node_probs(torch.tensor([[0.30, 0.28, 0.42]]), tree)
        >>> tree.names[int(decide.fallback(nodes, tree, 0.5))]
        'animal'
    """
    check_node_probs("node_probs", node_probs, taxonomy)
    check_number("threshold", threshold, low=0, high=1)
    return _deepest(*_ways_down(node_probs, taxonomy), threshold)


def operating_curve(
    node_probs: Tensor, target: Tensor, taxonomy: Taxonomy, thresholds: Tensor | None = None
) -> OperatingCurve:
    """Return specificity against correctness of `fallback` over `thresholds` (T,), or over 0, 0.01, ..., 1.

    `target` (n,) holds the positions of the true classes. At a threshold of 0 the correctness is how often the walk of
    `fallback` ends at the true class, which is near the accuracy of `argmax` and need not be equal to it.
    """
    check_node_probs("node_probs", node_probs, taxonomy)
    check_target("target", target, len(node_probs), len(taxonomy.leaves))
    chosen = _checked_thresholds(thresholds)
    nodes, probs = _ways_down(node_probs, taxonomy)
    true = taxonomy.leaves[target.cpu().numpy()]
    is_leaf, information = taxonomy.is_leaf, _information(taxonomy)
    points = []
    for threshold in chosen.tolist():
        decided = _deepest(nodes, probs, threshold).cpu().numpy()
        right = taxonomy.lca(decided, true) == decided  # the answer is the true class or above it
        points.append([float(np.mean(of)) for of in (information[decided], right, is_leaf[decided])])
    return OperatingCurve(chosen, *torch.tensor(points, dtype=torch.float64).T)


def _ways_down(node_probs: Tensor, taxonomy: Taxonomy) -> tuple[Tensor, Tensor]:
    """(n, L) the nodes of the walk from the root to a class, and their probabilities: -1 and -1 behind its end."""
    child = _best_children(node_probs, taxonomy)
    nodes = [child.new_zeros(len(child), 1)]
    for _ in range(int(taxonomy.depth.max())):
        below = child.gather(-1, nodes[-1].clamp_min(0))
        nodes.append(torch.where(nodes[-1] < 0, -1, below))
    walk = torch.cat(nodes, -1)
    return walk, node_probs.gather(-1, walk.clamp_min(0)).masked_fill(walk < 0, -1)


def _best_children(node_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
    """(n, N) the most probable child of every node, of equals the one that holds the lowest class; -1 below classes."""
    order = np.argsort(_lowest_class(taxonomy), kind="stable")
    order = order[order > 0]
    nodes, parents = (torch.from_numpy(of).to(node_probs.device) for of in (order, taxonomy.parents[order]))
    above, probs = parents.expand(len(node_probs), -1), node_probs[:, nodes]
    most = torch.full_like(node_probs, -1).scatter_reduce_(-1, above, probs, "amax")
    rank = torch.arange(len(nodes), device=nodes.device)
    best = torch.where(probs == most[:, parents], rank, len(nodes))
    first = torch.full_like(most, len(nodes), dtype=torch.int64).scatter_reduce_(-1, above, best, "amin")
    return torch.cat([nodes, nodes.new_tensor([-1])])[first]


def _lowest_class(taxonomy: Taxonomy) -> npt.NDArray[np.int64]:
    """(N,) the lowest position of the classes at or below every node."""
    lowest = np.full(len(taxonomy), len(taxonomy.leaves))
    lowest[taxonomy.leaves] = np.arange(len(taxonomy.leaves))
    for node in np.argsort(-taxonomy.depth, kind="stable")[:-1]:
        above = taxonomy.parents[node]
        lowest[above] = min(lowest[above], lowest[node])
    return lowest


def _deepest(nodes: Tensor, probs: Tensor, threshold: float) -> Tensor:
    steps = torch.arange(nodes.shape[-1], device=nodes.device)
    last = torch.where(probs >= threshold, steps, 0).amax(-1, keepdim=True)
    return nodes.gather(-1, last).squeeze(-1)


def _information(taxonomy: Taxonomy) -> npt.NDArray[np.float64]:
    counts = taxonomy.is_leaf.astype(np.float64)
    for node in range(len(taxonomy) - 1, 0, -1):
        counts[taxonomy.parents[node]] += counts[node]
    information: npt.NDArray[np.float64] = 1 - np.log(counts) / np.log(len(taxonomy.leaves))
    return information


def _checked_thresholds(thresholds: Tensor | None) -> Tensor:
    if thresholds is None:
        return torch.arange(101, dtype=torch.float64) / 100
    chosen = torch.as_tensor(thresholds, dtype=torch.float64).cpu()
    if chosen.ndim != 1 or not len(chosen):
        raise InputError(f"thresholds: expected a list of numbers in [0, 1], got shape {tuple(chosen.shape)}.")
    for threshold in chosen.tolist():
        check_number("thresholds", threshold, low=0, high=1)
    return chosen
