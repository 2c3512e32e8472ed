"""Several models of one architecture as one batched model, with `torch.func`.

The parameters and buffers of the members are rows of stacked tensors, and each member's own tensors are views of its rows. A
step of the batched model is therefore a step of every member, and a member can be evaluated and saved as if it were alone.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from labelkin.objectives import Objective
from labelkin.training._fleet_autocast import as_outside
from labelkin.training._fleet_convolution import GROUPED, convolutions
from labelkin.training._model import Model

NORMALIZE: Any = nn.functional.batch_norm


class Part(NamedTuple):
    """A parameter of a member, and the row of the stacked one that holds it."""

    own: nn.Parameter
    stacked: nn.Parameter
    row: int


class SingleChannels(TorchFunctionMode):
    """Compute batch normalization of one channel without cuDNN, for the duration of a `with` block.

    `vmap` passes the channels of all members as those of one image. cuDNN needs that image to be contiguous. With several
    channels, joining them with the members makes a contiguous copy; with one, it makes a view, which cuDNN refuses.

    >>> with SingleChannels():
    ...     found = nn.functional.batch_norm(torch.ones(4, 1, 2), torch.zeros(1), torch.ones(1), training=True)
    >>> found.abs().max().item()
    0.0
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is NORMALIZE and (args[0] if args else given["input"]).shape[1] == 1:
            with torch.backends.cudnn.flags(enabled=False):
                return func(*args, **given)
        return func(*args, **given)


class _Head(nn.Module):
    """An objective whose `forward` returns the loss, or the scores if there is no target."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, features: Any, target: Tensor | None = None, **batch: Tensor | None) -> Tensor:
        if target is None:
            return self.objective.scores(self.objective(features))
        loss: Tensor = self.objective(features, target, **batch)
        return loss


class Stack(nn.Module):
    """Modules of one architecture whose tensors are stacked, and which are called as one.

    Python attributes are those of the first module, so they must be the same for all.

    Args:
        modules: The modules, all on one device.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = tuple(
            modules
        )  # in a tuple, which torch does not register: their tensors are rows of those below
        self.way = GROUPED  # in which convolutions are computed
        self.parameter_names = [name for name, _ in modules[0].named_parameters()]
        self.buffer_names = [name for name, _ in modules[0].named_buffers()]
        self.stacked = nn.ParameterList(
            nn.Parameter(_stacked(module.get_parameter(name) for module in modules), requires_grad=first.requires_grad)
            for name, first in modules[0].named_parameters()
        )
        for place, name in enumerate(self.buffer_names):
            self.register_buffer(f"buffer_{place}", _stacked(module.get_buffer(name) for module in modules))

    def bind(self) -> None:
        """Make the tensors of the members views of their rows; a tensor that a member replaced is copied first."""
        for name, stacked in self._tensors():
            for row, member in enumerate(self.members):
                owner, own = _owner(member, name)
                tensor, view = getattr(owner, own), stacked.detach()[row]
                if tensor.data_ptr() == view.data_ptr() and tensor.dtype == view.dtype:
                    continue
                view.copy_(tensor)
                if isinstance(tensor, nn.Parameter):
                    tensor.data = view
                else:
                    owner._buffers[own] = view

    def _tensors(self) -> list[tuple[str, Tensor]]:
        buffers = [self.get_buffer(f"buffer_{place}") for place in range(len(self.buffer_names))]
        return [
            *zip(self.parameter_names, self.stacked, strict=True),
            *zip(self.buffer_names, buffers, strict=True),
        ]

    def parts_of(self, row: int) -> list[Part]:
        """Return the parameters of the member in a row."""
        own = [self.members[row].get_parameter(name) for name in self.parameter_names]
        return [Part(parameter, stacked, row) for parameter, stacked in zip(own, self.stacked, strict=True)]

    def forward(self, *inputs: Any, in_dims: int | None = 0, **batch: Tensor | None) -> Any:
        """Return the results of all members, stacked on the first axis.

        Args:
            *inputs: Arguments of the modules, with the members on axis `in_dims`; if that is None, all members get the same
                arguments.
            in_dims: The axis of the members.
            **batch: Further arguments of the modules; None is not passed on.
        """
        given = {name: value for name, value in batch.items() if value is not None}
        module = self.members[0]
        device = self.stacked[0].device if len(self.stacked) else inputs[0].device

        def one(tensors: dict[str, Tensor], arguments: tuple[Any, ...], named: dict[str, Tensor]) -> Any:
            with convolutions(self.way), as_outside(device), SingleChannels():  # casts come before convolutions
                return functional_call(module, tensors, arguments, named)

        return vmap(one, in_dims=(0, in_dims, 0))(dict(self._tensors()), inputs, given)


