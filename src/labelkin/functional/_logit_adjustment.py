"""Logit adjustment (Menon et al., Long-Tail Learning via Logit Adjustment, ICLR 2021)."""

from torch import Tensor


def adjusted_logits(logits: Tensor, log_priors: Tensor, *, tau: float = 1.0) -> Tensor:
    """Compute `z_k + tau log pi_k`, the logits whose cross entropy is the logit-adjusted loss (Menon et al. 2021, Eq. 10).

    A network that is trained with the softmax cross entropy of these logits and predicts with the largest of its own logits
    minimizes the balanced error, the mean over the classes of their error rates, at `tau = 1`.

    Args:
        logits: (..., K) logits.
        log_priors: (K,) logarithms of the shares of the classes.
        tau: Strength of the adjustment; 0 does not change the logits.

    Returns:
        (..., K) adjusted logits in the dtype of `logits`.

    Example:
        >>> import torch
        >>> from labelkin.functional import adjusted_logits
        >>> adjusted_logits(torch.zeros(1, 2), torch.tensor([0.75, 0.25]).log()).softmax(-1)
        tensor([[0.7500, 0.2500]])
    """
    return logits + tau * log_priors.to(logits)
