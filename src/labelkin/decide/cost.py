"""The class to name: the most probable one, or the one of least expected cost.

Probabilities are `probs` (n, K) after a softmax, never logits. Of classes that tie, up to rounding, the first in class order
is named.
Costs and expectations are computed in float64: beside a class of probability near 1, float32 cannot tell the rest apart.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count
from labelkin.decide.inputs import check_probs
from labelkin.decide.trees import expected_distances
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

Costs = Tensor | npt.NDArray[np.floating[Any]] | Taxonomy


def argmax(probs: Tensor) -> Tensor:
    """(n,) the most probable class."""
    check_probs("probs", probs)
    return probs.argmax(-1)


def least_cost(probs: Tensor, costs: Costs, *, kind: DistanceKind = "height") -> Tensor:
    """(n,) the class of least expected cost (CRM: Karthik et al., No Cost Likelihood Manipulation at Test Time, 2021).

    `costs[true, decided]` is a (K, K) matrix, or a taxonomy, whose `kind` of distance is the cost (`kind` says nothing
    beside a matrix). With costs of 0 on the diagonal and 1 elsewhere this is `argmax`. Costs may be negative (gains),
    and a correct answer may cost something. What is named has the least expected cost under `probs`, so it is as good
    as they are calibrated: see `Temperature`.
    """
    return expected_costs(probs, costs, kind=kind).argmin(-1)


def least_cost_top_k(probs: Tensor, costs: Costs, k: int, *, kind: DistanceKind = "height") -> Tensor:
    """(n, k) the classes of least expected cost, the least first; `costs` and `kind` as in `least_cost`."""
    expected = expected_costs(probs, costs, kind=kind)
    check_count("k", k)
    if k > expected.shape[-1]:
        raise InputError(f"k: expected at most {expected.shape[-1]}, the number of classes, got {k}.")
    return expected.argsort(dim=-1, stable=True)[:, :k]


def expected_costs(probs: Tensor, costs: Costs, *, kind: DistanceKind = "height") -> Tensor:
    """(n, K) in float64: what naming each class costs in expectation; lower is better.

    Of a taxonomy by sums over its nodes, so that K x K distances are never made.
    """
    if isinstance(costs, Taxonomy):
        check_choice("kind", kind, DISTANCES)
        check_probs("probs", probs, len(costs.leaves))
        return expected_distances(probs.double(), costs, kind)
    check_probs("probs", probs)
    return probs.double() @ _checked(costs, probs)


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
