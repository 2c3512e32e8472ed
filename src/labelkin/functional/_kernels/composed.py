"""The fused losses from differentiable operations: slow, for gradients of gradients alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from labelkin.functional._kernels import cpu_classes, cpu_leaves


def leaves(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    ordered = logits.index_select(1, operands[1]) if operands[1].numel() else logits
    ordered = ordered if ordered.dtype == torch.float64 else ordered.float()
    lo, hi, length = cpu_leaves.intervals(operands)
    return cpu_leaves.path_loss(cpu_leaves.exact(ordered, lo, hi), length, options)


def nodes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    target, child_first, child_count, child_column, path, lengths, excess = operands[:7]
    if len(operands) > 7:
        raise NotImplementedError("Gradients of gradients of the hierarchical loss need leaves of one depth.")
    values = logits if logits.dtype == torch.float64 else logits.float()
    chain, length = path[target].long(), lengths[target]
    parent = torch.nn.functional.pad(chain[:, :-1], (1, 0))
    lane = torch.arange(int(child_count.max()), device=logits.device)
    inside = lane < child_count[parent][..., None]
    columns = child_column[(child_first[parent][..., None] + lane).clamp_max(len(child_column) - 1)].long()
    found = values.gather(1, columns.flatten(1)).view_as(columns).masked_fill(~inside, float("-inf"))
    depth = torch.arange(1, path.shape[1] + 1, device=logits.device)
    known = depth <= length[:, None]
    log_p = values.gather(1, (chain - 1).clamp_min(0)) - found.logsumexp(-1)
    log_p = torch.where(known, log_p, 0)
    weight = cpu_leaves.edge_weights(depth.to(values.dtype), length[:, None].to(values.dtype), options)
    constant, mass = options[5:]
    return constant - (weight * log_p).sum(-1) - mass * excess[target] * log_p.sum(-1).exp()


def classes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    values = logits if logits.dtype == torch.float64 else logits.float()
    rows = cpu_classes.target_rows(operands[0], operands[1:], int(options[0]), logits.shape[1]).to(values.dtype)
    return rows.sum(-1) * values.logsumexp(-1) - torch.where(rows != 0, rows * values, 0).sum(-1)
