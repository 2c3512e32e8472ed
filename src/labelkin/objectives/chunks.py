"""A loss over outputs too wide to hold: a few samples at a time, the outputs made again in the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from labelkin.objectives import inputs
from labelkin.objectives.batch import Batch, Loss

if TYPE_CHECKING:
    from labelkin.objectives.label_embedding import LabelEmbedding, Sums

CHUNK = 2**22  # entries of one output: 16 MiB of float32


def in_chunks(objective: LabelEmbedding, features: Tensor, target: Tensor, **batch: Tensor | None) -> Loss:
    """`objective`'s loss from features (..., F), with at most about `CHUNK` entries of each output alive at once."""
    flat, flat_batch = inputs.flatten_features(objective, features, target, **batch)
    size = max(1, CHUNK // objective.num_classes)
    sums: Sums | None = None
    predicted = []
    for start in range(0, len(flat), size):
        rows = slice(start, start + size)
        part = Batch(target=flat_batch.target[rows], weight=flat_batch.weight[rows])
        values, best = checkpoint(_chunk, objective, flat[rows], part, use_reentrant=False)
        sums = values if sums is None else type(values)(*(a + b for a, b in zip(sums, values, strict=True)))
        predicted.append(best)
    assert sums is not None
    result = objective._combine(sums, torch.cat(predicted).reshape(features.shape[:-1]))
    if objective.training and result.state:
        objective.commit(result.state)
    return result


def _chunk(objective: LabelEmbedding, features: Tensor, batch: Batch) -> tuple[Sums, Tensor]:
    outputs = objective(features)
    with torch.autocast(features.device.type, enabled=False):
        wide = type(outputs)(*(inputs.widened(part) for part in outputs))
        return objective._sums(wide, batch), wide.z1.detach().argmax(-1)