class FleetModel(nn.Module):
    """Models of one backbone as one model; members whose objectives are of one kind must be adjacent.

    Args:
        models: The members.
        kinds: For each member, what its objective depends on besides the seed: name and options.

    >>> from labelkin import OneHot
    >>> fleet = FleetModel([Model(nn.Linear(2, 4), OneHot(3, features=4)) for _ in range(5)], ["one-hot"] * 5)
    >>> fleet(torch.zeros(5, 8, 2), torch.zeros(5, 8, dtype=torch.int64)).shape
    torch.Size([5])
    >>> fleet.scores(torch.zeros(8, 2)).shape
    torch.Size([8, 5, 3])
    """

    def __init__(self, models: Sequence[Model], kinds: Sequence[Hashable]) -> None:
        super().__init__()
        self.models = tuple(models)
        self.spans: list[slice] = []
        for _, members in groupby(range(len(models)), key=kinds.__getitem__):
            rows = list(members)
            self.spans.append(slice(rows[0], rows[-1] + 1))
        self.backbone = Stack([model.backbone for model in models])
        self.heads = nn.ModuleList(Stack([_Head(model.objective) for model in models[span]]) for span in self.spans)
        self.bind()

    @property
    def objectives(self) -> nn.ModuleList:
        """The objectives whose Python attributes count: the first of each kind."""
        return nn.ModuleList(self.models[span.start].objective for span in self.spans)

    def bind(self) -> None:
        """Make the members' tensors views of the stacked ones, with the values that the members have."""
        for stack in (self.backbone, *self.heads):
            stack.bind()

    def forward(self, inputs: Tensor, target: Tensor, **batch: Tensor | None) -> Tensor:
        """Return the members' losses, (members,).

        Args:
            inputs: (members, n, ...) inputs.
            target: (members, n) class positions.
            **batch: As for `Model`, each (members, n).
        """
        features = self.backbone(inputs)
        losses = []
        for span, head in zip(self.spans, self.heads, strict=True):
            named = {name: None if value is None else value[span] for name, value in batch.items()}
            losses.append(head(features[span], target[span], **named))
        return torch.cat(losses)

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the members' scores (n, members, K) for the same inputs (n, ...)."""
        features = self.backbone(inputs, in_dims=None)
        return torch.cat([head(features[span]) for span, head in zip(self.spans, self.heads, strict=True)]).transpose(
            0, 1
        )

    def parts_of(self, row: int) -> list[Part]:
        """Return the parameters of a member."""
        place = next(place for place, span in enumerate(self.spans) if span.start <= row < span.stop)
        return [*self.backbone.parts_of(row), *self._head(place).parts_of(row - self.spans[place].start)]

    def kind_rows(self, row: int) -> list[int]:
        """Return the members whose objectives are of the same kind as that of a member."""
        return next(list(range(span.start, span.stop)) for span in self.spans if span.start <= row < span.stop)

    def parameter_groups(self, **options: Any) -> list[dict[str, Any]]:
        """Return the parameters for an optimizer, as `labelkin.training.parameter_groups` does for one model."""
        spared = {
            id(stacked)
            for place, span in enumerate(self.spans)
            for name, stacked in zip(self._head(place).parameter_names, self._head(place).stacked, strict=True)
            if name.removeprefix("objective.") in self.models[span.start].objective.no_weight_decay()
        }
        decayed = [p for p in self.parameters() if id(p) not in spared]
        free = [p for p in self.parameters() if id(p) in spared]
        groups: list[dict[str, Any]] = [{"params": decayed, **options}]
        return [*groups, {"params": free, "weight_decay": 0.0}] if free else groups

    def clip(self, most: float) -> Tensor:
        """Clip the gradients of each member to a norm, and return the norms (members,), as `clip_grad_norm_` does for one."""
        spans = [slice(0, len(self.models)), *self.spans]
        stacks = [self.backbone, *map(self._head, range(len(self.spans)))]
        grads = [
            (span, parameter.grad)
            for span, stack in zip(spans, stacks, strict=True)
            for parameter in stack.stacked
            if parameter.grad is not None
        ]
        squares = grads[0][1].new_zeros(spans[0].stop)
        for span, grad in grads:
            squares[span] += grad.reshape(len(grad), -1).square().sum(1)
        norms: Tensor = squares.sqrt()
        factors = (most / (norms + 1e-6)).clamp(max=1.0)
        for span, grad in grads:
            grad.mul_(factors[span].to(grad.dtype).view(-1, *[1] * (grad.dim() - 1)))
        return norms

    def _head(self, place: int) -> Stack:
        found = self.heads[place]
        assert isinstance(found, Stack)
        return found


def _stacked(tensors: Iterable[Tensor]) -> Tensor:
    return torch.stack([tensor.detach() for tensor in tensors])


def _owner(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, own = name.rpartition(".")
    return module.get_submodule(path), own
