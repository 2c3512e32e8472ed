"""001's baselines: learning with retrospection (Deng & Zhang) and static labels (Chen et al.)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional.cross_entropy import cross_entropy


def retrospection(
    logits: Tensor, target: Tensor, soft: Tensor, recorded: Tensor, *, tau: float, share: Tensor
) -> Tensor:
    """`(1 - b) CE + b tau^2 KL(soft || softmax(logits / tau))` with share `b`; plain CE for samples not yet recorded.

    `soft` (..., K) are the sample's own earlier probabilities at temperature `tau`, constants; `recorded` (...,) is bool.
    """
    hard = cross_entropy(logits, target)
    divergence = (torch.xlogy(soft, soft) - soft * F.log_softmax(logits / tau, -1)).sum(-1)
    return torch.where(recorded, (1 - share) * hard + share * tau**2 * divergence, hard)


def huber_to_vectors(z: Tensor, vectors: Tensor) -> Tensor:
    """The Huber loss (delta 1) between `z` and the vector of its class, averaged over dimensions."""
    return F.huber_loss(z, vectors, reduction="none", delta=1.0).mean(-1)
