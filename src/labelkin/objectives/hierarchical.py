"""Loss in Layers (002 Eq. 2-4, Sec. 5.4)."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from labelkin import functional
from labelkin._checks import check_choice
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.tree import TreeObjective
from labelkin.structure import Taxonomy


class Hierarchical(TreeObjective):
    """The hierarchical loss: `-sum_j s_j log p_j + sum_i prob_i` over inner, non-root i (002 Eq. 2-3).

    `targets="path"` marks the leaf and all its ancestors, so coarse edges weigh more; `"leaf"` marks the leaf alone. On a
    flat tree both are cross entropy.
    """

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        targets: str = "path",
        classes: int | Sequence[str] | None = None,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        check_choice("targets", targets, ("path", "leaf"))
        super().__init__(taxonomy=taxonomy, classes=classes, features=features, class_weight=class_weight)
        self.targets = targets

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.hierarchical(outputs, self.known(batch), self.tree(), targets=self.targets)
        return self.only_term("hierarchical", losses, batch)


class ConvexHierarchical(TreeObjective):
    """The convex hierarchical loss: `sum KL(q_i || p_i) / depth(i)` over inner nodes i, positive (002 Eq. 4).

    With `soft_off_path` the children of nodes off the path are pulled to a uniform distribution (Sec. 5.4); offered only
    here, because in Eq. 2 such labels would raise the weight of the wrong node.
    """

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        soft_off_path: bool = False,
        classes: int | Sequence[str] | None = None,
        features: int | None = None,
        class_weight: Any = None,
    ) -> None:
        super().__init__(taxonomy=taxonomy, classes=classes, features=features, class_weight=class_weight)
        self.soft_off_path = soft_off_path

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        known = self.known(batch)
        losses = functional.convex_hierarchical(outputs, known, self.tree(), soft_off_path=self.soft_off_path)
        return self.only_term("convex_hierarchical", losses, batch)
