"""The interface of all objectives: a head, a loss, and predictions from outputs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError, check_count, near, plain_names
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._context import resolved
from labelkin.objectives._options import check_shared, full_signature, shown_options
from labelkin.objectives._state import Signed
from labelkin.objectives._tree_terms import TreeTerms
from labelkin.relations import count_classes

if TYPE_CHECKING:
    from labelkin.objectives._context import Context
    from labelkin.structure import Taxonomy

Outputs = Any  # a Tensor (..., width), or a NamedTuple of several


class Objective(Signed, TreeTerms):
    """Base class of all objectives.

    With `features=F` an objective is a head with a loss: `head(features)` returns outputs and `head(features, target)`
    the scalar loss, like `torch.nn.AdaptiveLogSoftmaxWithLoss`. With `features=None` it has no head and is a criterion:
    `criterion(outputs, target)` returns the scalar loss. Call it with a target once per training step, because objectives
    with state update it in each call in training mode.

    A subclass implements `compute` and overrides what differs from a linear head with a softmax: `make_outputs`, `scores`,
    `log_probs`, `label_vectors`. It takes the arguments below as `**shared: Unpack[Shared]` and passes them on.

    Args:
        classes: The number of classes K, or their names.
        features: The number of features of the head's input. None means no head.
        taxonomy: The tree of the classes, for the terms below.
        ancestors: The weight of the sum of `-log P(a)` over the inner, non-root nodes a above the class, where P(a) is the
            probability of all classes below a. At 0, the default, the term is left out.
        expected_cost: The weight of the expected cost of the prediction, `sum_j p_j d(y, j)`. d is the tree distance of
            mistake severity, the height of the lowest common ancestor.
        costs: K x K costs by true class (row) and answer (column) for `expected_cost`, instead of the tree's distances. A
            class that is known only to lie below a node has the mean costs of the classes there, and answers there cost 0.
        class_weight: K weights, one per class. A sample's loss is multiplied by the weight of its class.
        class_weight_divisor: The divisor of a mean with class weights. `"weights"`, the default, is the sum of the
            weights of the targets, as in `torch.nn.CrossEntropyLoss`; `"samples"` is the number of samples, so that a weight
            of 2 doubles the gradients of a class. Class probabilities as targets are divided by the number of samples.
        reduction: `"mean"`, `"sum"` or `"none"`. `"mean"` is the weighted mean over the samples of all processes: averaged
            gradients, as in `DistributedDataParallel`, are those of one process with all samples. `"sum"` is the weighted
            sum over the samples of this process, as in torch. `"none"` is one weighted loss per sample, in the shape of
            the target; objectives whose loss is not a mean over samples refuse it, and their sum is the mean times the
            divisor of the mean.
        ignore_index: Samples with this target are left out, as if their weight were 0. If all samples are left out, the mean
            is 0, and not NaN as in torch, so that a batch of padding does not end a training run.

    >>> import torch
    >>> from labelkin import OneHot
    >>> head = OneHot(3, features=4)
    >>> features, target = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, -100])
    >>> head(features).shape
    torch.Size([5, 3])
    >>> head(features, target).shape
    torch.Size([])
    >>> OneHot(3, reduction="none")(torch.zeros(5, 3), target)
    tensor([1.0986, 1.0986, 1.0986, 1.0986, 0.0000])
    """

    needs: frozenset[str] = frozenset()  # what the training loop must provide: "index", "refresh"
    linear_in_target: ClassVar[bool] = False  # whether targets may be class probabilities
    takes_nodes: ClassVar[bool] = False  # whether `node=` is accepted
    outputs_type: ClassVar[type | None] = None  # the NamedTuple of outputs with several parts
    has_probabilities: ClassVar[bool] = True  # whether log_probs is defined
    softmax_logits: ClassVar[bool] = True  # whether log_probs is the log-softmax of the (first) outputs
    accumulates: bool = True  # whether the loss of a batch is the weighted mean of the losses of its parts
    revision: ClassVar[int] = 1  # raised when a fix changes results
    _whole_batch: str | None = None  # why the loss is not a mean over samples, if it is not

    def __init__(
        self,
        classes: int | Sequence[str],
        *,
        features: int | None = None,
        taxonomy: Taxonomy | None = None,
        ancestors: float = 0.0,
        expected_cost: float = 0.0,
        costs: Any = None,
        class_weight: Any = None,
        class_weight_divisor: str = "weights",
        reduction: str = "mean",
        ignore_index: int = -100,
        _width: int | None = None,
    ) -> None:
        super().__init__()
        check_shared(type(self).__name__, reduction, self._whole_batch, class_weight_divisor, ignore_index)
        classes = plain_names(classes)
        self.num_classes = count_classes(classes)
        self.classes = tuple(classes) if isinstance(classes, Sequence) else self.num_classes
        self.features = features
        self.width = self.num_classes if _width is None else _width
        self.class_weight_divisor, self.reduction, self.ignore_index = class_weight_divisor, reduction, ignore_index
        if features is not None:
            check_count("features", features)
        self.head = nn.Identity() if features is None else nn.Linear(features, self.width)
        weights = None if class_weight is None else inputs.class_weights(class_weight, self.num_classes)
        self.register_buffer("class_weight", weights)
        self._set_tree_terms(taxonomy, ancestors=ancestors, expected_cost=expected_cost, costs=costs)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = full_signature(cls.__init__)  # type: ignore[attr-defined]

    @classmethod
    def build(cls, context: Context, **options: Any) -> Self:
        """Create the objective with defaults from data and taxonomy.

        Args:
            context: The classes, and the taxonomy and training data if there are any.
            **options: Constructor arguments that replace the defaults.

        >>> from labelkin import Context, LabelSmoothing
        >>> LabelSmoothing.build(Context(classes=("cat", "dog")), smoothing=0.2).smoothing
        0.2
        """
        known = cls.free_options()
        for name in options:
            if name not in known:
                raise InputError(f"{cls.__name__} has no option {name!r}.{near(name, known)}")
        given = resolved(options, context)
        return cls(**{**cls.defaults(context, given), **given})

    @classmethod
    def revision_of(cls, options: Mapping[str, Any]) -> int:
        """Return the revision of the results with these options."""
        return cls.revision

    @classmethod
    def free_options(cls) -> list[str]:
        """Return the names of the constructor arguments that a run may set.

        Classes, features and samples follow from the data, and the training loop fixes reduction and ignore_index.

        >>> from labelkin import LabelSmoothing
        >>> LabelSmoothing.free_options()
        ['smoothing', 'taxonomy', 'ancestors', 'expected_cost', 'costs', 'class_weight', 'class_weight_divisor']
        """
        fixed = ("classes", "features", "samples", "reduction", "ignore_index")
        return [name for name in inspect.signature(cls).parameters if name not in fixed]

    @classmethod
    def defaults(cls, context: Context, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constructor arguments that `build` takes from the context; a subclass adds its own.

        >>> from labelkin import Context, OneHot
        >>> OneHot.defaults(Context(classes=("cat", "dog")), {})
        {'classes': ('cat', 'dog'), 'features': None}
        """
        given = {"classes": context.classes, "features": context.features}
        return {**given, **cls._tree_for_terms(context, options)}

    def forward(
        self,
        features: Any,
        target: Tensor | None = None,
        *,
        node: Tensor | None = None,
        weight: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Any:
        """Return outputs, or the scalar loss if a target is given.

        Args:
            features: (..., F) features; for a criterion (`features=None`), the outputs.
            target, node, weight, index: See `loss`.
        """
        if target is None:
            return self.make_outputs(features)
        return self.loss_from_features(features, target, node=node, weight=weight, index=index).total

    def make_outputs(self, features: Any) -> Outputs:
        """Return the outputs (..., width) for features (..., F); `head(features)` calls this.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(3, features=4).make_outputs(torch.zeros(2, 4)).shape
        torch.Size([2, 3])
        """
        return self.head(features)

    def compute(self, outputs: Outputs, batch: Batch) -> Loss:
        """Return the loss of checked, flattened outputs (n, width) without tree terms; a pure method of each subclass."""
        raise NotImplementedError

    def loss(
        self,
        outputs: Outputs,
        target: Tensor,
        *,
        node: Tensor | None = None,
        weight: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of outputs as a scalar, or one loss per sample with `reduction="none"`.

        In training mode this updates the objective's state, if it has any: call `loss` or `loss_terms` once per step.

        Args:
            outputs: (..., width) outputs, with the classes on the last axis.
            target: (...,) class positions; or (..., K) class probabilities if the loss is linear in the target.
            node: (...,) indices of tree nodes for samples whose class is unknown, and -1 elsewhere; for tree objectives.
            weight: (...,) weights of the samples. A sample of weight 0 is padding and may hold anything, even NaN.
            index: (...,) positions of the samples in the training set, if the objective needs them.

        Targets equal to `ignore_index` are left out as well. Where their outputs may not be finite, give `weight=` too.

        >>> import torch
        >>> from labelkin import OneHot
        >>> criterion = OneHot(2)
        >>> criterion.loss(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]), weight=torch.tensor([1.0, 0.0]))
        tensor(0.1269)
        """
        return self.loss_terms(outputs, target, node=node, weight=weight, index=index).total

    def loss_terms(self, outputs: Outputs, target: Tensor, **batch: Tensor | None) -> Loss:
        """Return the loss with its parts; the arguments are those of `loss`.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(2).loss_terms(torch.zeros(1, 2), torch.tensor([0])).terms
        {'cross_entropy': tensor(0.6931)}
        """
        flat_outputs, flat_batch = inputs.flatten(self, outputs, target, **batch)
        with torch.autocast(flat_batch.target.device.type, enabled=False):
            result = self._with_tree_terms(self.compute(flat_outputs, flat_batch), flat_outputs, flat_batch)
        if self.training and result.state:
            self.commit(result.state)
        if self.reduction != "none":
            return result
        shape = inputs.heads(self, outputs)[0].shape[:-1]
        terms = {name: term.reshape(shape) for name, term in result.terms.items()}
        return Loss(result.total.reshape(shape), terms, result.state, result.predicted)

    def loss_from_features(self, features: Any, target: Tensor, **batch: Tensor | None) -> Loss:
        """Return the loss of features with its parts; objectives with very large outputs compute it in chunks.

        >>> import torch
        >>> from labelkin import OneHot
        >>> head = OneHot(3, features=4)
        >>> head.loss_from_features(torch.randn(2, 4), torch.tensor([0, 1])).total.shape
        torch.Size([])
        """
        return self.loss_terms(self.make_outputs(features), target, **batch)

    def scores(self, outputs: Outputs) -> Tensor:
        """Return (..., K) scores of the classes; the largest is the prediction.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(2).scores(torch.tensor([[0.0, 0.0]]))
        tensor([[-0.6931, -0.6931]])
        """
        return self.log_probs(outputs)

    def predict(self, outputs: Outputs) -> Tensor:
        """Return the predicted class positions (...,): the classes with the largest scores.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(3).predict(torch.tensor([[0.1, 2.0, -1.0]]))
        tensor([1])
        """
        return self.scores(outputs).argmax(-1)

    def log_probs(self, outputs: Outputs) -> Tensor:
        """Return (..., K) log-probabilities of the classes; raise `InputError` if the objective defines none.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(2).log_probs(torch.zeros(1, 2))
        tensor([[-0.6931, -0.6931]])
        """
        return F.log_softmax(inputs.single(self, outputs), -1)

    def probs(self, outputs: Outputs) -> Tensor:
        """Return (..., K) probabilities of the classes; raise `InputError` if the objective defines none.

        >>> import torch
        >>> from labelkin import OneHot
        >>> OneHot(2).probs(torch.zeros(1, 2))
        tensor([[0.5000, 0.5000]])
        """
        return self.log_probs(outputs).exp()

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the vectors (K, D) that represent the classes, or only the rows of `classes`.

        >>> from labelkin import OneHot
        >>> OneHot(3).label_vectors([1])
        tensor([[0., 1., 0.]])
        """
        return F.one_hot(self._rows(classes), self.num_classes).to(torch.get_default_dtype())

    def _rows(self, classes: Sequence[int] | Tensor | None, *, width: int | None = None) -> Tensor:
        """Return the requested class positions; raise if all are requested and the table would be very large."""
        return inputs.label_rows(self, classes, width=width or self.num_classes)

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        """Prepare for an epoch; the training loop calls this before each one, with `epoch` from 0 to `epochs - 1`.

        >>> from labelkin import OneHot
        >>> OneHot(3).begin_epoch(0, 10)
        """
        if not 0 <= epoch < epochs:
            raise InputError(f"epoch: expected 0 to {epochs - 1}, got {epoch}.")

    def refresh(self, batches: Iterable[tuple[Any, ...]]) -> None:
        """Update state from a pass over the training set, if `needs` contains "refresh"; called after each epoch.

        Args:
            batches: Tuples of (outputs, target), or (outputs, target, weight) if samples have weights.
        """

    def _figures(self) -> dict[str, float]:
        """Return values to log after every epoch besides the loss."""
        return {}

    def synchronize(self) -> None:
        """Exchange state between processes; every process calls this before state is saved."""

    def no_weight_decay(self) -> set[str]:
        """Return the names of the parameters that are excluded from weight decay.

        >>> from labelkin import LabelEmbedding
        >>> LabelEmbedding(3).no_weight_decay()
        {'embedding'}
        """
        return set()

    def extra_repr(self) -> str:
        """Return the hyperparameters for `repr`."""
        return shown_options(self)
