"""Online label smoothing (OLS, Zhang et al., 2021): soft labels of classes from the predictions of the last epoch."""

from collections.abc import Sequence
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, check_number
from labelkin.functional import DenseTargets, as_it_was, class_sums, cross_entropy, finite_rows
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._class_targets import class_target_losses
from labelkin.objectives._options import FlatShared


class OnlineLabelSmoothing(Objective):
    """Train with `share * CE(z, y) + (1 - share) * CE(z, S_y)`, where S_y is learned from the last epoch (Zhang et al., 2021).

    S_y is the mean of `softmax(z)` over the samples of class y that were classified correctly in the last epoch ("Delving deep
    into label smoothing", Eq. 4-7). In the first epoch, and for a class without such samples, it is uniform. The samples of all
    processes count, with their weights. Call `begin_epoch` before every epoch: it replaces the soft labels by the means of the
    last epoch.

    Args:
        classes: number of classes, or their names.
        share: weight of the cross entropy to the class itself, from 0 to 1; 0.5 is the authors' value.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also the terms `hard` and `soft`.

    Example:
        >>> import torch
        >>> from labelkin import OnlineLabelSmoothing
        >>> criterion = OnlineLabelSmoothing(classes=3)
        >>> criterion.begin_epoch(0, 10)
        >>> loss = criterion.loss(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0]))
        >>> criterion.begin_epoch(1, 10)
        >>> criterion.soft_labels[0]  # the softmax of that sample
        tensor([0.6652, 0.2447, 0.0900])
    """

    soft_labels: Tensor
    sums: Tensor
    counts: Tensor
    begun: Tensor

    def __init__(self, classes: int | Sequence[str], *, share: float = 0.5, **shared: Unpack[FlatShared]) -> None:
        check_number("share", share, low=0, high=1)
        super().__init__(classes, **shared)
        self.share = share
        k = self.num_classes
        self.register_buffer("soft_labels", torch.full((k, k), 1 / k))
        self.register_buffer("sums", torch.zeros(k, k))  # of the probabilities of correct samples in this epoch
        self.register_buffer("counts", torch.zeros(k))  # the weights of these samples
        self.register_buffer("begun", torch.zeros((), dtype=torch.bool))
        self._started = False

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        """Replace the soft labels by the means of the epoch that ended; before the first epoch, they are not changed."""
        super().begin_epoch(epoch, epochs)
        seen = self.counts.unsqueeze(-1) > 0
        means = torch.where(seen, self.sums / self.counts.unsqueeze(-1), 1 / self.num_classes)
        self.commit(
            {
                "soft_labels": torch.where(seen.any(), means, self.soft_labels),
                "sums": torch.zeros_like(self.sums),
                "counts": torch.zeros_like(self.counts),
                "begun": torch.ones_like(self.begun),
            }
        )
        self._started = True

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        labels = as_it_was(self.soft_labels)
        hard = cross_entropy(outputs, batch.target)
        soft = class_target_losses(
            outputs, batch.target, lambda: DenseTargets(labels), lambda: labels.to(outputs.dtype)[batch.target]
        )
        total = self._reduce(self.share * hard + (1 - self.share) * soft, batch)
        terms = {"hard": self._reduce(hard, batch), "soft": self._reduce(soft, batch)}
        if not self.training:
            return Loss(total, terms)
        self._check_started()
        return Loss(total, terms, self._recorded(outputs.detach(), batch))

    def _recorded(self, outputs: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the sums of this epoch with the correct samples of the batch."""
        probs = F.softmax(outputs, -1)
        sound = finite_rows(probs)  # a bad sample shows in the loss, and must not stay in the labels
        right = (outputs.argmax(-1) == batch.target) & sound.squeeze(-1)
        found = class_sums(torch.where(sound, probs, 0.0), batch.target, batch.weight * right, self.num_classes)
        return {"sums": self.sums + found.total, "counts": self.counts + found.weight}

    def _check_started(self) -> None:
        if self._started or torch.compiler.is_compiling():
            return
        self._started = bool(self.begun)  # a state that was loaded has begun; read once
        if not self._started:
            raise InputError(
                "OnlineLabelSmoothing: call begin_epoch(epoch, epochs) before the first step of every epoch."
            )

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the targets (K, K), `share` on the class itself and the rest by the soft labels, or only some rows."""
        rows = self._rows(classes)
        one_hot = F.one_hot(rows, self.num_classes).to(self.soft_labels.dtype)
        return self.share * one_hot + (1 - self.share) * self.soft_labels[rows]
