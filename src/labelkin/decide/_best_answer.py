"""The answer with the best expected value of a metric on the tree, among all nodes or among the classes."""

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_number
from labelkin.decide._choices import Names, nodes_below
from labelkin.decide._fallback import lowest_class
from labelkin.decide._least_cost import first_of_ties
from labelkin.decide._tree_sums import sums_along_paths, sums_below
from labelkin.decide._validation import check_probs
from labelkin.structure import Taxonomy

TreeMetric = Literal["distance", "f-beta", "wu-palmer"]
METRICS: tuple[TreeMetric, ...] = ("distance", "f-beta", "wu-palmer")
AnswerKind = Literal["nodes", "classes"]
ANSWERS: tuple[AnswerKind, ...] = ("nodes", "classes")


def best_answer(
    probs: Tensor,
    taxonomy: Taxonomy,
    metric: TreeMetric = "distance",
    *,
    beta: float = 1.0,
    answers: AnswerKind = "nodes",
    allowed: Names | None = None,
) -> Tensor:
    """Return the node, or class, with the best expected value of a metric.

    See `expected_values` for the metrics. Values that differ by no more than their rounding error are equal. Among equal
    answers, the most probable one is returned; among those, the one that contains the lowest class position, and the deepest of
    these.
    Decisions depend on the calibration of the probabilities: see `Temperature`.

    Args:
        probs: (n, K) probabilities of the classes.
        taxonomy: The tree.
        metric: `"distance"`, `"f-beta"` or `"wu-palmer"`.
        beta: The weight of recall in `"f-beta"`: below 1 for shorter, safer answers, above 1 for more specific ones.
        answers: `"nodes"` to choose among all nodes, `"classes"` to choose among the classes only.
        allowed: A node or a list of nodes, by name or index; only these and what is below them are answered. None allows all.

    Returns:
        (n,) indices of nodes, or class positions with `answers="classes"`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> [tree.names[node] for node in decide.best_answer(torch.tensor([[0.40, 0.38, 0.22]]), tree)]
        ['animal']
    """
    values = expected_values(probs, taxonomy, metric, beta=beta)
    losses = values if metric == "distance" else -values
    wanted = np.ones(len(taxonomy), dtype=np.bool_) if allowed is None else nodes_below("allowed", taxonomy, allowed)
    check_choice("answers", answers, ANSWERS)
    if answers == "classes":
        wanted = wanted & taxonomy.is_leaf
    order = np.lexsort((-taxonomy.depth, lowest_class(taxonomy)))
    nodes = torch.from_numpy(order[wanted[order]]).to(probs.device)
    below = sums_below(probs.double(), taxonomy).T[:, nodes]
    if answers == "nodes":
        below = below.round(decimals=12)  # equal sums over different classes differ by their rounding error
    found = nodes[first_of_ties(losses[:, nodes], below, _rounding(metric, taxonomy), 1)[:, 0]]
    if answers == "nodes":
        return found
    place = np.zeros(len(taxonomy), dtype=np.int64)
    place[taxonomy.leaves] = np.arange(len(taxonomy.leaves))
    return torch.from_numpy(place).to(found.device)[found]


def expected_values(probs: Tensor, taxonomy: Taxonomy, metric: TreeMetric = "distance", *, beta: float = 1.0) -> Tensor:
    """Return the expected value of a metric for each node as the answer, in float64.

    The metrics of an answer `a` and a true class `y`, where `d` is the depth of a node and `c` the lowest common ancestor:

    - `"distance"`: edges between them, `d(a) + d(y) - 2 d(c)`; lower is better.
    - `"f-beta"`: the F-measure of the nodes on the paths to `a` and `y` without the root (Kiritchenko et al., 2006),
      `(1 + beta^2) d(c) / (beta^2 d(y) + d(a))`; from 0 to 1, higher is better. It is 0 for the root. With beta = 1 it is
      `metrics.hierarchical_f1`.
    - `"wu-palmer"`: `2 (d(c) + 1) / (d(a) + d(y) + 2)` (Wu and Palmer, 1994, who count the root as depth 1); from 0 to 1,
      higher is better. It is the F-measure with the root counted.

    They are sums over the nodes of each level, without a table of nodes by classes.

    Args:
        probs: (n, K) probabilities of the classes.
        taxonomy: The tree.
        metric: `"distance"`, `"f-beta"` or `"wu-palmer"`.
        beta: The weight of recall in `"f-beta"`, above 0.

    Returns:
        (n, N) expected values.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> values = decide.expected_values(torch.tensor([[0.5, 0.25, 0.25]]), tree)
        >>> dict(zip(tree.names, values[0].tolist()))
        {'root': 2.0, 'animal': 1.5, 'vehicle': 2.5, 'cat': 1.5, 'dog': 2.0, 'car': 3.0}
    """
    check_choice("metric", metric, METRICS)
    check_number("beta", beta, low=0, open_low=True)
    if beta != 1 and metric != "f-beta":
        raise InputError(f'beta: only "f-beta" has a beta; leave it out for {metric!r}.')
    check_probs("probs", probs, len(taxonomy.leaves))
    values = probs.double()
    depth = torch.from_numpy(taxonomy.depth.copy()).to(probs.device)
    if metric == "distance":
        met = sums_along_paths(sums_below(values, taxonomy), taxonomy.depth, taxonomy).T
        true = (values * depth[_leaves(taxonomy, values)]).sum(-1, keepdim=True)
        return values.sum(-1, keepdim=True) * depth + true - 2 * met
    root, weight = (0, beta * beta) if metric == "f-beta" else (1, 1.0)
    return _expected_f(values, taxonomy, root=root, weight=weight)


def _expected_f(probs: Tensor, taxonomy: Taxonomy, *, root: int, weight: float) -> Tensor:
    """Return (n, N) `E[(1 + weight) (d(c) + root) / (weight (d(y) + root) + d(a) + root)]` for each node `a`.

    The depth of the common ancestor counts the nodes on the path to `a`, without the root, that are above or equal to `y`. So
    for all answers at one depth, each class has a fixed weight, and the expectation sums these weights below the nodes of the
    path.
    """
    lengths = torch.from_numpy(taxonomy.depth.copy()).to(probs.device, probs.dtype) + root
    true = lengths[_leaves(taxonomy, probs)]
    counts: npt.NDArray[np.int64] = taxonomy.depth + root
    table = probs.new_zeros(len(taxonomy), len(probs))
    for depth in range(1 - root, int(taxonomy.depth.max()) + 1):
        at = torch.from_numpy(np.flatnonzero(taxonomy.depth == depth)).to(probs.device)
        shares = probs * ((1 + weight) / (weight * true + (depth + root)))
        table[at] = sums_along_paths(sums_below(shares, taxonomy), counts, taxonomy)[at]
    return table.T


def _rounding(metric: TreeMetric, taxonomy: Taxonomy) -> float:
    """Return a bound on the rounding error in the difference of two equal expected values."""
    deepest = int(taxonomy.depth.max())
    largest = 2 * deepest if metric == "distance" else 1
    return 8 * (len(taxonomy) + deepest + 2) * float(torch.finfo(torch.float64).eps) * largest


def _leaves(taxonomy: Taxonomy, like: Tensor) -> Tensor:
    return torch.from_numpy(taxonomy.leaves.copy()).to(like.device)
