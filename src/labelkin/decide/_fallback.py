"""Less specific answers for unsure predictions, and their trade-off over all thresholds."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.decide._validation import check_node_probs, check_target
from labelkin.structure import Taxonomy

Ints = npt.NDArray[np.int64]


class OperatingCurve(NamedTuple):
    """Means over samples (T,) in float64, one per threshold; all range from 0 to 1.

    - `specificity`: `1 - log(classes below the answer) / log(K)`, the share of the information of a class that the answer
      gives, right or wrong: 1 for a class, 0 for the root. Higher is better. It never rises with the threshold.
    - `correctness`: how often the answer is the true class or a node above it. Higher is better. It never falls with the
      threshold.
    - `leaf_share`: how often the answer is a class. Higher is better. It never rises with the threshold.
    - `unanswered`: how often the answer is a node above all classes, mostly the root, which says nothing. Lower is better. It
      never falls with the threshold.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> nodes = decide.node_probs(torch.tensor([[0.40, 0.38, 0.22]]), tree)
        >>> decide.operating_curve(nodes, torch.tensor([1]), tree, torch.tensor([0.0, 0.5])).leaf_share
        tensor([1., 0.], dtype=torch.float64)
    """

    threshold: Tensor
    specificity: Tensor
    correctness: Tensor
    leaf_share: Tensor
    unanswered: Tensor


def fallback(node_probs: Tensor, taxonomy: Taxonomy, threshold: float) -> Tensor:
    """Return the deepest node whose probability reaches a threshold, on a walk down the tree.

    The walk starts at the root and always goes to the most probable child; among equally probable children, to the one that
    contains the lowest class position. It does not depend on the threshold, which gives these guarantees:

    - At a threshold above 0.5 the answer is the deepest of all nodes whose probability reaches it. (Below, nodes on several
      branches may reach it, and the answer is the one on the walk.)
    - Answers are nested: a higher threshold gives the same node or one above it, so an answer that was right stays right.
    - If no node reaches the threshold, the answer is the root. At a threshold of 0 it is a class, the end of the walk, which
      may differ from the class of `argmax` if that is in a less probable branch.

    Args:
        node_probs: (n, N) probabilities of the nodes, as returned by `decide.node_probs`.
        taxonomy: The tree.
        threshold: A number from 0 to 1; a probability equal to it reaches it.

    Returns:
        (n,) indices of nodes.

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
    return deepest(*ways_down(node_probs, taxonomy), threshold)


def operating_curve(
    node_probs: Tensor, target: Tensor, taxonomy: Taxonomy, thresholds: Tensor | None = None
) -> OperatingCurve:
    """Return specificity and correctness of `fallback` over thresholds.

    At a threshold of 0, correctness is how often the walk of `fallback` ends at the true class, which is close to the accuracy
    of `argmax` but need not be equal to it.

    Args:
        node_probs: (n, N) probabilities of the nodes, as returned by `decide.node_probs`.
        target: (n,) true class positions.
        taxonomy: The tree.
        thresholds: (T,) numbers from 0 to 1. None means 0, 0.01, ..., 1.

    Returns:
        An `OperatingCurve` with one entry per threshold.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> nodes = decide.node_probs(torch.tensor([[0.40, 0.38, 0.22]]), tree)
        >>> decide.operating_curve(nodes, torch.tensor([1]), tree, torch.tensor([0.0, 0.5])).correctness
        tensor([0., 1.], dtype=torch.float64)
    """
    check_node_probs("node_probs", node_probs, taxonomy)
    check_target("target", target, len(node_probs), len(taxonomy.leaves))
    chosen = _checked_thresholds(thresholds)
    nodes, probs = ways_down(node_probs, taxonomy)
    walk = nodes.clamp_min(0).cpu().numpy()
    true = taxonomy.leaves[target.cpu().numpy()]
    right = taxonomy.lca(walk, true[:, None]) == walk  # a node is the true class or above it
    ascending, order = chosen.to(probs).sort()
    furthest = probs.flip(-1).cummax(-1).values.flip(-1)[:, 1:].contiguous()  # of a step and those after it
    reached = torch.bucketize(furthest, ascending, right=True).cpu().numpy()  # thresholds, the lowest first
    values, place = np.unique(_information(taxonomy), return_inverse=True)
    said = _answers(place.reshape(-1)[walk], reached, len(values), len(chosen))
    yes = [_answers(part.astype(np.int64), reached, 2, len(chosen))[1] for part in (right, taxonomy.is_leaf[walk])]
    totals = np.stack([values @ said, *yes, said[values == 0].sum(0)])
    means = torch.empty(totals.shape, dtype=torch.float64)
    means[:, order.cpu()] = torch.from_numpy(totals / len(walk))
    return OperatingCurve(chosen, *means)


