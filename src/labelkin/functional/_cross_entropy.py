"""Flat losses: cross entropy to a class or to class probabilities, and the baselines built on it.

Every function takes `logits` (..., K) before the softmax, computes in log space and returns one loss per sample (...,).
A `target` holds class positions (...,), or class probabilities (..., K) where the loss is linear in them.

A logit of -inf, or of the smallest finite number, masks its class. A masked class contributes nothing to the loss unless
it is the target itself, where the loss is infinite. If a method would give a masked class part of the target (label
smoothing, for example), that part is left out.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional import _kernels as kernels


def pick(values: Tensor, target: Tensor) -> Tensor:
    """Return `values[..., target]`: one entry of the last axis for each sample."""
    return values.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def is_soft(target: Tensor) -> bool:
    """Return whether a target holds class probabilities (..., K) rather than class positions (...,)."""
    return target.is_floating_point()


def is_masked(values: Tensor) -> Tensor:
    """Return a mask of the logits or log-probabilities of masked classes: -inf or near the smallest finite number."""
    return values < torch.finfo(values.dtype).min / 4


def without_masked(log_probs: Tensor, target: Tensor) -> Tensor:
    """Set the log-probabilities of masked classes to 0, except those that the target itself names."""
    masked = is_masked(log_probs)
    if is_soft(target):
        return log_probs.masked_fill(masked & (target == 0), 0)
    return log_probs.masked_fill(masked.scatter(-1, target.unsqueeze(-1), False), 0)


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """Return `sum_k weights_k values_k` (...,), where a weight of 0 cancels an infinite value."""
    return (weights * values.masked_fill((weights == 0) & is_masked(-values.abs()), 0)).sum(-1)


def expected(losses: Tensor, target: Tensor) -> Tensor:
    """Return each sample's loss from the losses (..., K) of all classes: picked, or averaged for a soft target."""
    return weighted_sum(target, losses) if is_soft(target) else pick(losses, target)


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Compute the cross entropy `-log p_y`, or `-sum_k t_k log p_k` for a soft target (002 Eq. 5).

    Args:
        logits: (..., K) before the softmax.
        target: class positions (...,) or class probabilities (..., K).

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import cross_entropy
        >>> cross_entropy(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([1, 0]))
        tensor([0.6931, 0.3133])
    """
    return expected(-F.log_softmax(logits, -1), target)


def expected_cost(logits: Tensor, target: Tensor, costs: Tensor) -> Tensor:
    """Compute the expected cost of the prediction, `sum_j p_j costs[y, j]`.

    Args:
        logits: (..., K) before the softmax.
        target: class positions (...,) or class probabilities (..., K).
        costs: (K, K) costs by true class (row) and answer (column). They may be negative and need not be symmetric.

    Returns:
        (...,) one cost per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import expected_cost
        >>> costs = torch.tensor([[0.0, 4.0], [1.0, 0.0]])
        >>> expected_cost(torch.zeros(2, 2), torch.tensor([0, 1]), costs)
        tensor([2.0000, 0.5000])
    """
    rows = target @ costs if is_soft(target) else costs[target]
    return (rows * torch.softmax(logits, -1)).sum(-1)


def soft_cross_entropy(logits: Tensor, rows: Tensor, target: Tensor | None = None) -> Tensor:
    """Compute the cross entropy to given rows, `-sum_k rows_k log p_k` (000 Eq. 1; 004 Eq. 3, 6 and 9).

    Args:
        logits: (..., K) before the softmax.
        rows: (..., K) target of each sample. Rows need not sum to 1.
        target: class positions or probabilities from which the rows were computed. If given, the weight of masked
            classes other than the target is left out; otherwise a positive entry for a masked class makes the loss infinite.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import soft_cross_entropy
        >>> soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.9, 0.1]]))
        tensor([0.6931])
    """
    log_probs = F.log_softmax(logits, -1)
    return -weighted_sum(rows, log_probs if target is None else without_masked(log_probs, target))


def smoothed_cross_entropy(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Compute cross entropy with uniform label smoothing (004 Eq. 2; Szegedy et al.).

    The target gives `1 - smoothing` to the class and divides the rest equally among all K classes, the class included.

    Args:
        logits: (..., K) before the softmax.
        target: class positions (...,) or class probabilities (..., K).
        smoothing: share of the target that is spread over all classes, in [0, 1].

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import smoothed_cross_entropy
        >>> smoothed_cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), 0.1)
        tensor([0.2269])
    """
    if kernels.classes_pay(logits, target):
        return kernels.class_target_cross_entropy(logits, target, _smoothed(logits, smoothing))
    log_probs = F.log_softmax(logits, -1)
    mass = target.sum(-1) if is_soft(target) else 1.0
    spread = without_masked(log_probs, target).mean(-1)
    return (1 - smoothing) * expected(-log_probs, target) - smoothing * mass * spread


