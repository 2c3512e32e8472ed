"""Bidirectional logits tree (BiLT, Lu et al.): the decision of least expected cost inside the loss."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._cross_entropy import cross_entropy, is_soft, soft_cross_entropy


class CostTerms(NamedTuple):
    """The two losses (...,) of one level of BiLT.

    Example:
        >>> import torch
        >>> from labelkin.functional import CostTerms
        >>> CostTerms(hard=torch.zeros(2), cost=torch.ones(2)).cost
        tensor([1., 1.])
    """

    hard: Tensor  # cross entropy of the logits
    cost: Tensor  # cross entropy of the scores by cost to softened targets


def cost_scores(logits: Tensor, costs: Tensor, delta: Tensor, *, beta: float) -> Tensor:
    """Compute scores by expected cost with learned corrections, `s = (beta Delta - D) p` (BiLT).

    With Delta = 0 a score is minus the expected cost of a decision, so that the largest is the decision of CRM.

    Args:
        logits: (..., K) before the softmax.
        costs: (K, K) the costs D: row j of decision j.
        delta: (K, K) the corrections Delta.
        beta: weight of the corrections.

    Returns:
        (..., K) scores.

    Example:
        >>> import torch
        >>> from labelkin.functional import cost_scores
        >>> cost_scores(torch.zeros(1, 2), 1 - torch.eye(2), torch.zeros(2, 2), beta=0.5)
        tensor([[-0.5000, -0.5000]])
    """
    return F.softmax(logits, -1) @ (beta * delta - costs).T


def cost_targets(costs: Tensor, *, eps: float, gamma: float) -> Tensor:
    """Compute the softened targets of BiLT, `(1 - eps) e_y + eps softmax(-gamma D_y)`, for all classes.

    Args:
        costs: (K, K) the costs D.
        eps: share of the softened part, in [0, 1].
        gamma: how fast its weights fall with cost, at least 0.

    Returns:
        (K, K) targets, row y for class y.

    Example:
        >>> import torch
        >>> from labelkin.functional import cost_targets
        >>> cost_targets(1 - torch.eye(2), eps=0.5, gamma=0.0)
        tensor([[0.7500, 0.2500],
                [0.2500, 0.7500]])
    """
    own = torch.eye(len(costs), dtype=costs.dtype, device=costs.device)
    return (1 - eps) * own + eps * F.softmax(-gamma * costs, -1)


def cost_terms(
    logits: Tensor, target: Tensor, costs: Tensor, delta: Tensor, targets: Tensor, *, beta: float
) -> CostTerms:
    """Compute `CE(z, y)` and `CE(s, y~)` of one level, with `s = (beta Delta - D) p` (BiLT).

    Args:
        logits: (..., K) the logits z of the level.
        target: class positions (...,) or class probabilities (..., K) in the level.
        costs: (K, K) the costs D.
        delta: (K, K) the corrections Delta.
        targets: (K, K) the softened targets, whose row y is y~; see `cost_targets`.
        beta: weight of the corrections.

    Returns:
        `CostTerms` with one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import cost_terms
        >>> eye = torch.eye(2)
        >>> cost_terms(torch.zeros(1, 2), torch.tensor([0]), 1 - eye, torch.zeros(2, 2), eye, beta=0.5).cost
        tensor([0.6931])
    """
    rows = target @ targets if is_soft(target) else targets[target]
    scores = cost_scores(logits, costs, delta, beta=beta)
    return CostTerms(cross_entropy(logits, target), soft_cross_entropy(scores, rows))
