"""Compute a loss over outputs that are too large for memory, in chunks of samples with their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from labelkin.functional import kernels
from labelkin.objectives import _validation as inputs
from labelkin.objectives._batch import Batch, Loss
from labelkin.objectives._label_embedding_closed import Walked, closed_walk, has_closed_form

if TYPE_CHECKING:
    from labelkin.objectives._label_embedding import LabelEmbedding
    from labelkin.objectives._label_embedding_closed import Sums

CHUNK = 2**22  # entries of one output: 16 MiB of float32
TERMS = ("hard", "soft", "similarity", "confidence", "embedding")


def in_chunks(objective: LabelEmbedding, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
    """Compute the loss from features (..., F), with at most about `CHUNK` entries of each output in memory at once.

    The forward pass computes gradients chunk by chunk, and `backward` returns them once. A loss scaler therefore scales
    them only at the end: use bfloat16 rather than float16. No gradient flows through the terms. Compiled code recomputes
    outputs in the backward pass instead.
    """
    flat, flat_batch = inputs.flatten_features(objective, features, target, **batch)
    shape = features.shape[:-1]
    if torch.compiler.is_compiling():
        sums, predicted = _made_again(objective, flat_batch, flat)
        result = objective._combine(sums, predicted.reshape(shape))
    else:
        total, predicted, *terms = _WithGradients.apply(  # type: ignore[no-untyped-call]
            objective, flat_batch, flat, *objective.parameters()
        )
        names = (*TERMS, *objective._tree_term_names())
        result = objective._loss(total, dict(zip(names, terms, strict=True)), predicted.reshape(shape))
    if objective.training and result.state:
        objective.commit(result.state)
    return result


def _parts(objective: LabelEmbedding, batch: Batch) -> Iterator[tuple[slice, Batch]]:
    size = max(1, CHUNK // objective.num_classes)
    for start in range(0, len(batch.target), size):
        rows = slice(start, start + size)
        node = None if batch.node is None else batch.node[rows]
        yield rows, Batch(target=batch.target[rows], weight=batch.weight[rows], node=node)


def _added(found: Sequence[Sums]) -> Sums:
    return type(found[0])(*(torch.stack(values).sum(0) for values in zip(*found, strict=True)))


def _made_again(objective: LabelEmbedding, batch: Batch, flat: Tensor) -> tuple[Sums, Tensor]:
    chunk, found, predicted = _Chunk(objective), [], []
    for rows, part in _parts(objective, batch):
        sums, best = checkpoint(chunk, flat[rows], part, use_reentrant=False, preserve_rng_state=False)
        found.append(sums)
        predicted.append(best)
    return _added(found), torch.cat(predicted)


class _WithGradients(torch.autograd.Function):
    """Compute the total, the predictions and the terms of all chunks, and keep the gradients of the total.

    Processes exchange sums twice, as they do for a loss in one piece, because another process may compute it that way.
    """

    @staticmethod
    def forward(ctx: Any, objective: LabelEmbedding, batch: Batch, flat: Tensor, *parameters: Tensor) -> Any:
        _, _, of_features, *of_parameters = ctx.needs_input_grad
        names = [name for name, _ in objective.named_parameters()]
        wanted = {name for name, needed in zip(names, of_parameters, strict=True) if needed}
        samples = objective._divisor(objective._counted(batch, batch.weight.dtype).sum())
        given = (objective, batch, flat, samples, of_features, wanted)
        found = closed_walk(*given, entries=CHUNK) if has_closed_form(objective, batch) else _walk(*given)
        right = objective._divisor(found.sums.right)
        if objective.divides_by_right:  # the number that z2 gets right is known only after the last chunk
            for name in objective.embedding_parameters:
                if (learned := found.gradients.get(name)) is not None:
                    learned /= right
        ctx.gradients = [found.of_features, *(found.gradients.get(name) for name in names)]
        terms = objective._terms(found.sums, samples, right)
        ctx.mark_non_differentiable(found.predicted, *terms.values())
        return objective._total(terms), found.predicted, *terms.values()

    @staticmethod
    def backward(ctx: Any, factor: Tensor, *_: Any) -> Any:
        if ctx.gradients is None:
            raise RuntimeError(
                "The gradients of a loss in chunks can be used once; compute the loss again before calling backward()."
            )
        gradients, ctx.gradients = (
            ctx.gradients,
            None,
        )  # no other reference: they become the parameters' gradients without a copy
        for gradient in gradients:
            if gradient is not None:
                kernels.scale(gradient, factor)
        return None, None, *gradients


def _walk(
    objective: LabelEmbedding, batch: Batch, flat: Tensor, samples: Tensor, of_features: bool, wanted: AbstractSet[str]
) -> Walked:
    """Process all chunks with autograd."""
    chunk = _Chunk(objective)
    stand_ins = {
        name: own.detach().requires_grad_(name.removeprefix("objective.") in wanted)
        for name, own in chunk.named_parameters()
    }
    gradient = torch.zeros_like(flat) if of_features else None
    found: list[Sums] = []
    predicted = []
    for rows, part in _parts(objective, batch):
        own = flat[rows].detach().requires_grad_(of_features)
        with torch.set_grad_enabled(of_features or bool(wanted)):
            sums, best = functional_call(chunk, stand_ins, (own, part))
            share = objective._total(objective._terms(sums, samples, torch.ones_like(samples)))
        if share.requires_grad:
            share.backward()  # type: ignore[no-untyped-call]
        if gradient is not None and own.grad is not None:
            gradient[rows] = own.grad
        found.append(type(sums)(*(value.detach() for value in sums)))
        predicted.append(best)
    gradients = {name.removeprefix("objective."): own.grad for name, own in stand_ins.items()}
    return Walked(_added(found), torch.cat(predicted), gradient, gradients)


class _Chunk(nn.Module):
    """Compute the sums of some samples, as a module whose parameters `functional_call` can replace."""

    def __init__(self, objective: LabelEmbedding) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, features: Tensor, batch: Batch) -> tuple[Sums, Tensor]:
        outputs = self.objective.make_outputs(features)
        with torch.autocast(features.device.type, enabled=False):
            wide = type(outputs)(*(inputs.widened(part) for part in outputs))
            return self.objective._sums(wide, batch), wide.z1.detach().argmax(-1)