def _smoothed(logits: Tensor, smoothing: float) -> kernels.GroupedTargets:
    """Return the class matrix of uniform label smoothing: all classes are one group."""
    classes = logits.shape[-1]
    share = logits.new_full((classes,), smoothing / classes, dtype=torch.promote_types(logits.dtype, torch.float32))
    group = torch.zeros(classes, dtype=torch.int32, device=logits.device)
    return kernels.GroupedTargets(group, share + (1 - smoothing), share, share)


def confidence_penalty(logits: Tensor, target: Tensor, strength: float) -> Tensor:
    """Compute cross entropy plus a penalty on low entropy, `strength * sum_k p_k log p_k` (002 Eq. 6; Pereyra et al.).

    Args:
        logits: (..., K) before the softmax.
        target: class positions (...,) or class probabilities (..., K).
        strength: weight of the negative entropy, at least 0.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import confidence_penalty
        >>> confidence_penalty(torch.zeros(1, 2), torch.tensor([0]), 0.5)
        tensor([0.3466])
    """
    log_probs = F.log_softmax(logits, -1)
    probs = log_probs.exp()
    negative_entropy = (probs * log_probs.masked_fill(is_masked(log_probs), 0)).sum(-1)
    mass = target.sum(-1) if is_soft(target) else 1.0
    return expected(-log_probs, target) + strength * mass * negative_entropy


def infogain(logits: Tensor, target: Tensor, matrix: Tensor) -> Tensor:
    """Compute the infogain loss `-sum_i H[i, y] log p_i` (004 Eq. 1); the identity matrix gives cross entropy.

    Args:
        logits: (..., K) before the softmax.
        target: class positions (...,) or class probabilities (..., K).
        matrix: (K, K) the infogain matrix H, whose column y is the target of class y.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import infogain
        >>> infogain(torch.zeros(1, 2), torch.tensor([1]), 2 * torch.eye(2))
        tensor([1.3863])
    """
    columns = matrix.t().to(logits.dtype)
    return soft_cross_entropy(logits, target @ columns if is_soft(target) else columns[target])


def mixed_rows(relation_rows: Tensor, eps: Tensor, target: Tensor) -> Tensor:
    """Compute rows of the mixed target matrix `(1 - eps) I + eps A` (004 Eq. 4 and 6).

    A class without related classes, whose row of A is zero, keeps its one-hot row.

    Args:
        relation_rows: (..., K) the rows `A[target]` of the relation.
        eps: (...,) share that each sample's class gives away, in [0, 0.5].
        target: (...,) class positions.

    Returns:
        (..., K) one row per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import mixed_rows
        >>> mixed_rows(torch.tensor([[0.0, 0.5, 0.5]]), torch.tensor([0.2]), torch.tensor([0]))
        tensor([[0.8000, 0.1000, 0.1000]])
    """
    known = relation_rows.sum(-1) > 0
    share = torch.where(known, eps, torch.zeros_like(eps)).unsqueeze(-1)
    one_hot = F.one_hot(target, relation_rows.shape[-1]).to(relation_rows.dtype)
    return (1 - share) * one_hot + share * relation_rows


def retrospection(
    logits: Tensor, target: Tensor, soft: Tensor, recorded: Tensor, *, tau: float, share: Tensor
) -> Tensor:
    """Compute `(1 - b) CE + b tau^2 KL(soft || softmax(logits / tau))` (LWR, Deng & Zhang).

    Samples without recorded probabilities get plain cross entropy.

    Args:
        logits: (..., K) before the softmax.
        target: (...,) class positions.
        soft: (..., K) the sample's own earlier probabilities at temperature `tau`; no gradient reaches them.
        recorded: (...,) bool, whether a sample has earlier probabilities.
        tau: temperature, above 0.
        share: the scalar b.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import retrospection
        >>> logits, soft = torch.zeros(1, 2), torch.tensor([[0.5, 0.5]])
        >>> retrospection(logits, torch.tensor([0]), soft, torch.tensor([True]), tau=5.0, share=torch.tensor(0.5))
        tensor([0.3466])
    """
    hard = cross_entropy(logits, target)
    log_probs = without_masked(F.log_softmax(logits / tau, -1), target)
    divergence = torch.xlogy(soft, soft).sum(-1) - weighted_sum(soft, log_probs)
    return torch.where(recorded, (1 - share) * hard + share * tau**2 * divergence, hard)


def huber_to_vectors(z: Tensor, vectors: Tensor) -> Tensor:
    """Compute the Huber loss (delta 1) between outputs and the vectors of their classes (Chen et al.).

    Args:
        z: (..., D) outputs.
        vectors: (..., D) the vector of each sample's class.

    Returns:
        (...,) one loss per sample, averaged over dimensions.

    Example:
        >>> import torch
        >>> from labelkin.functional import huber_to_vectors
        >>> huber_to_vectors(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([1.])
    """
    return F.huber_loss(z, vectors, reduction="none", delta=1.0).mean(-1)
