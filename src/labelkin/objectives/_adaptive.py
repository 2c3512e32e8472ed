"""Learning with adaptive labels (001): the label of a class is the mean output of its samples."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError, check_choice, check_count, check_number
from labelkin.functional import (
    anchored_labels,
    as_it_was,
    class_sums,
    cross_entropy,
    distance_to,
    finite_rows,
    label_distances,
    leave_one_out_means,
    repel,
    running_means,
    sum_by_class,
)
from labelkin.objectives import _validation as inputs
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import FlatShared
from labelkin.relations import count_classes


class Preset(NamedTuple):
    """A rule with its defaults."""

    cosine: bool = False  # normalized outputs and labels that no gradient reaches, else distances to batch means
    every: int = 1
    warmup: int = 0
    repel: float = 0.0
    detach: bool = False
    momentum: float = 0.0
    memory: float = 0.0
    leave_one_out: bool = False
    scale: float | str = 1.0
    eval_labels: str = "epoch"
    share: float = 0.0
    start: float = 1.0  # of a learned scale


PRESETS = {
    "cosine": Preset(cosine=True, momentum=0.95, scale="learned", eval_labels="last", share=0.3, start=16.0),
    "memory": Preset(memory=30.0, leave_one_out=True, scale="learned"),
    "paper": Preset(eval_labels="last"),
}
OF_COSINE = ("share",)
OF_DISTANCES = ("every", "warmup", "repel", "detach", "memory", "leave_one_out", "eval_labels")
BEFORE_PRESETS = (
    *OF_DISTANCES,
    "momentum",
    "scale",
)  # options that existed before presets, when "memory" was the only rule


class AdaptiveLabels(Objective):
    """Train outputs z with labels that follow the class means of the outputs (LwAL, 001 Eq. 1-3, Alg. 1).

    - `preset="cosine"`, the default, is ours. Logits are `s z/|z| . label_c`, with a learned scale s. The label of a class
      is the unit vector of `(1 - b) e_c + b unit(mean_c - mean of means)`, where mean_c is a running mean of z/|z| and b
      grows from 0 to `share` over the first quarter of the epochs. No gradient flows through the labels.
    - `preset="paper"` is 001: `p = softmax(-||z - label||)`, the label of a class being the mean of its outputs in the
      batch. A step is that of the released code: if an update is due, labels become the class means of this batch, with
      gradients flowing through them (absent classes keep theirs); then the loss is computed. With few samples per class in
      a batch it reaches a fraction of one-hot's accuracy.
    - `preset="memory"` is the same with changes that help ordinary batches: labels that remember earlier batches, a
      sample's own label without the sample, and a learned scale. It was the default before presets existed, and is
      still used if an option below is given without a preset.

    Labels start at the first K unit vectors e_c. Without `begin_epoch`, which the training loop calls, b is `share`.

    Args:
        classes: number of classes, or their names.
        preset: "cosine", "memory" or "paper"; the options below have the preset's values unless they are given.
        dims: width D of the outputs, at least K; K by default. The paper's LwAL10 has 10 K.
        share: largest share b of the class means in the labels, for "cosine"; 0.3 by default.
        momentum: share of the old mean or label that an update keeps; 0.95 for "cosine", else 0.
        scale: factor of the logits; `"learned"` makes it a parameter that starts at 16 for "cosine", else at 1.
        every: steps between updates. An update is due when `(step - warmup) % every == 0`. This and the following options
            are not for "cosine".
        warmup: steps before the first update.
        repel: weight of the mean cosine similarity over pairs of different classes in steps with an update (Eq. 3; 10 in
            the paper).
        detach: let no gradient flow through the labels.
        memory: number of samples that the old label counts as, in addition to those of the batch (ours), so that 50 samples
            of a class move its label a lot and a single one little; 30 for "memory".
        leave_one_out: use the mean of the *other* samples of its class for a sample's own class. With one sample per class
            the label is the sample, and the published loss has no gradient.
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

    softmax_logits: ClassVar[bool] = False
    accumulates: bool = False
    revision: ClassVar[int] = 3  # "cosine" became the default

    _whole_batch: str | None = "its labels are means over the batch"

    labels: Tensor
    epoch_labels: Tensor
    step: Tensor
    refreshed: Tensor
    means: Tensor
    progress: Tensor

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        preset: str | None = None,
        dims: int | None = None,
        share: float | None = None,
        every: int | None = None,
        warmup: int | None = None,
        repel: float | None = None,
        detach: bool | None = None,
        momentum: float | None = None,
        memory: float | None = None,
        leave_one_out: bool | None = None,
        scale: float | str | None = None,
        eval_labels: str | None = None,
        **shared: Unpack[FlatShared],
    ) -> None:
        own: dict[str, Any] = {
            "share": share,
            "every": every,
            "warmup": warmup,
            "repel": repel,
            "detach": detach,
            "momentum": momentum,
        }
        own |= {"memory": memory, "leave_one_out": leave_one_out, "scale": scale, "eval_labels": eval_labels}
        given = {name: value for name, value in own.items() if value is not None}
        self.preset = preset_of({"preset": preset, **given})
        form = _checked(self.preset, given)
        count = count_classes(classes)
        width = count if dims is None else dims
        check_count("dims", width)
        if width < count:
            raise InputError(
                f"dims: expected at least {count}, so that every class starts at a unit vector, got {dims}."
            )
        if form.cosine:
            self._whole_batch = None
        super().__init__(classes, _width=width, **shared)
        self.dims, self.share, self.every, self.warmup, self.repel = (
            dims,
            form.share,
            form.every,
            form.warmup,
            form.repel,
        )
        self.detach, self.momentum, self.leave_one_out = form.detach, form.momentum, form.leave_one_out
        self.memory = form.memory
        self.scale, self.eval_labels = form.scale, form.eval_labels
        self.needs = frozenset({"refresh"}) if form.eval_labels == "epoch" else frozenset()
        self.log_scale = nn.Parameter(torch.tensor(form.start).log()) if form.scale == "learned" else None
        if form.cosine:
            self.register_buffer("means", torch.zeros(self.num_classes, self.width))
            self.register_buffer("progress", torch.ones(()))
            return
        self.register_buffer("labels", torch.eye(self.num_classes, self.width))
        self.register_buffer("epoch_labels", torch.zeros(self.num_classes, self.width))
        self.register_buffer("refreshed", torch.zeros((), dtype=torch.bool))
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    @classmethod
    def revision_of(cls, options: Mapping[str, Any]) -> int:
        """Return the revision; the presets other than "cosine" give the results of revision 2."""
        return cls.revision if preset_of(options) == "cosine" else 2

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        super().begin_epoch(epoch, epochs)
        if self.preset == "cosine":
            self.progress.fill_(min(1.0, 4 * epoch / epochs))

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        if not self.training or self.preset == "cosine":
            losses = cross_entropy(self._class_logits(outputs), batch.target)
            loss = self._only_term("cross_entropy", losses, batch)
            return loss._replace(state={"means": self._moved_means(outputs, batch)}) if self.training else loss
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

    def _class_logits(self, z: Tensor) -> Tensor:
        labels = self.current_labels().to(z.dtype)
        if self.preset == "cosine":
            with torch.autocast(z.device.type, enabled=False):
                return self._logits(-(F.normalize(z, dim=-1) @ labels.T))
        if self.training:  # a copy: a term of the loss may use the labels, and the step then replaces them
            labels = _finite_rows(as_it_was(labels), labels, torch.zeros_like(labels[:, 0], dtype=torch.bool))
        return self._logits(label_distances(z, labels))

    def _moved_means(self, z: Tensor, batch: Batch) -> Tensor:
        sums = class_sums(F.normalize(z.detach(), dim=-1), batch.target, batch.weight, self.num_classes)
        return running_means(self._sound_means().to(z.dtype), sums, self.momentum)

    def _sound_means(self) -> Tensor:
        means = as_it_was(self.means)
        return torch.where(finite_rows(means), means, torch.zeros_like(means))

    def current_labels(self) -> Tensor:
        """Return the labels for predictions, (K, D): in eval mode those of the epoch if any, else those of the last step."""
        if self.preset == "cosine":
            return anchored_labels(self._sound_means(), self.share * self.progress)
        if self.training or self.eval_labels == "last":
            return self.labels
        return torch.where(self.refreshed, self.epoch_labels, self.labels)

    def log_probs(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(self._class_logits(inputs.single(self, outputs)), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the learned labels, (K, D), or only the rows of `classes`."""
        return self.current_labels()[self._rows(classes, width=self.width)]

    def refresh(self, batches: Iterable[tuple[Tensor, ...]]) -> None:
        """Compute class means of the training set; a class without samples keeps its label. "cosine" needs none."""
        if self.preset == "cosine":
            return
        sums = sum_by_class(batches, self.num_classes, self.width)
        means = sums.means()
        means = torch.where(sums.present.unsqueeze(-1) & finite_rows(means), means, self.labels.to(means.dtype))
        self.commit({"epoch_labels": means, "refreshed": torch.ones_like(self.refreshed)})

    def _figures(self) -> dict[str, float]:
        return {} if self.log_scale is None else {"scale": float(self.log_scale.detach().exp())}

    def no_weight_decay(self) -> set[str]:
        return {"log_scale"} if self.log_scale is not None else set()


def preset_of(options: Mapping[str, Any]) -> str:
    """Return the preset that options name, or the one that they implied before presets existed."""
    given = options.get("preset")
    if given is not None:
        return str(given)
    return "memory" if any(options.get(name) is not None for name in BEFORE_PRESETS) else "cosine"


def _checked(preset: str, given: Mapping[str, Any]) -> Preset:
    """Return the preset with the options that were given, after checking them."""
    check_choice("preset", preset, tuple(PRESETS))
    for name in OF_DISTANCES if PRESETS[preset].cosine else OF_COSINE:
        if name in given:
            others = [other for other, form in PRESETS.items() if form.cosine != PRESETS[preset].cosine]
            raise InputError(
                f"{name}: does not apply to preset={preset!r}, got {given[name]!r}; leave it out, or use "
                f"preset={' or '.join(map(repr, others))}."
            )
    form = PRESETS[preset]._replace(**given)
    check_count("every", form.every)
    check_count("warmup", form.warmup, least=0)
    check_number("repel", form.repel, low=0)
    check_number("momentum", form.momentum, low=0, high=1)
    check_number("memory", form.memory, low=0)
    check_number("share", form.share, low=0, high=1)
    check_choice("eval_labels", form.eval_labels, ("epoch", "last"))
    if isinstance(form.scale, str):
        check_choice("scale", form.scale, ("learned",))
    else:
        check_number("scale", form.scale, low=0, open_low=True)
    return form


def _finite_rows(labels: Tensor, means: Tensor, present: Tensor) -> Tensor:
    """Replace labels that are not finite, which earlier versions could save, by class means or unit vectors."""
    start = torch.eye(*labels.shape, dtype=labels.dtype, device=labels.device)
    fallback = torch.where(present.unsqueeze(-1) & finite_rows(means), means, start)
    return torch.where(finite_rows(labels), labels, fallback)
