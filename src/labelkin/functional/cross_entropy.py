"""Flat losses: cross entropy to one class, to a row of a class matrix, and with a penalty on confidence.

Every function takes `logits` (..., K) before the softmax, works in log space and returns one loss a sample (...,).
A `target` is class positions (...,), or class probabilities (..., K) where the loss is linear in them.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def pick(values: Tensor, target: Tensor) -> Tensor:
    """`values[..., target]`: one entry of the last axis for each sample."""
    return values.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def is_soft(target: Tensor) -> bool:
    """Whether a target holds class probabilities (..., K) rather than class positions (...,)."""
    return target.is_floating_point()


def expected(losses: Tensor, target: Tensor) -> Tensor:
    """The loss of each sample, from the losses (..., K) that each class would have: picked, or averaged if soft."""
    return (losses * target).sum(-1) if is_soft(target) else pick(losses, target)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """`-log p_y`, or `-sum_k t_k log p_k` for a soft target."""
    return expected(-F.log_softmax(logits, -1), target)


def soft_cross_entropy(logits: Tensor, rows: Tensor) -> Tensor:
    """`-sum_k rows_k log p_k` (000 Eq. 1; 004 Eq. 3, 6 and 9 by the choice of rows); rows need not sum to 1."""
    return -(rows * F.log_softmax(logits, -1)).sum(-1)


def smoothed_cross_entropy(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Uniform label smoothing: `1 - smoothing` on the class, the rest shared by all K classes, it included."""
    log_probs = F.log_softmax(logits, -1)
    mass = target.sum(-1) if is_soft(target) else 1.0
    return (1 - smoothing) * expected(-log_probs, target) - smoothing * mass * log_probs.mean(-1)


def confidence_penalty(logits: Tensor, target: Tensor, strength: float) -> Tensor:
    """Cross entropy plus `strength * sum_k p_k log p_k` (002 Eq. 6, Pereyra et al.)."""
    log_probs = F.log_softmax(logits, -1)
    finite = log_probs.clamp_min(torch.finfo(log_probs.dtype).min)  # p log p is 0 for a class masked with -inf
    negative_entropy = (log_probs.exp() * finite).sum(-1)
    mass = target.sum(-1) if is_soft(target) else 1.0
    return expected(-log_probs, target) + strength * mass * negative_entropy


def infogain(logits: Tensor, target: Tensor, matrix: Tensor) -> Tensor:
    """`-sum_i H[i, y] log p_i` (004 Eq. 1): column `y` of any matrix; the identity gives cross entropy."""
    columns = matrix.t().to(logits.dtype)
    return soft_cross_entropy(logits, target @ columns if is_soft(target) else columns[target])


def mixed_rows(relation_rows: Tensor, eps: Tensor, target: Tensor) -> Tensor:
    """Rows `(1 - eps) I + eps A` of the classes in `target` (004 Eq. 4 and 6); a zero row of A stays one-hot.

    `relation_rows` is `A[target]` (..., K) and `eps` one weight a sample (...,).
    """
    known = relation_rows.sum(-1) > 0
    share = torch.where(known, eps, torch.zeros_like(eps)).unsqueeze(-1)
    one_hot = F.one_hot(target, relation_rows.shape[-1]).to(relation_rows.dtype)
    return (1 - share) * one_hot + share * relation_rows
