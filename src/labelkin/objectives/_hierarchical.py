"""The hierarchical losses of Loss in Layers (002 Eq. 2-4, Sec. 5.4)."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor

from labelkin import functional
from labelkin._checks import check_choice
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._options import Shared
from labelkin.objectives._tree import TreeObjective
from labelkin.structure import Taxonomy


class Hierarchical(TreeObjective):
    """Train node logits with the hierarchical loss `-sum_j s_j log p_j + sum_i prob_i` (002 Eq. 2-3).

    The second sum is over inner, non-root nodes i. On a flat tree the loss is cross entropy.

    Args:
        taxonomy: the tree of the classes.
        targets: `"path"` marks the leaf and all its ancestors, so coarse edges weigh more; `"leaf"` marks only the leaf.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; outputs have one logit for each non-root node.

    Example:
        >>> import torch
        >>> from labelkin import Hierarchical, Taxonomy
        >>> head = Hierarchical(taxonomy=Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), features=4)
        >>> outputs = head(torch.randn(8, 4))
        >>> head.loss(outputs, torch.randint(3, (8,))).backward()
        >>> outputs.shape, head.log_probs(outputs).shape
        (torch.Size([8, 4]), torch.Size([8, 3]))
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        targets: str = "path",
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        check_choice("targets", targets, ("path", "leaf"))
        super().__init__(taxonomy, classes=classes, **shared)
        self.targets = targets

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        losses = functional.hierarchical(outputs, self.known(batch), self.tree(), targets=self.targets)
        return self._only_term("hierarchical", losses, batch)


class ConvexHierarchical(TreeObjective):
    """Train node logits with the convex hierarchical loss `sum KL(q_i || p_i) / depth(i)` over inner nodes i (002 Eq. 4).

    Args:
        taxonomy: the tree of the classes.
        soft_off_path: pull the children of nodes off the path to a uniform distribution (Sec. 5.4). `Hierarchical` has no
            such option, because in Eq. 2 these labels would raise the weight of the wrong node.
        classes: the taxonomy's classes in the order of the targets; None for the taxonomy's own order.
        features: width of the features; None for an objective without a head.
        class_weight: one weight per class.

    Returns:
        `loss` returns the scalar loss; outputs have one logit for each non-root node.

    Example:
        >>> import torch
        >>> from labelkin import ConvexHierarchical, Taxonomy
        >>> head = ConvexHierarchical(taxonomy=Taxonomy.from_paths(["pet/cat", "pet/dog", "car"]), soft_off_path=True)
        >>> head.loss(torch.zeros(1, 4), torch.tensor([0]))
        tensor(1.0397)
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        soft_off_path: bool = False,
        classes: int | Sequence[str] | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(taxonomy, classes=classes, **shared)
        self.soft_off_path = soft_off_path

    def compute(self, outputs: Tensor, batch: Batch) -> Loss:
        known = self.known(batch)
        losses = functional.convex_hierarchical(outputs, known, self.tree(), soft_off_path=self.soft_off_path)
        return self._only_term("convex_hierarchical", losses, batch)
