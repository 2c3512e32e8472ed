"""Learned mixing (004): the penalties as printed, and parametrisations that cannot leave their constraints."""

import torch
import torch.nn.functional as F
from torch import Tensor


def class_penalty(eps: Tensor, row_sums: Tensor, *, alpha: float, beta: float, gamma: float, p: float) -> Tensor:
    """The penalties of 004 Eq. 10 on `eps` (K,): rows that sum to 1, and a pull to .5 and to 0.

    `alpha sum_i (|p_i|_1 - 1)^2 + beta |eps - .5|_p^p + gamma |eps|_p^p`, with `|p_i|_1 = |1 - eps_i| + |eps_i| r_i`
    and `r_i` the sum of the relation's row. The alpha term is 0 for eps in [0, 1], and for p = 2 the other two alone pull
    eps to `.5 beta / (beta + gamma)`.
    """
    norms = (1 - eps).abs() + eps.abs() * row_sums
    pulls = beta * (eps - 0.5).abs().pow(p).sum() + gamma * eps.abs().pow(p).sum()
    return alpha * (norms - 1).square().sum() + pulls


def matrix_penalty(
    matrix: Tensor,
    margin: Tensor,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    eta: float,
    p: float,
    hinge: bool = False,
) -> Tensor:
    """The penalties of 004 Eq. 11 on a mixing matrix E (K, K) with margins `c` (K,).

    `alpha sum_i (sum_j e_ij - 1)^2 + beta |E - 1|_p^p + gamma |E|_p^p + eta sum_i ((k-1)(e_ii - c_i) - sum_{j!=i} e_ij)^2`.
    As printed the eta term is an equality that puts the diagonal of a row that sums to 1 at `(1 + (k-1) c) / k`; with
    `hinge` (ours) it is paid only where the diagonal falls short of that.
    """
    classes = matrix.shape[-1]
    diagonal = matrix.diagonal()
    lead = (classes - 1) * (diagonal - margin) - (matrix.sum(-1) - diagonal)
    shortfall = F.relu(-lead) if hinge else lead
    pulls = beta * (matrix - 1).abs().pow(p).sum() + gamma * matrix.abs().pow(p).sum()
    return alpha * (matrix.sum(-1) - 1).square().sum() + pulls + eta * shortfall.square().sum()


def bounded_eps(theta: Tensor) -> Tensor:
    """`eps = .5 sigmoid(theta)`: always inside (0, .5)."""
    return 0.5 * torch.sigmoid(theta)


def bounded_eps_inverse(eps: Tensor) -> Tensor:
    """The theta that gives `eps`; the ends of [0, .5] are moved inside by 1e-4 so that theta is finite."""
    return torch.logit((2 * eps).clamp(2e-4, 1 - 2e-4))


def largest_share(others: Tensor, margin: Tensor) -> Tensor:
    """The most a row may give away and still lead each other class by the margin: `(1 - c) / (1 + max_j q_j)`."""
    return (1 - margin) / (1 + others.max(-1).values)


def led_matrix(theta: Tensor, share_theta: Tensor, margin: Tensor) -> Tensor:
    """A matrix (K, K) whose rows are distributions and whose diagonal leads every other entry by more than `margin`.

    `q_i` is a softmax of `theta` over the other classes; row i gives away `m_i = sigmoid(share_theta_i)` of the largest
    share that keeps the lead, so `E_ij = m_i q_ij` and `E_ii = 1 - m_i`. An entry of -inf in `theta` stays 0.
    """
    classes = theta.shape[-1]
    itself = torch.eye(classes, dtype=torch.bool, device=theta.device)
    others = torch.softmax(theta.masked_fill(itself, float("-inf")), -1)
    share = torch.sigmoid(share_theta) * largest_share(others, margin)
    return share.unsqueeze(-1) * others + torch.diag_embed(1 - share)


def log_barrier(theta: Tensor) -> Tensor:
    """`-log x - log(1 - x)` of `x = sigmoid(theta)`, averaged: the named force that keeps learned mixing off its ends.

    The data term is linear in eps and cross entropy to the true class is smaller than to its kin, so exact bounds alone
    would drive eps to 0. This is the negative log density of a Beta(2, 2) prior on `eps / .5`, up to a constant.
    """
    return -(F.logsigmoid(theta) + F.logsigmoid(-theta)).mean()
