"""The one interface: a method is its head, its loss, how outputs become a prediction, and the labels it learned."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelkin._checks import InputError, check_count, near, plain_names
from labelkin.functional.collectives import global_mean
from labelkin.functional.cross_entropy import is_soft
from labelkin.objectives import inputs
from labelkin.objectives._state import check_before_loading, signature_of
from labelkin.objectives.batch import Batch, Loss
from labelkin.objectives.named import resolved
from labelkin.relations.matrices import count_classes

if TYPE_CHECKING:
    from labelkin.objectives.context import Context

Outputs = Any  # a Tensor (..., width), or a NamedTuple of them


class Objective(nn.Module):
    """Base of all objectives; see `docs/methods.md`.

    A method writes `compute`, which is pure, and whatever else differs from a linear head with a softmax: `forward`,
    `scores`, `log_probs`, `label_vectors`. State that changes with every step goes through `Loss.state` and is kept by
    `commit`; counters are tensor buffers, so that compiled code does not recompile.
    """

    needs: frozenset[str] = frozenset()  # "index", "refresh": what the training loop must provide
    linear_in_target: ClassVar[bool] = False  # whether soft targets (mixup) have a meaning
    takes_nodes: ClassVar[bool] = False
    outputs_type: ClassVar[type | None] = None  # the NamedTuple of a method with several heads
    has_probabilities: ClassVar[bool] = True  # whether log_probs has a meaning
    accumulates: ClassVar[bool] = True  # whether the loss of a batch is the weighted mean of the losses of its parts
    revision: ClassVar[int] = 1  # raised when a fix changes results

    class_weight: Tensor | None

    def __init__(
        self,
        *,
        classes: int | Sequence[str],
        features: int | None = None,
        class_weight: Any = None,
        _width: int | None = None,
    ) -> None:
        super().__init__()
        classes = plain_names(classes)
        self.num_classes = count_classes(classes)
        self.classes = tuple(classes) if isinstance(classes, Sequence) else self.num_classes
        self.features = features
        self.width = self.num_classes if _width is None else _width
        if features is not None:
            check_count("features", features)
        self.head = nn.Identity() if features is None else nn.Linear(features, self.width)
        weights = None if class_weight is None else inputs.class_weights(class_weight, self.num_classes)
        self.register_buffer("class_weight", weights)

    @classmethod
    def build(cls, context: Context, **options: Any) -> Self:
        """The objective with working defaults from data and taxonomy, and `options` in their place where given."""
        known = cls.free_options()
        for name in options:
            if name not in known:
                raise InputError(f"{cls.__name__} has no option {name!r}.{near(name, known)}")
        given = resolved(options, context)
        return cls(**{**cls.defaults(context, given), **given})

    @classmethod
    def option_names(cls) -> list[str]:
        """The keywords of the constructor."""
        return [name for name in inspect.signature(cls).parameters if not name.startswith("_")]

    @classmethod
    def free_options(cls) -> list[str]:
        """Those that are a matter of choice; the rest follows from data and backbone."""
        return [name for name in cls.option_names() if name not in ("classes", "features", "samples")]

    @classmethod
    def defaults(cls, context: Context, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that `build` takes from the context; a method adds its own that `options` does not give."""
        return {"classes": context.classes, "features": context.features}

    def forward(self, features: Tensor) -> Outputs:
        return self.head(features)

    def compute(self, outputs: Outputs, batch: Batch) -> Loss:
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
        """The scalar loss; in training mode the step's state is kept. Call this or `loss_terms` once a step."""
        return self.loss_terms(outputs, target, node=node, weight=weight, index=index).total

    def loss_terms(self, outputs: Outputs, target: Tensor, **batch: Tensor | None) -> Loss:
        """The same with its parts."""
        flat_outputs, flat_batch = inputs.flatten(self, outputs, target, **batch)
        with torch.autocast(flat_batch.target.device.type, enabled=False):
            result = self.compute(flat_outputs, flat_batch)
        if self.training and result.state:
            self.commit(result.state)
        return result

    def loss_from_features(self, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
        """The loss straight from features; methods whose outputs are too large to hold compute it in chunks."""
        return self.loss_terms(self(features), target, **batch)

    def commit(self, state: Mapping[str, Tensor]) -> None:
        """Keep the state of a training step."""
        with torch.no_grad():
            for name, value in state.items():
                getattr(self, name).copy_(value)

    def mean(self, losses: Tensor, batch: Batch) -> Tensor:
        """The mean loss (n,) over the samples of all processes, with sample and class weights.

        Class weights scale a sample's loss and not the divisor (004 Eq. 1, Infogain), so a weight of 2 doubles a class's
        pull; `torch.nn.CrossEntropyLoss` divides by the sum of the weights instead.
        """
        return global_mean(losses * self.class_factor(batch, losses.dtype), batch.weight.to(losses.dtype))

    def class_factor(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        """(n,) the class weight of each sample. Soft targets carry theirs already."""
        if self.class_weight is None or is_soft(batch.target):
            return torch.ones_like(batch.weight, dtype=dtype)
        return self.class_weight[batch.target].to(dtype)

    def only_term(self, name: str, losses: Tensor, batch: Batch) -> Loss:
        """The loss of a method that has one term, from its losses (n,)."""
        total = self.mean(losses, batch)
        return Loss(total, {name: total})

    def scores(self, outputs: Outputs) -> Tensor:
        """(..., K); the largest is the prediction."""
        return self.log_probs(outputs)

    def log_probs(self, outputs: Outputs) -> Tensor:
        """(..., K) log-probabilities of the classes; raises where the method defines none."""
        return F.log_softmax(inputs.single(self, outputs), -1)

    def label_vectors(self, classes: Sequence[int] | Tensor | None = None) -> Tensor:
        """(K, D) the vector that stands for each class, or the rows asked for."""
        return F.one_hot(self.rows(classes), self.num_classes).to(torch.get_default_dtype())

    def rows(self, classes: Sequence[int] | Tensor | None, *, width: int | None = None) -> Tensor:
        """The class positions asked for; all of them is refused where the answer would be as good as K x K and large."""
        device = next((t.device for t in (*self.parameters(), *self.buffers())), None)
        if classes is not None:
            return inputs.class_positions(classes, self.num_classes).to(device)
        if self.num_classes * (width or self.num_classes) > LARGEST_TABLE:
            raise InputError(
                f"label_vectors: all {self.num_classes} rows of {width or self.num_classes} numbers are too many to make by "
                "accident; ask for rows, as in label_vectors([0, 1, 2])."
            )
        return torch.arange(self.num_classes, device=device)

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        """Called before each epoch, `epoch` from 0 to `epochs - 1`."""
        if not 0 <= epoch < epochs:
            raise InputError(f"epoch: expected 0 to {epochs - 1}, got {epoch}.")

    def refresh(self, batches: Iterable[tuple[Any, ...]]) -> None:
        """A pass over the training set when an epoch ends, for objectives that need "refresh".

        Each batch is (outputs, target), or (outputs, target, weight) where samples have weights.
        """

    def figures(self) -> dict[str, float]:
        """What is worth watching besides the loss: a row of a run's metrics gets these after every epoch."""
        return {}

    def synchronize(self) -> None:
        """Share what this process alone knows with all others; every process calls it, before state is saved."""

    def get_extra_state(self) -> Any:
        """Return the signature that keeps a state from being loaded into a different objective."""
        return signature_of(self)

    def set_extra_state(self, state: Any) -> None:
        """Do nothing: the signature is checked before the first tensor is loaded."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        own = type(self).get_extra_state is Objective.get_extra_state
        check_before_loading(self, state_dict, prefix, own=own)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def no_weight_decay(self) -> set[str]:
        """Names of parameters that decay would pull off their start."""
        return set()

    def extra_repr(self) -> str:
        return f"classes={self.num_classes}, features={self.features}"


LARGEST_TABLE = 2**26  # entries: 256 MiB of float32
