"""The class to answer: the most probable one, or the one of least expected cost.

Probabilities are `probs` (n, K) after a softmax, never logits. Of equally probable classes, the one with the lowest position is
the answer. Costs and expectations are computed in float64: beside a class of probability near 1, float32 cannot tell the rest
apart.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin.decide._tree_sums import expected_distances
from labelkin.decide._validation import check_probs
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

Costs = Tensor | npt.NDArray[np.floating[Any]] | Taxonomy


def argmax(probs: Tensor) -> Tensor:
    """Return the most probable class (n,), the lowest position among equals."""
    check_probs("probs", probs)
    return probs.argmax(-1)


def least_cost(
    probs: Tensor, costs: Costs, *, distance: DistanceKind = "height", kind: DistanceKind | None = None
) -> Tensor:
    """Return the class of least expected cost (n,) (CRM: Karthik et al., No Cost Likelihood Manipulation at Test Time, 2021).

    `costs[true, decided]` is a (K, K) matrix, or a taxonomy, where `distance`, one of `Taxonomy.distance`, is the cost (a
    matrix makes no use of it; `kind` is its old name). With costs of 0 on the diagonal and 1 elsewhere this is `argmax`.
    Costs may be negative (gains), and a correct answer may cost something. The answer has the least expected cost under
    `probs`, so it is as good as they are calibrated: see `Temperature`.

    Ties: expected costs that differ by no more than the rounding of their float64 sums are equal. Among classes of equal
    expected cost the most probable is the answer, and among those the one with the lowest position. Matrix and taxonomy
    follow the same rule.
    """
    distance = renamed("distance", distance, "kind", kind)
    return least_cost_top_k(probs, costs, 1, distance=distance)[:, 0]


def least_cost_top_k(
    probs: Tensor, costs: Costs, k: int, *, distance: DistanceKind = "height", kind: DistanceKind | None = None
) -> Tensor:
    """Return the `k` classes of least expected cost (n, k), the least first.

    `costs`, `distance` and the rule for ties are those of `least_cost`.
    """
    distance = renamed("distance", distance, "kind", kind)
    expected = expected_costs(probs, costs, distance=distance)
    check_count("k", k)
    if k > expected.shape[-1]:
        raise InputError(f"k: expected at most {expected.shape[-1]}, the number of classes, got {k}.")
    rounding = _rounding(costs, expected.shape[-1])
    best = expected.topk(min(k + 1, expected.shape[-1]), dim=-1, largest=False)
    order = best.indices[:, :k]
    tied = (best.values.diff(dim=-1) <= rounding).any(-1).nonzero().flatten()
    if len(tied):
        order[tied] = _with_ties(expected[tied], probs[tied], rounding)[:, :k]
    return order


def expected_costs(
    probs: Tensor, costs: Costs, *, distance: DistanceKind = "height", kind: DistanceKind | None = None
) -> Tensor:
    """Return what each class would cost in expectation (n, K), in float64; lower is better.

    For a taxonomy they are sums over its nodes, so that K x K distances are never made. Rounding may set equal costs
    apart: `least_cost_top_k` ranks classes with that in mind.
    """
    distance = renamed("distance", distance, "kind", kind)
    if isinstance(costs, Taxonomy):
        check_choice("distance", distance, DISTANCES)
        check_probs("probs", probs, len(costs.leaves))
        return expected_distances(probs.double(), costs, distance)
    check_probs("probs", probs)
    return probs.double() @ _checked(costs, probs)


def _with_ties(expected: Tensor, probs: Tensor, rounding: float) -> Tensor:
    """(n, K) all classes by expected cost; within a run of equal costs by probability, then by position."""
    cost, order = expected.sort(dim=-1)
    run = torch.zeros_like(order)
    run[:, 1:] = (cost.diff(dim=-1) > rounding).cumsum(-1)
    run_of_class = torch.empty_like(run).scatter_(-1, order, run)
    likely = probs.argsort(dim=-1, descending=True, stable=True)
    return likely.gather(-1, run_of_class.gather(-1, likely).argsort(dim=-1, stable=True))


def _rounding(costs: Costs, classes: int) -> float:
    """A bound on the difference that rounding makes between two expected costs that are equal.

    Both routes add up at most `classes` products, and as many levels as the tree has, each with a relative error of eps / 2,
    of numbers that are in sum at most four times the largest cost.
    """
    levels, largest = 0, 0.0
    if isinstance(costs, Taxonomy):
        levels = largest = 2 * int(costs.depth.max())  # no distance is longer than twice the depth
    else:
        largest = float(torch.as_tensor(costs).abs().max())
    return 4 * (classes + levels + 2) * torch.finfo(torch.float64).eps * largest


def _checked(costs: Tensor | npt.NDArray[np.floating[Any]], probs: Tensor) -> Tensor:
    try:
        matrix = torch.as_tensor(costs).to(probs.device, torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"costs: expected a labelkin.Taxonomy or a (K, K) matrix, got {costs!r:.60}.") from None
    classes = probs.shape[-1]
    if matrix.shape != (classes, classes):
        raise InputError(
            f"costs: expected shape ({classes}, {classes}), the true class by the decided one, got {tuple(matrix.shape)}."
        )
    bad = matrix.numel() - int(torch.isfinite(matrix).sum())
    if bad:
        raise InputError(f"costs: expected finite numbers, got {bad} NaN or infinite ones; give a large cost instead.")
    return matrix
