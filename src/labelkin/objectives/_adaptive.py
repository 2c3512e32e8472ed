"""Learning with adaptive labels (001): the label of a class is the mean output of its samples."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError, check_choice, check_count, check_number
from labelkin.functional import (
    as_it_was,
    class_sums,
    cross_entropy,
    distance_to,
    finite_rows,
    label_distances,
    leave_one_out_means,
    repel,
    sum_by_class,
)
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import FlatShared
from labelkin.relations import count_classes


class AdaptiveLabels(Objective):
    """Train outputs z with adaptive labels, `p = softmax(-scale ||z - label||)` (LwAL, 001 Eq. 1-3, Alg. 1).

    The label of a class is the mean of its outputs in the batch. A step is that of the released code: if an update is due,
    labels become the class means of this batch, with gradients flowing through them (absent classes keep theirs); then the
    loss is computed. Labels start at the first K unit vectors. The defaults come from an ablation at a batch size of 128
    with 100 classes (docs/measured.md), where the published rule (`memory=0, leave_one_out=False, scale=1`) reaches a third
    of one-hot's accuracy; with 50 samples per class both are level.

    Args:
        classes: number of classes, or their names.
        dims: width D of the outputs, at least K; K by default. The paper's LwAL10 has 10 K.
        every: steps between updates. An update is due when `(step - warmup) % every == 0`.
        warmup: steps before the first update.
        repel: weight of the mean cosine similarity over pairs of different classes in steps with an update (Eq. 3; 10 in
            the paper).
        detach: let no gradient flow through the labels.
        momentum: share of the old label that an update keeps.
        memory: number of samples that the old label counts as, in addition to those of the batch (ours), so that 50 samples
            of a class move its label a lot and a single one little.
        leave_one_out: use the mean of the *other* samples of its class for a sample's own class. With one sample per class
            the label is the sample, and the published loss has no gradient.
        scale: factor of the distances; `"learned"` makes it a parameter that starts at 1.
        eval_labels: `"epoch"` predicts with class means of the training set, computed in eval mode after each epoch
            (`refresh`); `"last"` with the labels of the last step, as the paper did.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also returns `cross_entropy`, and `repel` if it has a weight.

    Example:
        >>> import torch
        >>> from labelkin import AdaptiveLabels
        >>> head = AdaptiveLabels(classes=3, features=4)
        >>> head.loss(head(torch.randn(8, 4)), torch.randint(3, (8,))).backward()
        >>> head.label_vectors().shape
        torch.Size([3, 3])
    """

    accumulates: ClassVar[bool] = False
    revision: ClassVar[int] = 2  # the defaults of memory, leave_one_out and scale

    _whole_batch = "its labels are means over the batch"

    labels: Tensor
    epoch_labels: Tensor
    step: Tensor
    refreshed: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        dims: int | None = None,
        every: int = 1,
        warmup: int = 0,
        repel: float = 0.0,
        detach: bool = False,
        momentum: float = 0.0,
        memory: float = 30.0,
        leave_one_out: bool = True,
        scale: float | str = "learned",
        eval_labels: str = "epoch",
        **shared: Unpack[FlatShared],
    ) -> None:
        count = count_classes(classes)
        check_count("every", every)
        check_count("warmup", warmup, least=0)
        check_number("repel", repel, low=0)
        check_number("momentum", momentum, low=0, high=1)
        check_number("memory", memory, low=0)
        check_choice("eval_labels", eval_labels, ("epoch", "last"))
        if isinstance(scale, str):
            check_choice("scale", scale, ("learned",))
        else:
            check_number("scale", scale, low=0, open_low=True)
        width = count if dims is None else dims
        check_count("dims", width)
        if width < count:
            raise InputError(
                f"dims: expected at least {count}, so that every class starts at a unit vector, got {dims}."
            )
        super().__init__(classes, _width=width, **shared)
        self.dims, self.every, self.warmup, self.repel = dims, every, warmup, repel
        self.detach, self.momentum, self.leave_one_out = detach, momentum, leave_one_out
        self.memory = memory
        self.scale, self.eval_labels = scale, eval_labels
        self.needs = frozenset({"refresh"}) if eval_labels == "epoch" else frozenset()
        self.log_scale = nn.Parameter(torch.zeros(())) if scale == "learned" else None
        self.register_buffer("labels", torch.eye(self.num_classes, self.width))
        self.register_buffer("epoch_labels", torch.zeros(self.num_classes, self.width))
        self.register_buffer("refreshed", torch.zeros((), dtype=torch.bool))
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        if not self.training:
            logits = self._logits(label_distances(outputs, self.current_labels().to(outputs.dtype)))
            return self._only_term("cross_entropy", cross_entropy(logits, batch.target), batch)
        z, target, weight = outputs, batch.target, batch.weight
        step = as_it_was(self.step)
        due = (step >= self.warmup) & ((step - self.warmup) % self.every == 0)
        sums = class_sums(z, target, weight, self.num_classes)
        kept = _finite_rows(as_it_was(self.labels).to(z.dtype), sums.means().detach(), sums.present)
        updated = self._blend(kept, sums.means(), sums.weight, due & sums.present)
        distances = label_distances(z, updated.detach() if self.detach else updated)
        if self.leave_one_out:
            own, alone = leave_one_out_means(z, target, weight, sums)
            own = self._blend(kept[target], own, sums.weight[target] - weight, due & ~alone)
            own_distance = distance_to(z, own.detach() if self.detach else own)
            distances = distances.scatter(-1, target.unsqueeze(-1), own_distance.unsqueeze(-1))
        data = self._reduce(cross_entropy(self._logits(distances), target), batch)
        # A class mean that is not finite, from a bad sample, is not kept: the loss shows it, and the next step is sound.
        state = {"labels": torch.where(finite_rows(updated), updated, kept).detach(), "step": self.step + 1}
        if not self.repel:
            return Loss(data, {"cross_entropy": data}, state)
        repelling = torch.where(due, repel(z, target, weight, self.num_classes), torch.zeros_like(data))
        repelling = self._batch_term(repelling, batch)
        return Loss(data + self.repel * repelling, {"cross_entropy": data, "repel": repelling}, state)

    def _blend(self, kept: Tensor, means: Tensor, counts: Tensor, move: Tensor) -> Tensor:
        """Move kept labels toward class means where `move` is true; without memory and momentum they become the means."""
        step: Tensor | float = 1 - self.momentum
        if self.memory:
            step = (step * counts / (counts + self.memory)).to(means.dtype).unsqueeze(-1)
        return torch.where(move.unsqueeze(-1), (1 - step) * kept + step * means, kept)

    def _logits(self, distances: Tensor) -> Tensor:
        if self.log_scale is not None:
            return -self.log_scale.exp() * distances
        return -float(self.scale) * distances

    def current_labels(self) -> Tensor:
        """Return the labels that predict, (K, D): in eval mode those of the epoch if any, else those of the last step."""
        if self.training or self.eval_labels == "last":
            return self.labels
        return torch.where(self.refreshed, self.epoch_labels, self.labels)

    def log_probs(self, outputs: Tensor) -> Tensor:
        z = inputs.single(self, outputs)
        labels = self.current_labels().to(z.dtype)
        if self.training:  # a term of the loss may use these, and the step then replaces the labels
            labels = as_it_was(labels).clone()
        return F.log_softmax(self._logits(label_distances(z, labels)), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the learned labels, (K, D), or only the rows of `classes`."""
        return self.current_labels()[self._rows(classes, width=self.width)]

    def refresh(self, batches: Iterable[tuple[Tensor, ...]]) -> None:
        """Compute class means of the training set; a class without samples keeps its label."""
        sums = sum_by_class(batches, self.num_classes, self.width)
        means = sums.means()
        means = torch.where(sums.present.unsqueeze(-1) & finite_rows(means), means, self.labels.to(means.dtype))
        self.commit({"epoch_labels": means, "refreshed": torch.ones_like(self.refreshed)})

    def _figures(self) -> dict[str, float]:
        return {} if self.log_scale is None else {"scale": float(self.log_scale.detach().exp())}

    def no_weight_decay(self) -> set[str]:
        return {"log_scale"} if self.log_scale is not None else set()


def _finite_rows(labels: Tensor, means: Tensor, present: Tensor) -> Tensor:
    """Replace labels that are not finite, which earlier versions could save, by class means or unit vectors."""
    start = torch.eye(*labels.shape, dtype=labels.dtype, device=labels.device)
    fallback = torch.where(present.unsqueeze(-1) & finite_rows(means), means, start)
    return torch.where(finite_rows(labels), labels, fallback)
