"""The arguments and the result of `Objective.compute`."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """The targets of a batch, with all leading axes flattened into one of length n.

    Attributes:
        target: (n,) class positions, or (n, K) class probabilities.
        weight: (n,) sample weights. Padding and ignored samples have weight 0.
        node: (n,) indices of tree nodes where the class is unknown, and -1 elsewhere; or None.
        index: (n,) positions of the samples in the training set; or None.

    >>> import torch
    >>> Batch(target=torch.tensor([0, 2]), weight=torch.ones(2)).node is None
    True
    """

    target: Tensor
    weight: Tensor
    node: Tensor | None = None
    index: Tensor | None = None  # type: ignore[assignment]  # hides tuple.index


class Loss(NamedTuple):
    """A loss with its parts, as `Objective.loss_terms` returns it.

    Attributes:
        total: The loss to call `backward()` on: a scalar, or one loss per sample with `reduction="none"`.
        terms: The parts of the loss by name, before they are weighted, and other values worth logging.
        state: New values of the objective's buffers, by name. `loss_terms` stores them in training mode.
        predicted: Predicted class positions, if the loss was computed in chunks and no full outputs exist.

    >>> import torch
    >>> from labelkin import PretrainedLabelEmbedding
    >>> criterion = PretrainedLabelEmbedding(3, embedding=torch.eye(3))
    >>> loss = criterion.loss_terms(torch.zeros(2, 3), torch.tensor([0, 1]))
    >>> sorted(loss.terms)
    ['hard', 'soft']
    >>> bool(loss.total == loss.terms["hard"] + loss.terms["soft"])
    True
    """

    total: Tensor
    terms: dict[str, Tensor]
    state: dict[str, Tensor] | None = None
    predicted: Tensor | None = None
