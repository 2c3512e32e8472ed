"""What is known of the data and its classes when an objective is built without being told more."""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

from torch import Tensor

from labelkin import relations
from labelkin._checks import InputError, check_names
from labelkin.objectives.from_data import FromData
from labelkin.relations import Rows
from labelkin.structure import Taxonomy


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
    _data: FromData | None = field(default=None, init=False, repr=False, compare=False)
    _asked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_names("classes", self.classes, least=2)
        object.__setattr__(self, "classes", tuple(self.classes))
        if (self.inputs is None) != (self.targets is None):
            raise InputError("Context: give inputs and targets together, or neither.")
        if self.inputs is not None and self.targets is not None:
            object.__setattr__(self, "_data", FromData(self.classes, self.inputs, self.targets))

    def with_features(self, features: int) -> Self:
        """The same for a net of so many features."""
        return self._with(features=features)

    def afresh(self) -> Self:
        """The same, of which nothing was asked yet; what was made of the data is shared."""
        return self._with(_asked=set())

    def _with(self, **changed: Any) -> Self:
        own = copy(self)  # `replace` would make everything of the data again
        for name, value in changed.items():
            object.__setattr__(own, name, value)
        return own

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
        if self.taxonomy is not None:
            return self.taxonomy.reorder(self.classes)
        if self._data is None:
            raise InputError(
                "Context: a tree of the classes can't be had without a taxonomy or training data; give one of them."
            )
        return self._data.tree

    def kin(self) -> Any:
        """Who is kin to whom: the relation given, or the tree's."""
        if self.relation is not None:
            return self.relation
        return relations.tree(self.tree(), beta=KIN_BETA, structured=True)

    def similarity(self) -> Rows | Tensor:
        """Who looks like whom, as 004 has it: discriminant analysis of the data, or the tree's kin where there is none."""
        self._asked.add("similarity")
        if self.relation is None and self.similar is not None:
            return self.similar
        if self.relation is None and self._data is not None:
            return self._data.similarity
        return self.kin()  # type: ignore[no-any-return]

    def without_data(self) -> Self:
        """The same with what was taken from the data in its place: what a saved model is built anew from.

        A discriminant analysis that nobody asked for is not made for it: it takes longer than a small run.
        """
        similar = self.similar
        if similar is None and self._data is not None and "similarity" in self._asked:
            similar = self._data.similarity
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