def _answers(kinds: Ints, reached: Ints, count: int, thresholds: int) -> Ints:
    """Return how many answers are of each kind at each threshold (count, T), the lowest threshold first.

    The answer is the last step that reaches the threshold, so a step that reaches it takes the place of the one before.

    Args:
        kinds: (n, L) the kind of the node of each step, a number below `count`.
        reached: (n, L - 1) how many of the thresholds each step after the first one, or a later one, reaches.
        count: The number of kinds.
        thresholds: The number of thresholds, T.
    """
    size = thresholds + 1
    gained, lost = (
        np.bincount((part * size + reached).ravel(), minlength=count * size) for part in (kinds[:, 1:], kinds[:, :-1])
    )
    changes: Ints = (gained - lost).reshape(count, size)[:, ::-1].cumsum(1)[:, ::-1][:, 1:]
    return np.bincount(kinds[:, 0], minlength=count)[:, None] + changes


def ways_down(node_probs: Tensor, taxonomy: Taxonomy) -> tuple[Tensor, Tensor]:
    """Return the nodes (n, L) on the walk from the root to a class and their probabilities (n, L); -1 after its end."""
    child = _best_children(node_probs, taxonomy)
    nodes = [child.new_zeros(child.shape[0], 1)]  # not len(), which tracing would make a constant
    for _ in range(int(taxonomy.depth.max())):
        below = child.gather(-1, nodes[-1].clamp_min(0))
        nodes.append(torch.where(nodes[-1] < 0, -1, below))
    walk = torch.cat(nodes, -1)
    return walk, node_probs.gather(-1, walk.clamp_min(0)).masked_fill(walk < 0, -1)


def _best_children(node_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
    """Return the most probable child of each node (n, N); ties go to the lowest class position; -1 for leaves."""
    order = np.argsort(lowest_class(taxonomy), kind="stable")
    order = order[order > 0]
    nodes, parents = (torch.from_numpy(array).to(node_probs.device) for array in (order, taxonomy.parents[order]))
    above, probs = parents.expand(node_probs.shape[0], -1), node_probs[:, nodes]
    most = torch.full_like(node_probs, -1).scatter_reduce_(-1, above, probs, "amax")
    rank = torch.arange(len(nodes), device=nodes.device)
    best = torch.where(probs == most[:, parents], rank, len(nodes))
    first = torch.full_like(most, len(nodes), dtype=torch.int64).scatter_reduce_(-1, above, best, "amin")
    return torch.cat([nodes, nodes.new_tensor([-1])])[first]


def lowest_class(taxonomy: Taxonomy) -> npt.NDArray[np.int64]:
    """Return the lowest class position at or below each node (N,)."""
    lowest = np.full(len(taxonomy), len(taxonomy.leaves))
    lowest[taxonomy.leaves] = np.arange(len(taxonomy.leaves))
    for node in np.argsort(-taxonomy.depth, kind="stable")[:-1]:
        above = taxonomy.parents[node]
        lowest[above] = min(lowest[above], lowest[node])
    return lowest


def deepest(nodes: Tensor, probs: Tensor, threshold: float | Tensor) -> Tensor:
    """Return the last node of each walk (n,) whose probability reaches the threshold, or the root; see `ways_down`."""
    return nodes.gather(-1, _last_step(probs, threshold)).squeeze(-1)


def _last_step(probs: Tensor, threshold: float | Tensor) -> Tensor:
    """Return the last step of each walk (n, 1) whose probability reaches the threshold, or 0."""
    steps = torch.arange(probs.shape[-1], device=probs.device)
    return torch.where(probs >= threshold, steps, 0).amax(-1, keepdim=True)


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
