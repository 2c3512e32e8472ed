"""What is known of the data and its classes when an objective is built without being told more."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from labelkin import relations
from labelkin._checks import InputError, check_names
from labelkin.relations import Rows
from labelkin.structure import Taxonomy

LDA_SAMPLES = 5_000  # discriminant axes settle long before a data set ends
LDA_FEATURES = 512  # of vectors: with as many features as samples the axes fit anything, and take minutes


@dataclass(frozen=True)
class Context:
    """Classes, features, and what of taxonomy and training data is at hand.

    Where an objective needs a tree and none is given, one is built from the data: average linkage of the class means of
    the inputs. Where it needs a relation between classes, it follows from the tree, or for `similarity` from the data.
    """

    classes: tuple[str, ...]
    features: int | None = None
    taxonomy: Taxonomy | None = None
    inputs: Tensor | None = None  # (n, ...) training inputs
    targets: Tensor | None = None  # (n,)
    train_samples: int | None = None  # where inputs are not at hand
    relation: Any = None  # K x K or Rows, in place of what the tree and the data say
    similar: Tensor | None = None  # K x K, in place of a discriminant analysis of the data
    vectors: Any = None  # (K, D), such as a text encoder's

    def __post_init__(self) -> None:
        check_names("classes", self.classes, least=2)
        object.__setattr__(self, "classes", tuple(self.classes))
        if (self.inputs is None) != (self.targets is None):
            raise InputError("Context: give inputs and targets together, or neither.")
        if self.inputs is not None and self.targets is not None:
            _check_targets(self.targets, len(self.inputs), len(self.classes))

    @property
    def samples(self) -> int:
        """The size of the training set."""
        if self.train_samples is not None:
            return self.train_samples
        if self.targets is None:
            raise InputError(
                "Context: the size of the training set is not known; give inputs and targets, or train_samples."
            )
        return len(self.targets)

    def tree(self) -> Taxonomy:
        """The taxonomy in class order: the one given, or one learned from the data."""
        return self._learned_tree if self.taxonomy is None else self.taxonomy.reorder(self.classes)

    @cached_property
    def _learned_tree(self) -> Taxonomy:
        from scipy.cluster.hierarchy import linkage  # most of what importing labelkin would cost

        means = self._class_means("a tree of the classes")
        return Taxonomy.from_linkage(linkage(means, method="average"), self.classes)

    def _class_means(self, purpose: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        if self.inputs is None or self.targets is None:
            raise InputError(f"Context: {purpose} can't be had without a taxonomy or training data; give one of them.")
        flat = self.inputs.reshape(len(self.inputs), -1).double()
        sums = torch.zeros(len(self.classes), flat.shape[1], dtype=torch.float64).index_add(
            0, self.targets.cpu(), flat.cpu()
        )
        counts = torch.bincount(self.targets.cpu(), minlength=len(self.classes))
        if int(counts.min()) == 0:
            absent = [name for name, count in zip(self.classes, counts.tolist(), strict=True) if not count]
            raise InputError(f"Context: no training sample of class {absent[0]!r}; {purpose} needs one of every class.")
        return (sums / counts.unsqueeze(-1)).numpy()

    def kin(self) -> Any:
        """Who is kin to whom: the relation given, or the tree's."""
        if self.relation is not None:
            return self.relation
        return relations.tree(self.tree(), beta=KIN_BETA, structured=True)

    def similarity(self) -> Rows | Tensor:
        """Who looks like whom, as 004 has it: discriminant analysis of the data, or the tree's kin where there is none."""
        if self.relation is not None or (self.inputs is None and self.similar is None):
            return self.kin()  # type: ignore[no-any-return]
        return self._discriminant if self.similar is None else self.similar

    @cached_property
    def _discriminant(self) -> Tensor:
        assert self.inputs is not None
        assert self.targets is not None
        step = max(1, len(self.inputs) // LDA_SAMPLES)
        return relations.lda(_narrowed(self.inputs[::step]), self.targets[::step], classes=self.classes)

    def without_data(self) -> Self:
        """The same with what follows from the data in its place: what a saved model is built anew from."""
        similar = self._discriminant if self.similar is None and self.inputs is not None else self.similar
        return replace(
            self, taxonomy=self.tree(), inputs=None, targets=None, train_samples=self.samples, similar=similar
        )

    def embedding(self) -> Tensor:
        """(K, K) logits whose softmax is the kin's targets: what an embedding learned in an earlier run stands in for."""
        rows = relations.as_rows(self.kin(), len(self.classes))
        return relations.smooth(rows, EMBEDDING_SIGMA).dense().clamp_min(1e-6).log()

    def class_vectors(self) -> Any:
        """(K, D) a vector a class: those given, or ones whose inner products are the tree's similarities."""
        if self.vectors is not None:
            return self.vectors
        distance = self.tree().distance("height")
        return relations.similarity_to_vectors(1 - distance / distance.max())


KIN_BETA = 10.0  # of the default relation: siblings get most of what is moved, cousins little (ours)
EMBEDDING_SIGMA = 0.3  # (ours)


def _narrowed(inputs: Tensor) -> Tensor:
    """Wide vectors, such as a text's, by a fixed random projection, which keeps angles; pixels stay as they are."""
    if inputs.ndim != 2 or inputs.shape[1] <= LDA_FEATURES:
        return inputs
    axes = torch.randn(inputs.shape[1], LDA_FEATURES, generator=torch.Generator().manual_seed(0))
    return inputs.cpu().float() @ axes


def _check_targets(targets: Tensor, samples: int, classes: int) -> None:
    if targets.shape != (samples,) or targets.is_floating_point():
        got = f"{tuple(targets.shape)} of {targets.dtype}"
        raise InputError(f"targets: expected a class position for each of {samples} inputs, got {got}.")
    if samples and not 0 <= int(targets.min()) <= int(targets.max()) < classes:
        wrong = f"{int(targets.min())} to {int(targets.max())}"
        raise InputError(f"targets: expected class positions from 0 to {classes - 1}, got {wrong}.")
