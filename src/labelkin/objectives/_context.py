"""Defaults that objectives take from the data and the taxonomy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from labelkin import relations
from labelkin._arrays import check_class_positions
from labelkin._checks import InputError, check_names, counted, near
from labelkin._sparse_rows import SparseRows, row_blocks
from labelkin.relations import Rows
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
        self,
        classes: tuple[str, ...],
        inputs: Tensor | SparseRows,
        targets: Tensor,
        weights: Tensor | None = None,
    ) -> None:
        if not isinstance(inputs, (Tensor, SparseRows)):
            raise InputError(f"inputs: expected a tensor (n, ...), got {type(inputs).__name__}.")
        check_class_positions("targets", targets, len(classes), shape=(len(inputs),))
        if weights is not None and weights.shape != targets.shape:
            raise InputError(
                f"weights: expected one weight for each of {counted(len(targets), 'sample')}, got shape {tuple(weights.shape)}."
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
        weight = None if self.weights is None else self.weights[::step]
        some = (
            self.inputs[::step]
            if isinstance(self.inputs, Tensor)
            else self.inputs.take(torch.arange(0, len(self.inputs), step))
        )
        return relations.lda(_narrowed(some), self.targets[::step], classes=self.classes, weight=weight)

    def _class_means(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        weight = (torch.ones(len(self.targets)) if self.weights is None else self.weights.cpu()).double()
        width = self.inputs.shape[1:].numel() if isinstance(self.inputs, Tensor) else self.inputs.shape[1]
        sums, start = torch.zeros(len(self.classes), width, dtype=torch.float64), 0
        for block in row_blocks(self.inputs):
            place = slice(start, start := start + len(block))
            flat = block.reshape(len(block), -1).double().cpu() * weight[place].unsqueeze(-1)
            sums.index_add_(0, self.targets[place].cpu(), flat)
        counts = torch.bincount(self.targets.cpu(), weight, minlength=len(self.classes))
        if float(counts.min()) == 0:
            absent = [name for name, count in zip(self.classes, counts.tolist(), strict=True) if not count]
            raise InputError(
                f"Context: there is no training sample of class {absent[0]!r}; a tree from data needs a sample of every class."
            )
        return (sums / counts.unsqueeze(-1)).numpy()


def _narrowed(inputs: Tensor | SparseRows) -> Tensor:
    """Reduce wide vectors by a fixed random projection, which keeps angles; other inputs are returned unchanged."""
    if inputs.ndim != 2 or inputs.shape[1] <= LDA_FEATURES:
        return inputs if isinstance(inputs, Tensor) else torch.cat(list(row_blocks(inputs)))
    axes = torch.randn(inputs.shape[1], LDA_FEATURES, generator=torch.Generator().manual_seed(0))
    if isinstance(inputs, Tensor):
        return inputs.cpu().float() @ axes
    return torch.cat([block.cpu().float() @ axes for block in row_blocks(inputs)])


@dataclass(frozen=True)
class Context:
    """The classes, taxonomy and data from which `Objective.build` takes defaults.

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
    inputs: Tensor | SparseRows | None = None
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
        """Return a copy without the record of which results were requested; results computed from the data are shared.

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
        """Return a copy that holds computed results instead of the data, from which a saved model can be rebuilt.

        The discriminant analysis is included only if it was requested, because it takes longer than a small run.

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


# Each entry computes a relation from the context with the defaults of its function.
RELATIONS: dict[str, Callable[[Context], Any]] = {
    "tree": lambda context: context.kin(),
    "groups": lambda context: relations.groups(context.tree().parents[context.tree().leaves].tolist(), structured=True),
    "ordinal": lambda context: relations.ordinal(context.classes),
    "lda": lambda context: context.similarity(),
}


def resolved(options: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the options with the name of a relation replaced by the relation itself.

    Args:
        options: Constructor arguments of an objective. `relation` may be "tree" (similarity in the taxonomy), "groups"
            (siblings in the taxonomy), "ordinal" (neighbors in class order) or "lda" (discriminant analysis of the data).
        context: The classes, taxonomy and data that the relation is computed from.

    >>> from labelkin import Context
    >>> resolved({"relation": "ordinal"}, Context(classes=("a", "b", "c")))["relation"].shape
    torch.Size([3, 3])
    """
    name = options.get("relation")
    if not isinstance(name, str):
        return dict(options)
    if name not in RELATIONS:
        raise InputError(
            f"relation: expected one of {', '.join(RELATIONS)}, or a .npy or .csv file of K x K numbers, got {name!r}."
            f"{near(name, RELATIONS)}"
        )
    return {**options, "relation": RELATIONS[name](context)}
