"""Cross entropy to rows of a class matrix, from logits or from features and the weights of a linear layer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from labelkin._checks import check_choice
from labelkin.functional import _kernels as kernels
from labelkin.functional._kernels import chunks
from labelkin.functional._kernels.classes import ClassTargets, arguments, kernel
from labelkin.functional._kernels.composed import classes as composed
from labelkin.functional._kernels.fused import fused, transformed

REDUCTIONS = ("mean", "sum", "none")


def class_target_cross_entropy(logits: Tensor, target: Tensor, targets: ClassTargets) -> Tensor:
    """Compute `-sum_k T[y, k] log p_k`, the cross entropy to row y of a class matrix T, without a target of the batch's size.

    Rows need not sum to 1. The share of a masked class other than y is left out. No gradient reaches T.

    Args:
        logits: (..., K) before the softmax.
        target: (...,) class positions.
        targets: the class matrix T: `DenseTargets`, `ScaledTargets`, `GroupedTargets`, `OrdinalTargets`, `SparseTargets` or
            `LowRankTargets`.

    Returns:
        (...,) one loss per sample.

    Example:
        >>> import torch
        >>> from labelkin.functional import DenseTargets, class_target_cross_entropy
        >>> matrix = torch.tensor([[0.9, 0.1], [0.0, 1.0]])
        >>> class_target_cross_entropy(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), DenseTargets(matrix))
        tensor([0.3269])
    """
    if kernels.fits_classes(logits, target, targets):
        return kernels.class_target_cross_entropy(logits, target, targets)
    operands, options = arguments(targets)
    rows = logits.reshape(-1, logits.shape[-1])
    return composed(rows, [target.reshape(-1), *operands], options).to(logits.dtype).reshape(target.shape)


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    targets: ClassTargets | None = None,
    class_weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cross entropy of a linear layer's outputs, a chunk of samples at a time.

    The result is that of `F.cross_entropy(F.linear(features, weight, bias), target)`, or of `class_target_cross_entropy` for a
    class matrix. The logits (..., K) are never held together: for a mean or a sum, the forward pass computes the gradients of
    each chunk along with its losses; with `reduction="none"`, the backward pass computes the logits again. Second derivatives,
    forward-mode differentiation and `torch.func` need all logits at once.

    Args:
        features: (..., F) inputs of the linear layer.
        weight: (K, F) its weights. Under autocast, they and the features are converted to its dtype.
        target: (...,) class positions.
        bias: (K,) its bias.
        targets: the class matrix whose row y is the target of class y, as in `class_target_cross_entropy`; None gives each
            class itself. No gradient reaches it.
        class_weight: (K,) factors by class, as in `F.cross_entropy`.
        sample_weight: (...,) factors of the samples.
        ignore_index: samples with this target are left out.
        reduction: `"mean"` divides the sum by that of the factors; if it is 0, so is the mean. `"sum"`, or `"none"` for
            one loss per sample.

    Returns:
        A scalar, or (...,) losses; float64 for features of float64, otherwise float32.

    Example:
        >>> import torch
        >>> from labelkin.functional import linear_cross_entropy
        >>> features, weight = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> linear_cross_entropy(features, weight, torch.tensor([0]))
        tensor(0.1269)
    """
    check_choice("reduction", reduction, REDUCTIONS)
    exact = torch.float64 if features.dtype == torch.float64 else torch.float32
    known = target != ignore_index
    place = torch.where(known, target, 0).reshape(-1)
    factor = known.to(exact) if sample_weight is None else torch.where(known, sample_weight, 0).to(exact)
    factor = factor.reshape(-1)
    factor = factor if class_weight is None else factor * class_weight.to(exact)[place]
    operands, options = arguments(targets)
    task = _Task([place, *operands], options, factor, reduction != "none")
    found = _apply(features.reshape(-1, features.shape[-1]), weight, bias, task)
    if reduction == "none":
        return torch.where(factor != 0, factor * found, 0).reshape(target.shape)
    if reduction == "sum":
        return found
    divisor = factor.sum()
    return found / torch.where(divisor > 0, divisor, 1)


