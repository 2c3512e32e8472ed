"""Torch operations: the terms of the label embedding network and their gradients in closed form (003 Eq. 7-13).

With p1, p2, t the softmax of z1, z2 and the embedding e, q that of z2 / tau, y the class and h' the derivative of the hinge
with respect to p2_y, the gradients of the five terms are

    hard: p1 - y    soft: p1 sum(t) - t    similarity: p2 - y    confidence: -h' p2_y (p2 - y)    embedding: t - q

on z1, z1, z2, z2 and e. In `soft`, t leaves out the classes that z1 masks, unless it masks the class itself.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._kernels.cpu_leaves import lowest


class Options(NamedTuple):
    """The constants of the terms; `rectified` applies ReLU to the embedding."""

    tau: float
    alpha: float
    p: float
    absolute: bool
    rectified: bool


class Found(NamedTuple):
    """The results of a step for each sample; its gradients overwrite z1, z2 and e."""

    terms: Tensor  # (n, 5): hard, soft, similarity, confidence, embedding
    right: Tensor  # (n,): whether z2 predicts the class
    predicted: Tensor  # (n,): what z1 predicts


def with_gradients(
    z1: Tensor, z2: Tensor, e: Tensor, target: Tensor, share: Tensor, coefficients: Tensor, options: Options
) -> Found:
    """Return the terms; z1, z2 and e become the gradients of `sum share * (terms @ coefficients)`.

    The embedding term counts only where z2 predicts the class.
    """
    first, second, embedding = (_wide(part) for part in (z1, z2, e))
    own = target[:, None]
    hard, soft, similarity, confidence, embedded = (share[:, None] * coefficients).unbind(-1)
    predicted, right = first.argmax(-1), second.argmax(-1) == target
    negative = embedding <= 0 if options.rectified else None
    if negative is not None:
        embedding.relu_()
    of_embedding = embedding.logsumexp(-1)
    taught = torch.exp(embedding - of_embedding[:, None])
    teacher = F.softmax(second / options.tau, -1)
    learned = of_embedding - _dot(teacher, embedding)
    torch.sub(taught, teacher, out=embedding).mul_((embedded * right)[:, None])
    if negative is not None:
        embedding.masked_fill_(negative, 0)
    del teacher, negative
    of_second = second.logsumexp(-1)
    own_log_prob = second.gather(1, own).squeeze(1) - of_second
    hinge, slope = _hinge(own_log_prob.exp(), options)
    factor = similarity - confidence * slope * own_log_prob.exp()
    second.sub_(of_second[:, None]).exp_().mul_(factor[:, None]).scatter_add_(1, own, -factor[:, None])
    of_first = first.logsumexp(-1)
    own_first = first.gather(1, own).squeeze(1)
    taught.masked_fill_((first < lowest(z1.dtype)).scatter_(1, own, False), 0)
    mass = taught.sum(-1)
    about = mass * of_first - torch.where(taught != 0, taught * first, 0).sum(-1)
    first.sub_(of_first[:, None]).exp_().mul_((hard + soft * mass)[:, None])
    first.addcmul_(taught, soft[:, None], value=-1).scatter_add_(1, own, -hard[:, None])
    unused = (share == 0)[:, None]
    if unused.device.type != "cpu" or unused.any():  # a row whose classes are all masked has NaN
        for part in (first, second, embedding):
            part.masked_fill_(unused, 0)
    for given, wide in ((z1, first), (z2, second), (e, embedding)):
        if wide is not given:
            given.copy_(wide)
    return Found(torch.stack([of_first - own_first, about, -own_log_prob, hinge, learned], -1), right, predicted)


def _wide(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Return `sum left * right` (n,), without the products in memory."""
    return torch.bmm(left[:, None], right[:, :, None]).flatten()


def _hinge(probs: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    """Return the confidence term and its derivative."""
    excess = probs - options.alpha
    if options.absolute:
        return excess.abs(), excess.sign()
    open_part = F.relu(excess)
    return open_part.pow(options.p), torch.where(excess > 0, options.p * open_part.pow(options.p - 1), 0)
