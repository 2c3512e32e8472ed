"""Mixed cross entropy (004 Eq. 3-11): how much of a class's target goes to its kin is given, or learned."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from labelkin._checks import check_choice, check_number
from labelkin.functional import soft_cross_entropy
from labelkin.objectives.base import Objective
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.mixing import Penalty, mixing_of
from labelkin.relations import as_rows

if TYPE_CHECKING:
    from labelkin.objectives.context import Context

COLLAPSED = (0.01, 0.49)  # mean eps outside this range: nothing was learned but an end of the interval


class MixedCrossEntropy(Objective):
    """Cross entropy to row y of `T = (1 - eps) I + eps A` (004 Eq. 3-4); an isolated class stays one-hot.

    `mixing` is `"shared"` (one eps: MCEL), `"class"` (one a class: SG-MCEL, Eq. 6) or `"matrix"` (all of T: GMCEL, Eq. 9,
    starting at the mixture of relation and eps, its diagonal leading by `margin`). With `learn` these are parameters:

    - `constraint="exact"`: eps = .5 sigmoid(theta), or a matrix whose rows are distributions with a leading diagonal. The
      loss is linear in eps and would drive it to 0, so a Beta(2, 2) prior on `eps / .5` (for a matrix, on the share given
      away) of weight `prior` holds against it. Prior and weight are ours; 0 shows the collapse.
    - `constraint="penalty"`: Eq. 10 and Eq. 11 as printed, with `alpha`, `beta`, `gamma`, `eta` and `p`. No value of these
      is published; the defaults are ours: with beta and gamma much below 1 eps crosses 0 and the loss has no bottom.
      Eq. 11 puts the diagonal at `(1 + (k-1) c) / k`, so its `margin` c is .75 where none is given (0 when exact).
      `hinge_margin` pays Eq. 11's last term only where the diagonal leads too little.

    `mean_eps()` is the share given away; `collapsed()` says whether it ended below .01 or above .49.
    """

    linear_in_target: ClassVar[bool] = True

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
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
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_choice("mixing", mixing, ("shared", "class", "matrix"))
        check_choice("constraint", constraint, ("exact", "penalty"))
        if margin is None:
            margin = 0.75 if constraint == "penalty" else 0.0
        check_number("margin", margin, low=0, high=0.99)
        check_number("p", p, low=1)
        for name, value in {"prior": prior, "alpha": alpha, "beta": beta, "gamma": gamma, "eta": eta}.items():
            check_number(name, value, low=0)
        super().__init__(classes=classes, features=features, class_weight=class_weight)
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
        """The share given away, averaged over the classes that have kin."""
        return self.targets.class_eps().sum() / (~self.relation.isolated()).sum().clamp_min(1)

    def figures(self) -> dict[str, float]:
        return {"mean_eps": float(self.mean_eps().detach())} if self.learn else {}

    def collapsed(self) -> bool:
        low, high = COLLAPSED
        return not low <= float(self.mean_eps().detach()) <= high

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        rows = self.targets(batch.target, outputs.dtype)
        data = self.mean(soft_cross_entropy(outputs, rows, batch.target), batch)
        if not self.learn:
            return Loss(data, {"cross_entropy": data})
        force = self.prior * self.targets.prior() if self.constraint == "exact" else self._penalty()
        return Loss(data + force, {"cross_entropy": data, "force": force, "mean_eps": self.mean_eps().detach()})

    def _penalty(self) -> Tensor:
        weights = Penalty(self.alpha, self.beta, self.gamma, self.eta, self.p, self.hinge_margin)
        return self.targets.penalty(weights)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """(K, K) the targets."""
        rows = self.rows(classes)
        vectors: Tensor = self.targets(rows, torch.get_default_dtype())
        return vectors.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        for name in [name for name in state_dict if name.startswith(f"{prefix}targets.relation.")]:
            del state_dict[name]  # earlier versions saved the relation a second time here
        super()._load_from_state_dict(state_dict, prefix, *args)

    def no_weight_decay(self) -> set[str]:
        return {name for name, _ in self.named_parameters() if name.startswith("targets.")}
