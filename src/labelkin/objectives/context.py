"""The data and classes that an objective takes its defaults from."""

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
    """What `Objective.build` takes the defaults of an objective from.

    If an objective needs a tree and there is no taxonomy, the tree is built from the data by average linkage of the class
    means of the inputs. A relation between classes is computed from the tree, and `similarity` from the data.

    Args:
        classes: The names of the classes.
        features: The number of features of the backbone.
        taxonomy: The tree above the classes.
        inputs: (n, ...) training inputs.
        targets: (n,) their class positions.
        train_samples: The size of the training set, if inputs and targets are not given.
        relation: A K x K relation or `Rows` to use instead of those from tree and data.
        similar: A K x K similarity to use instead of a discriminant analysis of the data.
        vectors: (K, D) vectors of the classes, for example from a text encoder.
        weights: (n,) positive sample weights, which count in a tree or relation built from the data.

    >>> from labelkin import ConditionalSoftmax, Context, Taxonomy
    >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car", "truck"]})
    >>> context = Context(classes=("car", "cat", "dog", "truck"), features=8, taxonomy=tree)
    >>> ConditionalSoftmax.build(context).classes
    ('car', 'cat', 'dog', 'truck')
    """

    classes: tuple[str, ...]
    features: int | None = None
    taxonomy: Taxonomy | None = None
    inputs: Tensor | None = None
    targets: Tensor | None = None
    train_samples: int | None = None
    relation: Any = None
    similar: Tensor | None = None
    vectors: Any = None
    weights: Tensor | None = None
    _data: FromData | None = field(default=None, init=False, repr=False, compare=False)
    _asked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_names("classes", self.classes, least=2)
        object.__setattr__(self, "classes", tuple(self.classes))
        if (self.inputs is None) != (self.targets is None):
            raise InputError("Context: give inputs and targets together, or neither.")
        if self.inputs is not None and self.targets is not None:
            object.__setattr__(self, "_data", FromData(self.classes, self.inputs, self.targets, self.weights))

    def with_features(self, features: int) -> Self:
        """Return a copy for a backbone with this number of features.

        >>> from labelkin import Context
        >>> Context(classes=("a", "b", "c")).with_features(8).features
        8
        """
        return self._with(features=features)

    def afresh(self) -> Self:
        """Return a copy that has no record of what was asked for; results computed from the data are shared.

        >>> from labelkin import Context
        >>> Context(classes=("a", "b", "c")).afresh().classes
        ('a', 'b', 'c')
        """
        return self._with(_asked=set())

    def _with(self, **changed: Any) -> Self:
        own = copy(self)  # `replace` would discard results computed from the data
        for name, value in changed.items():
            object.__setattr__(own, name, value)
        return own

    @property
    def samples(self) -> int:
        """The size of the training set.

        >>> from labelkin import Context
        >>> Context(classes=("a", "b", "c"), train_samples=60).samples
        60
        """
        if self.train_samples is not None:
            return self.train_samples
        if self.targets is None:
            raise InputError(
                "Context: the size of the training set is unknown; give inputs and targets, or train_samples."
            )
        return len(self.targets)

    def tree(self) -> Taxonomy:
        """Return the taxonomy in class order, or a tree built from the data if there is none.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("c", "b", "a"), taxonomy=tree).tree().classes
        ('c', 'b', 'a')
        """
        if self.taxonomy is not None:
            return self.taxonomy.reorder(self.classes)
        if self._data is None:
            raise InputError("Context: a tree of the classes needs a taxonomy or training data; give one of them.")
        return self._data.tree

    def kin(self) -> Any:
        """Return the relation between classes: the one given, or that of the tree.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("a", "b", "c"), taxonomy=tree).kin().classes
        3
        """
        if self.relation is not None:
            return self.relation
        return relations.tree(self.tree(), beta=KIN_BETA, structured=True)

    def similarity(self) -> Rows | Tensor:
        """Return the similarity of classes by discriminant analysis of the data (004), or `kin()` if there are no data.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("a", "b", "c"), taxonomy=tree).similarity().classes
        3
        """
        self._asked.add("similarity")
        if self.relation is None and self.similar is not None:
            return self.similar
        if self.relation is None and self._data is not None:
            return self._data.similarity
        return self.kin()  # type: ignore[no-any-return]

    def without_data(self) -> Self:
        """Return a copy that holds results in place of the data, from which a saved model can be built again.

        The discriminant analysis is included only if it was asked for, because it takes longer than a small run.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("a", "b", "c"), taxonomy=tree, train_samples=60).without_data().samples
        60
        """
        similar = self.similar
        if similar is None and self._data is not None and "similarity" in self._asked:
            similar = self._data.similarity
        return replace(
            self,
            taxonomy=self.tree(),
            inputs=None,
            targets=None,
            weights=None,
            train_samples=self.samples,
            similar=similar,
        )

    def embedding(self) -> Tensor:
        """Return (K, K) logits whose softmax is the smoothed targets of `kin()`: a default for an embedding learned earlier.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("a", "b", "c"), taxonomy=tree).embedding().shape
        torch.Size([3, 3])
        """
        rows = relations.as_rows(self.kin(), len(self.classes))
        return relations.smooth(rows, EMBEDDING_SIGMA).dense().clamp_min(1e-6).log()

    def class_vectors(self) -> Any:
        """Return (K, D) vectors of the classes: those given, or vectors whose inner products are the tree's similarities.

        >>> from labelkin import Context, Taxonomy
        >>> tree = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
        >>> Context(classes=("a", "b", "c"), taxonomy=tree).class_vectors().shape[0]
        3
        """
        if self.vectors is not None:
            return self.vectors
        distance = self.tree().distance("height")
        return relations.similarity_to_vectors(1 - distance / distance.max())


KIN_BETA = 10.0  # of the default relation: most of the weight goes to siblings (ours)
EMBEDDING_SIGMA = 0.3  # (ours)
