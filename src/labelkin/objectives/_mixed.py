"""Mixed cross entropy (004 Eq. 3-11): a given or learned part of a class's target goes to related classes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import torch
from torch import Tensor

from labelkin._checks import check_choice, check_number
from labelkin.objectives._base import Objective
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._class_targets import class_target_losses
from labelkin.objectives._mixing import Penalty, mixing_of
from labelkin.objectives._options import FlatShared
from labelkin.relations import as_rows

if TYPE_CHECKING:
    from labelkin.objectives._context import Context

COLLAPSED = (0.01, 0.49)  # outside this range, a learned mean eps has reached a bound


class MixedCrossEntropy(Objective):
    """Train with cross entropy to row y of `T = (1 - eps) I + eps A` (004 Eq. 3-4).

    A class without related classes keeps its one-hot target.

    Args:
        classes: number of classes, or their names.
        relation: K x K numbers or `Rows`, the matrix A of related classes.
        eps: share of the target that goes to related classes, in [0, 0.5]: a number, one per class, or a matrix.
        mixing: `"shared"` for one eps (MCEL), `"class"` for one per class (SG-MCEL, Eq. 6), `"matrix"` for all of T
            (GMCEL, Eq. 9).
        learn: learn the mixing, starting at `eps`.
        constraint: `"exact"` learns `eps = 0.5 sigmoid(theta)`, or a matrix whose rows are distributions with a leading
            diagonal. `"penalty"` uses Eq. 10 and Eq. 11 as printed.
        margin: how far the diagonal of a matrix must lead; 0 by default for `"exact"`, 0.75 for `"penalty"`, where Eq. 11
            puts the diagonal at `(1 + (k-1) margin) / k`.
        prior: weight of a Beta(2, 2) prior on `eps / 0.5` under `"exact"`. Without it the loss, which is linear in eps,
            drives eps to 0. The prior and its weight are our choice.
        alpha, beta, gamma, eta, p: weights and power of Eq. 10 and 11. No values are published. With beta and gamma much
            below 1, eps crosses 0 and the loss is unbounded below.
        hinge_margin: apply the last term of Eq. 11 only where the diagonal leads by too little.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; `loss_terms` also `cross_entropy`, and with `learn` also `force` and `mean_eps`.

    Example:
        >>> import torch
        >>> from labelkin import MixedCrossEntropy
        >>> head = MixedCrossEntropy(classes=2, relation=[[0, 1], [1, 0]], eps=0.3, learn=True)
        >>> head.loss(torch.randn(8, 2), torch.randint(2, (8,))).backward()
        >>> round(head.mean_eps().item(), 3), head.collapsed()
        (0.3, False)
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        relation: Any,
        eps: Any = 0.2,
        mixing: str = "shared",
        learn: bool = False,
        constraint: str = "exact",
        margin: float | None = None,
        prior: float = 0.5,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        eta: float = 1.0,
        p: float = 2.0,
        hinge_margin: bool = False,
        **shared: Unpack[FlatShared],
    ) -> None:
        check_choice("mixing", mixing, ("shared", "class", "matrix"))
        check_choice("constraint", constraint, ("exact", "penalty"))
        if margin is None:
            margin = 0.75 if constraint == "penalty" else 0.0
        check_number("margin", margin, low=0, high=0.99)
        check_number("p", p, low=1)
        for name, value in {"prior": prior, "alpha": alpha, "beta": beta, "gamma": gamma, "eta": eta}.items():
            check_number(name, value, low=0)
        if learn:
            self._whole_batch = "the penalty on what it learns is one number for the whole batch"
        super().__init__(classes, **shared)
        self.mixing, self.learn, self.constraint, self.eps = mixing, learn, constraint, eps
        self.margin, self.prior, self.hinge_margin = margin, prior, hinge_margin
        self.alpha, self.beta, self.gamma, self.eta, self.p = alpha, beta, gamma, eta, p
        self.relation = as_rows(relation, self.num_classes).to(torch.get_default_dtype())
        free = constraint if learn else None
        self.targets = mixing_of(mixing, self.relation, eps, margin=margin, free=free)

    @classmethod
    def defaults(cls, context: "Context", options: Mapping[str, Any]) -> dict[str, Any]:
        given = super().defaults(context, options)
        return given if "relation" in options else {**given, "relation": context.similarity()}

    def mean_eps(self) -> Tensor:
        """Return the share given away, averaged over the classes that have related ones."""
        return self.targets.class_eps().sum() / (~self.relation.isolated()).sum().clamp_min(1)

    def _figures(self) -> dict[str, float]:
        return {"mean_eps": float(self.mean_eps().detach())} if self.learn else {}

    def collapsed(self) -> bool:
        """Return whether the mean share ended at a bound: below 0.01 or above 0.49."""
        low, high = COLLAPSED
        return not low <= float(self.mean_eps().detach()) <= high

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        rows = partial(self.targets, batch.target, outputs.dtype)
        data = self._reduce(class_target_losses(outputs, batch.target, self.targets.class_targets, rows), batch)
        if not self.learn:
            return Loss(data, {"cross_entropy": data})
        force = self.prior * self.targets.prior() if self.constraint == "exact" else self._penalty()
        force = self._batch_term(force, batch)
        return Loss(data + force, {"cross_entropy": data, "force": force, "mean_eps": self.mean_eps().detach()})

    def _penalty(self) -> Tensor:
        weights = Penalty(self.alpha, self.beta, self.gamma, self.eta, self.p, self.hinge_margin)
        return self.targets.penalty(weights)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the targets, (K, K), or only the rows of `classes`."""
        rows = self._rows(classes)
        vectors: Tensor = self.targets(rows, torch.get_default_dtype())
        return vectors.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        for name in [name for name in state_dict if name.startswith(f"{prefix}targets.relation.")]:
            del state_dict[name]  # earlier versions saved the relation a second time here
        super()._load_from_state_dict(state_dict, prefix, *args)

    def no_weight_decay(self) -> set[str]:
        return {name for name, _ in self.named_parameters() if name.startswith("targets.")}
