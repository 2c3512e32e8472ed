"""Learned mixing (004): the penalties as printed, and parametrizations that always satisfy the constraints."""

import torch
import torch.nn.functional as F
from torch import Tensor


def class_penalty(eps: Tensor, row_sums: Tensor, *, alpha: float, beta: float, gamma: float, p: float) -> Tensor:
    """Compute the penalties of 004 Eq. 10 on one eps per class: rows sum to 1, and eps is pulled to 0.5 and to 0.

    `alpha sum_i (|p_i|_1 - 1)^2 + beta |eps - .5|_p^p + gamma |eps|_p^p`, with `|p_i|_1 = |1 - eps_i| + |eps_i| r_i`
    and `r_i` the sum of the relation's row. The alpha term is 0 for eps in [0, 1], and for p = 2 the other two pull
    eps to `.5 beta / (beta + gamma)`.

    Args:
        eps: (K,) share that each class gives away.
        row_sums: (K,) sums of the relation's rows.
        alpha: weight of the penalty on row sums.
        beta: weight of the pull to 0.5.
        gamma: weight of the pull to 0.
        p: power of the last two.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> from labelkin.functional import class_penalty
        >>> class_penalty(torch.tensor([0.5]), torch.ones(1), alpha=1.0, beta=1.0, gamma=1.0, p=2.0)
        tensor(0.2500)
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
    """Compute the penalties of 004 Eq. 11 on a mixing matrix E.

    `alpha sum_i (sum_j e_ij - 1)^2 + beta |E - 1|_p^p + gamma |E|_p^p + eta sum_i ((k-1)(e_ii - c_i) - sum_{j!=i} e_ij)^2`.
    As printed the eta term is an equality that puts the diagonal of a row that sums to 1 at `(1 + (k-1) c) / k`; with
    `hinge` (our option) it applies only where the diagonal falls short of that.

    Args:
        matrix: (K, K) the mixing matrix.
        margin: (K,) the margins c by which the diagonal should lead.
        alpha: weight of the penalty on row sums.
        beta: weight of the pull to 1.
        gamma: weight of the pull to 0.
        eta: weight of the penalty on the lead of the diagonal.
        p: power of the beta and gamma terms.
        hinge: apply the eta term only where the diagonal leads by too little.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> from labelkin.functional import matrix_penalty
        >>> matrix_penalty(torch.eye(2), torch.zeros(2), alpha=1.0, beta=0.0, gamma=0.0, eta=1.0, p=2.0, hinge=True)
        tensor(0.)
    """
    classes = matrix.shape[-1]
    diagonal = matrix.diagonal()
    lead = (classes - 1) * (diagonal - margin) - (matrix.sum(-1) - diagonal)
    shortfall = F.relu(-lead) if hinge else lead
    pulls = beta * (matrix - 1).abs().pow(p).sum() + gamma * matrix.abs().pow(p).sum()
    return alpha * (matrix.sum(-1) - 1).square().sum() + pulls + eta * shortfall.square().sum()


def bounded_eps(theta: Tensor) -> Tensor:
    """Compute `eps = 0.5 sigmoid(theta)`, which lies inside (0, 0.5) as 004 Sec. 3 requires.

    Args:
        theta: unbounded parameters of any shape.

    Returns:
        eps in the same shape.

    Example:
        >>> import torch
        >>> from labelkin.functional import bounded_eps
        >>> bounded_eps(torch.tensor(0.0))
        tensor(0.2500)
    """
    return 0.5 * torch.sigmoid(theta)


def bounded_eps_inverse(eps: Tensor) -> Tensor:
    """Compute the theta for which `bounded_eps` gives eps.

    Args:
        eps: numbers in [0, 0.5]; the ends are moved inside by 1e-4, so that theta is finite.

    Returns:
        theta in the same shape.

    Example:
        >>> import torch
        >>> from labelkin.functional import bounded_eps, bounded_eps_inverse
        >>> bounded_eps(bounded_eps_inverse(torch.tensor(0.2)))
        tensor(0.2000)
    """
    return torch.logit((2 * eps).clamp(2e-4, 1 - 2e-4))


def largest_share(others: Tensor, margin: Tensor) -> Tensor:
    """Compute the largest share a row may give away and still lead by the margin: `(1 - c) / (1 + max_j q_j)`."""
    return (1 - margin) / (1 + others.max(-1).values)


def led_matrix(theta: Tensor, share_theta: Tensor, margin: Tensor) -> Tensor:
    """Compute a matrix whose rows are distributions and whose diagonal leads every other entry by more than `margin`.

    `q_i` is a softmax of `theta` over the other classes; row i gives away `m_i = sigmoid(share_theta_i)` of the largest
    share that keeps the lead, so `E_ij = m_i q_ij` and `E_ii = 1 - m_i` (the constraints of 004 Eq. 9; our form).

    Args:
        theta: (K, K) logits of the other classes; an entry of -inf stays 0. The diagonal is ignored.
        share_theta: (K,) logits of the share that each row gives away.
        margin: (K,) how far the diagonal must lead.

    Returns:
        (K, K) the matrix E.

    Example:
        >>> import torch
        >>> from labelkin.functional import led_matrix
        >>> led_matrix(torch.zeros(2, 2), torch.zeros(2), torch.zeros(2))
        tensor([[0.7500, 0.2500],
                [0.2500, 0.7500]])
    """
    classes = theta.shape[-1]
    itself = torch.eye(classes, dtype=torch.bool, device=theta.device)
    others = torch.softmax(theta.masked_fill(itself, float("-inf")), -1)
    share = torch.sigmoid(share_theta) * largest_share(others, margin)
    return share.unsqueeze(-1) * others + torch.diag_embed(1 - share)


def log_barrier(theta: Tensor) -> Tensor:
    """Compute the mean of `-log x - log(1 - x)` with `x = sigmoid(theta)`, which keeps learned mixing off its bounds.

    The data term is linear in eps, and cross entropy to the true class is smaller than to related ones, so exact bounds
    alone would drive eps to 0. This is the negative log density of a Beta(2, 2) prior on `eps / 0.5`, up to a constant.
    The prior is our addition to 004.

    Args:
        theta: logits of any shape.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> from labelkin.functional import log_barrier
        >>> log_barrier(torch.zeros(3))
        tensor(1.3863)
    """
    return -(F.logsigmoid(theta) + F.logsigmoid(-theta)).mean()
