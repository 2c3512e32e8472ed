"""The most probable class, or the answer with the least expected cost.

Probabilities are `probs` (n, K) after a softmax, never logits. Among equally probable classes, the answer is the one with the
lowest position. Expected costs are computed in float64, because float32 is too coarse if one class has a probability near 1.

Costs are (K, A): the first K answers are the classes, and the others are actions, such as "ask a person".
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, brief, check_choice, check_count, renamed
from labelkin.decide._choices import allowed_answers
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
    """Return the answer with the least expected cost (CRM; Karthik et al., No Cost Likelihood Manipulation at Test Time, 2021).

    The answers are the classes. A matrix of costs with more columns than rows has other answers as well: actions, such as "ask
    a person". Costs of 0 and 1 with an action that always costs c give the rule of Chow (On Optimum Recognition Error and
    Reject Tradeoff, 1970): the action if no class has a probability of 1 - c, else the most probable class.

    Expected costs that differ by no more than the rounding error of their float64 sums are equal. Among classes with equal
    expected costs, the answer is the most probable one, and among those the lowest position. An action loses to a class of
    equal expected cost. Matrices and taxonomies follow the same rule. Decisions depend on the calibration of the
    probabilities: see `Temperature`.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, A) costs by true class (row) and answer (column), or a taxonomy, whose distances are the costs. The first K
            answers are the classes, and those from K on are actions. Costs may be negative (gains), and a right answer may have
            a cost. With 0 on the diagonal and 1 elsewhere, the answer is that of `argmax`.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        allowed: The answers to choose from, while the true class may be any: positions of classes and actions, or with a
            taxonomy the name of a node or a list of such names, which stand for the classes below them. None allows all.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n,) positions of the answers: classes, or actions from K on.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.least_cost(torch.tensor([[0.30, 0.28, 0.42]]), tree)
        tensor([0])
        >>> costs = torch.tensor([[0.0, 1.0, 0.2], [1.0, 0.0, 0.2]])  # to ask a person costs .2
        >>> decide.least_cost(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), costs)
        tensor([0, 2])
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
    """Return the `k` answers with the least expected costs, best first.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, A) costs or a taxonomy; see `least_cost`, also for ties.
        k: The number of answers.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        allowed: The answers to choose from; see `least_cost`.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n, k) positions of the answers: classes, or actions from K on.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.least_cost_top_k(torch.tensor([[0.30, 0.28, 0.42]]), tree, 2)
        tensor([[0, 1]])
    """
    distance = renamed("distance", distance, "kind", kind)
    expected = expected_costs(probs, costs, distance=distance)
    classes, answers = probs.shape[-1], expected.shape[-1]
    chosen = None if allowed is None else allowed_answers(allowed, costs, answers).to(probs.device)
    count = answers if chosen is None else len(chosen)
    check_count("k", k)
    if k > count:
        what = "classes" if answers == classes else "answers"
        raise InputError(
            f"k: expected at most {count}, the number of {'' if chosen is None else 'allowed '}{what}, got {k}."
        )
    rounding, likely = rounding_of(costs, classes), with_actions(probs, answers)
    if chosen is None:
        return first_of_ties(expected, likely, rounding, k)
    return chosen[first_of_ties(expected[:, chosen], likely[:, chosen], rounding, k)]


def expected_costs(
    probs: Tensor, costs: Costs, *, distance: DistanceKind = "height", kind: DistanceKind | None = None
) -> Tensor:
    """Return the expected cost of each answer, in float64; lower is better.

    For a taxonomy they are sums over its nodes, without the K x K distances. Equal costs may differ by rounding errors;
    `least_cost_top_k` allows for that.

    Args:
        probs: (n, K) probabilities of the classes.
        costs: (K, A) costs or a taxonomy; see `least_cost`.
        distance: The kind of distance in a taxonomy; see `Taxonomy.distance`.
        kind: The former name of `distance`, deprecated.

    Returns:
        (n, A) expected costs of the K classes and of the actions after them.

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


def with_actions(probs: Tensor, answers: int) -> Tensor:
    """Return probabilities (n, A) of the answers for those of the classes (n, K): an action is not a class, so it has 0."""
    actions = answers - probs.shape[-1]
    return F.pad(probs, (0, actions)) if actions else probs


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
    """Return all answers (n, A) sorted by expected cost, and answers of equal cost by probability, then by position."""
    cost, order = expected.sort(dim=-1)
    run = torch.zeros_like(order)
    run[:, 1:] = (cost.diff(dim=-1) > rounding).cumsum(-1)
    run_of_answer = torch.empty_like(run).scatter_(-1, order, run)
    likely = probs.argsort(dim=-1, descending=True, stable=True)
    return likely.gather(-1, run_of_answer.gather(-1, likely).argsort(dim=-1, stable=True))


def rounding_of(costs: Costs, classes: int) -> float:
    """Return a bound on the rounding error in the difference of two equal expected costs.

    Both ways of computing them add at most `classes` products, plus one term per level of the tree, each with a relative error
    of eps / 2. The sum of the terms is at most four times the largest cost.
    """
    levels, largest = 0, 0.0
    if isinstance(costs, Taxonomy):
        levels = largest = 2 * int(costs.depth.max())  # no distance is longer than twice the depth
    else:
        largest = float(as_matrix(costs).detach().double().abs().max())  # truth values have no abs
    return 4 * (classes + levels + 2) * torch.finfo(torch.float64).eps * largest


def as_matrix(costs: Tensor | npt.NDArray[np.floating[Any]]) -> Tensor:
    """Return costs as a tensor; an array may be reversed."""
    return torch.as_tensor(np.ascontiguousarray(costs) if isinstance(costs, np.ndarray) else costs)


def _checked(costs: Tensor | npt.NDArray[np.floating[Any]], probs: Tensor) -> Tensor:
    try:
        matrix = as_matrix(costs).to(probs.device, torch.float64)
    except (TypeError, ValueError, RuntimeError):
        named = ", by position: put those of a table with names into the order of the columns of probs"
        hint = named if isinstance(costs, Mapping) or hasattr(costs, "columns") else ""
        raise InputError(
            f"costs: expected a labelkin.Taxonomy or costs of shape (classes, answers){hint}; got {brief(costs, 60)}."
        ) from None
    classes = probs.shape[-1]
    if matrix.ndim != 2 or len(matrix) != classes or matrix.shape[1] < classes:
        raise InputError(
            f"costs: expected shape ({classes}, {classes}), true classes by answers, or more columns for answers that are not "
            f"classes, got {tuple(matrix.shape)}."
        )
    bad = matrix.numel() - int(torch.isfinite(matrix).sum())
    if bad:
        raise InputError(
            f"costs: expected finite numbers, got {bad} NaN or infinite numbers; use a large cost instead."
        )
    return matrix