class _Task(NamedTuple):
    """The loss of each row of logits, `factor` times, and whether the losses are summed."""

    operands: Sequence[Tensor]
    options: Sequence[float]
    factor: Tensor
    summed: bool

    def total(self, losses: Tensor) -> Tensor:
        return torch.where(self.factor != 0, self.factor * losses, 0).sum() if self.summed else losses


def _apply(features: Tensor, weight: Tensor, bias: Tensor | None, task: _Task) -> Tensor:
    """Return the sum of the losses times their factors, or the losses themselves."""
    if torch.compiler.is_compiling():
        return task.total(_made_again(features, weight, bias, task))
    if transformed():
        return task.total(_whole(features, weight, bias, task))
    found: Tensor = _Linear.apply(features, weight, bias, task)  # type: ignore[no-untyped-call]
    return found


def _whole(features: Tensor, weight: Tensor, bias: Tensor | None, task: _Task) -> Tensor:
    return composed(F.linear(features, weight, bias), task.operands, task.options)


def _made_again(features: Tensor, weight: Tensor, bias: Tensor | None, task: _Task) -> Tensor:
    """Return the losses; the backward pass computes the logits of each chunk again."""
    target, *operands = task.operands

    def losses(x: Tensor, y: Tensor) -> Tensor:
        return fused("classes", F.linear(x, weight, bias), y, operands, task.options).to(task.factor.dtype)

    parts = _parts(features, weight)
    found = [checkpoint(losses, features[rows], target[rows], use_reentrant=False) for rows in parts]
    return torch.cat([task.factor[:0], *found])


def _parts(features: Tensor, weight: Tensor) -> list[slice]:
    return chunks.slices(len(features), weight.shape[0], weight.shape[1], features.device)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None, task: _Task) -> Tensor:
        ctx.save_for_backward(features, weight, bias)
        ctx.task, ctx.dtype, ctx.gradients = task, chunks.dtype_of(features), None
        if not task.summed or not any(ctx.needs_input_grad):
            return task.total(_losses(features, weight, bias, task, ctx.dtype))
        wanted = ctx.needs_input_grad[:3]
        losses, ctx.gradients = _with_gradients(features, weight, bias, task, task.factor, ctx.dtype, wanted)
        return task.total(losses)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # a second derivative was requested
            loss = ctx.task.total(_whole(features, weight, bias, ctx.task))
            inputs = [given for given, needed in zip((features, weight, bias), wanted, strict=True) if needed]
            found = iter(torch.autograd.grad(loss, inputs, grad, create_graph=True))
            return *(next(found) if needed else None for needed in wanted), None
        gradients, ctx.gradients = ctx.gradients, None  # they become the gradients of the inputs, without a copy
        if gradients is None:
            factor = ctx.task.factor * grad if ctx.task.summed else grad.contiguous()
            _, gradients = _with_gradients(features, weight, bias, ctx.task, factor, ctx.dtype, wanted)
            return *gradients, None
        for gradient in gradients:
            if gradient is not None:
                chunks.scale(gradient, grad)
        return *gradients, None


def _losses(features: Tensor, weight: Tensor, bias: Tensor | None, task: _Task, dtype: torch.dtype) -> Tensor:
    target, *operands = task.operands
    losses = torch.empty_like(task.factor)
    with chunks.linear_layer(features, weight, bias, dtype) as layer:
        for rows in _parts(features, weight):
            logits = layer(rows)
            losses[rows] = kernel(logits, operands, task.options).forward(
                logits, [target[rows], *operands], task.options
            )[0]
    return losses


def _with_gradients(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    task: _Task,
    factor: Tensor,
    dtype: torch.dtype,
    wanted: Sequence[bool],
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """Return the losses, and the gradients of their sum weighted by `factor`."""
    target, *operands = task.operands
    losses = torch.empty_like(task.factor)
    with chunks.linear_layer(features, weight, bias, dtype, wanted) as layer:
        for rows in _parts(features, weight):
            logits = layer(rows)
            step = kernel(logits, operands, task.options).with_gradient
            losses[rows], gradient = step(logits, factor[rows], [target[rows], *operands], task.options)
            layer.add(rows, gradient)
            del logits, gradient  # before the next chunk is made
        return losses, layer.gradients()
