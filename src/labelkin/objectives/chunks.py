"""A loss over outputs too wide to hold: a few samples at a time, each with its gradients, so that nothing is made twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from labelkin.objectives import inputs
from labelkin.objectives.batch import Batch, Loss

if TYPE_CHECKING:
    from labelkin.objectives.label_embedding import LabelEmbedding, Sums

CHUNK = 2**22  # entries of one output: 16 MiB of float32
TERMS = ("hard", "soft", "similarity", "confidence", "embedding")


def in_chunks(objective: LabelEmbedding, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
    """`objective`'s loss from features (..., F), with at most about `CHUNK` entries of each output alive at once.

    Gradients are taken on the way, chunk by chunk; `backward` hands them out, once, so that a scaled loss scales them only
    then: use bfloat16 rather than float16. The terms are for reading alone. The compiler cannot follow that, and makes
    outputs again in the backward pass instead.
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
        result = objective._loss(total, dict(zip(TERMS, terms, strict=True)), predicted.reshape(shape))
    if objective.training and result.state:
        objective.commit(result.state)
    return result


def _parts(objective: LabelEmbedding, batch: Batch) -> Iterator[tuple[slice, Batch]]:
    size = max(1, CHUNK // objective.num_classes)
    for start in range(0, len(batch.target), size):
        rows = slice(start, start + size)
        yield rows, Batch(target=batch.target[rows], weight=batch.weight[rows])


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
    """The total, the predictions and the terms of all chunks, with the total's gradients at hand.

    Processes meet twice, as where a loss is taken whole: a process may have few enough samples for that.
    """

    @staticmethod
    def forward(ctx: Any, objective: LabelEmbedding, batch: Batch, flat: Tensor, *parameters: Tensor) -> Any:
        _, _, of_features, *of_parameters = ctx.needs_input_grad
        chunk = _Chunk(objective)
        stand_ins = {
            name: own.detach().requires_grad_(wanted)
            for (name, own), wanted in zip(chunk.named_parameters(), of_parameters, strict=True)
        }
        gradient = torch.zeros_like(flat) if of_features else None
        samples = objective._divisor(batch.weight.sum())
        found: list[Sums] = []
        predicted = []
        for rows, part in _parts(objective, batch):
            own = flat[rows].detach().requires_grad_(of_features)
            with torch.set_grad_enabled(any(ctx.needs_input_grad)):
                sums, best = functional_call(chunk, stand_ins, (own, part))
                share = objective._total(objective._terms(sums, samples, torch.ones_like(samples)))
            if share.requires_grad:
                share.backward()  # type: ignore[no-untyped-call]
            if gradient is not None and own.grad is not None:
                gradient[rows] = own.grad
            found.append(type(sums)(*(value.detach() for value in sums)))
            predicted.append(best)
        sums = _added(found)
        right = objective._divisor(sums.right)
        for name in objective.embedding_parameters:  # which learn where z2 is right: how often, is known only now
            if (learned := stand_ins[f"objective.{name}"].grad) is not None:
                learned /= right
        ctx.gradients = [gradient, *(own.grad for own in stand_ins.values())]
        terms = objective._terms(sums, samples, right)
        best = torch.cat(predicted)
        ctx.mark_non_differentiable(best, *terms.values())
        return objective._total(terms), best, *terms.values()

    @staticmethod
    def backward(ctx: Any, factor: Tensor, *_: Any) -> Any:
        if ctx.gradients is None:
            raise RuntimeError("the gradients of a loss in chunks are handed out once; take the loss again.")
        gradients, ctx.gradients = ctx.gradients, None  # kept by nobody, they become the parameters' own
        for gradient in gradients:
            if gradient is not None:
                gradient.mul_(factor.to(gradient.dtype))
        return None, None, *gradients


class _Chunk(nn.Module):
    """The sums of some samples, as a module whose parameters may be stood in for."""

    def __init__(self, objective: LabelEmbedding) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, features: Tensor, batch: Batch) -> tuple[Sums, Tensor]:
        outputs = self.objective(features)
        with torch.autocast(features.device.type, enabled=False):
            wide = type(outputs)(*(inputs.widened(part) for part in outputs))
            return self.objective._sums(wide, batch), wide.z1.detach().argmax(-1)
