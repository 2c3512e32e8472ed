"""A tree and a similarity of the classes, computed from training data."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelkin import relations
from labelkin._arrays import check_class_positions
from labelkin._checks import InputError
from labelkin.structure import Taxonomy

LDA_SAMPLES = 5_000  # more samples hardly change the discriminant axes
LDA_FEATURES = 512  # with as many features as samples the analysis overfits and takes minutes


class FromData:
    """Properties of the classes, each computed once, on first access.

    Args:
        classes: The names of the classes.
        inputs: (n, ...) training inputs.
        targets: (n,) their class positions.
        weights: (n,) positive sample weights.

    >>> inputs = torch.tensor([[0.0], [0.1], [9.0]])
    >>> FromData(("a", "b", "c"), inputs, torch.tensor([0, 1, 2])).tree.classes
    ('a', 'b', 'c')
    """

    def __init__(
        self, classes: tuple[str, ...], inputs: Tensor, targets: Tensor, weights: Tensor | None = None
    ) -> None:
        if not isinstance(inputs, Tensor):
            raise InputError(f"inputs: expected a tensor (n, ...), got {type(inputs).__name__}.")
        check_class_positions("targets", targets, len(classes), shape=(len(inputs),))
        if weights is not None and weights.shape != targets.shape:
            raise InputError(
                f"weights: expected a number for each of {len(targets)} samples, got {tuple(weights.shape)}."
            )
        self.classes, self.inputs, self.targets, self.weights = classes, inputs, targets, weights

    @cached_property
    def tree(self) -> Taxonomy:
        """The tree by average linkage of the class means of the inputs."""
        from scipy.cluster.hierarchy import linkage  # slow to import

        return Taxonomy.from_linkage(linkage(self._class_means(), method="average"), self.classes)

    @cached_property
    def similarity(self) -> Tensor:
        """The (K, K) similarity by discriminant analysis of at most about `LDA_SAMPLES` samples."""
        step = max(1, len(self.inputs) // LDA_SAMPLES)
        weight = {} if self.weights is None else {"weight": self.weights[::step]}
        return relations.lda(_narrowed(self.inputs[::step]), self.targets[::step], classes=self.classes, **weight)

    def _class_means(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        flat = self.inputs.reshape(len(self.inputs), -1).double()
        weight = torch.ones(len(flat)) if self.weights is None else self.weights.cpu()
        flat = flat.cpu() * weight.double().unsqueeze(-1)
        sums = torch.zeros(len(self.classes), flat.shape[1], dtype=torch.float64).index_add(0, self.targets.cpu(), flat)
        counts = torch.bincount(self.targets.cpu(), weight.double(), minlength=len(self.classes))
        if float(counts.min()) == 0:
            absent = [name for name, count in zip(self.classes, counts.tolist(), strict=True) if not count]
            raise InputError(
                f"Context: there is no training sample of class {absent[0]!r}; a tree from data needs a sample of every class."
            )
        return (sums / counts.unsqueeze(-1)).numpy()


def _narrowed(inputs: Tensor) -> Tensor:
    """Reduce wide vectors by a fixed random projection, which keeps angles; other inputs are returned unchanged."""
    if inputs.ndim != 2 or inputs.shape[1] <= LDA_FEATURES:
        return inputs
    axes = torch.randn(inputs.shape[1], LDA_FEATURES, generator=torch.Generator().manual_seed(0))
    return inputs.cpu().float() @ axes
