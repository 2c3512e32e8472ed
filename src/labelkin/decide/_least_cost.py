"""The most probable class, or the class with the least expected cost.

Probabilities are `probs` (n, K) after a softmax, never logits. Among equally probable classes, the answer is the one with the
lowest position. Expected costs are computed in float64, because float32 is too coarse if one class has a probability near 1.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin.decide._choices import allowed_classes
from labelkin.decide._tree_sums import expected_distances
from labelkin.decide._validation import check_probs
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

Costs = Tensor | npt.NDArray[np.floating[Any]] | Taxonomy


def argmax(probs: Tensor) -> Tensor:
    """Return the most probable class of each sample; among equal classes, the lowest position.

    Args:
        probs: (n, K) probabilities of the classes.

    Returns:
        (n,) class positions.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> decide.argmax(torch.tensor([[0.2, 0.8], [0.5, 0.5]]))
        tensor([1, 0])
    """
    check_probs("probs", probs)
    return probs.argmax(-1)


def least_cost(
    probs: Tensor,
    costs: Costs,
    *,
    distance: DistanceKind = "height",
    allowed: Sequence[str | int] | str | None = None,
    kind: DistanceKind | None = None,
) -> Tensor:
    """Return the class with the least expected cost (CRM; Karthik et al., No Cost Likelihood Manipulation at Test Time, 2021).

    Expected costs that differ by no more than the rounding error of their float64 sums are equal. Among classes with equal
    expected costs, the answer is the most probable one, and among those the lowest position. Matrices and taxonomies follow the
    same rule. Decisions depend on the calibration of the probabilities: see `Temperature`.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, K) costs by true class (row) and answer (column), or a taxonomy, whose distances are the costs. Costs may be
            negative (gains), and a right answer may have a cost. With 0 on the diagonal and 1 elsewhere, the answer is that of
            `argmax`.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        allowed: The classes that may be answered, while the true class may be any: class positions, or with a taxonomy the name
            of a node or a list of such names, which stand for the classes below them. None allows all.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n,) class positions.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.least_cost(torch.tensor([[0.30, 0.28, 0.42]]), tree)
        tensor([0])
    """
    distance = renamed("distance", distance, "kind", kind)
    return least_cost_top_k(probs, costs, 1, distance=distance, allowed=allowed)[:, 0]


def least_cost_top_k(
    probs: Tensor,
    costs: Costs,
    k: int,
    *,
    distance: DistanceKind = "height",
    allowed: Sequence[str | int] | str | None = None,
    kind: DistanceKind | None = None,
) -> Tensor:
    """Return the `k` classes with the least expected costs, best first.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, K) costs or a taxonomy; see `least_cost`, also for ties.
        k: The number of classes.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        allowed: The classes that may be answered; see `least_cost`.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n, k) class positions.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.least_cost_top_k(torch.tensor([[0.30, 0.28, 0.42]]), tree, 2)
        tensor([[0, 1]])
    """
    distance = renamed("distance", distance, "kind", kind)
    expected = expected_costs(probs, costs, distance=distance)
    classes = expected.shape[-1]
    chosen = None if allowed is None else allowed_classes(allowed, costs, classes).to(probs.device)
    count = classes if chosen is None else len(chosen)
    check_count("k", k)
    if k > count:
        raise InputError(
            f"k: expected at most {count}, the number of {'' if chosen is None else 'allowed '}classes, got {k}."
        )
    rounding = rounding_of(costs, classes)
    if chosen is None:
        return first_of_ties(expected, probs, rounding, k)
    return chosen[first_of_ties(expected[:, chosen], probs[:, chosen], rounding, k)]


def expected_costs(
    probs: Tensor, costs: Costs, *, distance: DistanceKind = "height", kind: DistanceKind | None = None
) -> Tensor:
    """Return the expected cost of each answer, in float64; lower is better.

    For a taxonomy they are sums over its nodes, without the K x K distances. Equal costs may differ by rounding errors;
    `least_cost_top_k` allows for that.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, K) costs or a taxonomy; see `least_cost`.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n, K) expected costs.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> decide.expected_costs(torch.tensor([[0.25, 0.75]]), torch.tensor([[0.0, 4.0], [1.0, 0.0]]))
        tensor([[0.7500, 1.0000]], dtype=torch.float64)
    """
    distance = renamed("distance", distance, "kind", kind)
    if isinstance(costs, Taxonomy):
        check_choice("distance", distance, DISTANCES)
        check_probs("probs", probs, len(costs.leaves))
        return expected_distances(probs.double(), costs, distance)
    check_probs("probs", probs)
    return probs.double() @ _checked(costs, probs)


def first_of_ties(expected: Tensor, probs: Tensor, rounding: float, k: int) -> Tensor:
    """Return the answers (n, k) of least expected cost; ties are sorted by probability, then by position.

    Args:
        expected: (n, A) expected costs of the answers.
        probs: (n, A) probabilities of the answers.
        rounding: The difference up to which costs are equal.
        k: The number of answers.
    """
    best = expected.topk(min(k + 1, expected.shape[-1]), dim=-1, largest=False)
    order = best.indices[:, :k]
    tied = (best.values.diff(dim=-1) <= rounding).any(-1).nonzero().flatten()
    if len(tied):
        order[tied] = _with_ties(expected[tied], probs[tied], rounding)[:, :k]
    return order


def _with_ties(expected: Tensor, probs: Tensor, rounding: float) -> Tensor:
    """Return all classes (n, K) sorted by expected cost, and classes of equal cost by probability, then by position."""
    cost, order = expected.sort(dim=-1)
    run = torch.zeros_like(order)
    run[:, 1:] = (cost.diff(dim=-1) > rounding).cumsum(-1)
    run_of_class = torch.empty_like(run).scatter_(-1, order, run)
    likely = probs.argsort(dim=-1, descending=True, stable=True)
    return likely.gather(-1, run_of_class.gather(-1, likely).argsort(dim=-1, stable=True))


def rounding_of(costs: Costs, classes: int) -> float:
    """Return a bound on the rounding error in the difference of two equal expected costs.

    Both ways of computing them add at most `classes` products, plus one term per level of the tree, each with a relative error
    of eps / 2. The sum of the terms is at most four times the largest cost.
    """
    levels, largest = 0, 0.0
    if isinstance(costs, Taxonomy):
        levels = largest = 2 * int(costs.depth.max())  # no distance is longer than twice the depth
    else:
        largest = float(torch.as_tensor(costs).detach().double().abs().max())  # truth values have no abs
    return 4 * (classes + levels + 2) * torch.finfo(torch.float64).eps * largest


def _checked(costs: Tensor | npt.NDArray[np.floating[Any]], probs: Tensor) -> Tensor:
    try:
        matrix = torch.as_tensor(costs).to(probs.device, torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"costs: expected a labelkin.Taxonomy or a (K, K) matrix, got {costs!r:.60}.") from None
    classes = probs.shape[-1]
    if matrix.shape != (classes, classes):
        raise InputError(
            f"costs: expected shape ({classes}, {classes}), true classes by answers, got {tuple(matrix.shape)}."
        )
    bad = matrix.numel() - int(torch.isfinite(matrix).sum())
    if bad:
        raise InputError(
            f"costs: expected finite numbers, got {bad} NaN or infinite numbers; use a large cost instead."
        )
    return matrix
