"""The terms of the label embedding network with their gradients, in one step without autograd."""

from torch import Tensor

from labelkin.functional._kernels.cpu_embedding import Found, Options
from labelkin.functional._kernels.fused import module


def embedding_with_gradients(
    z1: Tensor, z2: Tensor, e: Tensor, target: Tensor, share: Tensor, coefficients: Tensor, options: Options
) -> Found:
    """Return the five terms of `labelkin.functional.embedding_terms`; z1, z2 and e are overwritten with gradients.

    Args:
        z1: (n, K) logits of the head that predicts; contiguous, as z2 and e.
        z2: (n, K) logits of the similarity head.
        e: (n, K) embeddings of the samples' classes.
        target: (n,) class positions.
        share: (n,) factors of the samples, in float32, or float64 if z1 is.
        coefficients: (5,) factors of the terms, in the same dtype. The last term counts where z2 predicts the class.
        options: the constants of the terms.

    Returns:
        The terms, where z2 is right, and what z1 predicts.
    """
    found: Found = module("embedding", z1).with_gradients(z1, z2, e, target, share, coefficients, options)
    return found
