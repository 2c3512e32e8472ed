"""The fused losses as differentiable torch operations; slow, and used only for second derivatives."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._kernels import cpu_classes, cpu_leaves


def leaves(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    ordered = logits.index_select(1, operands[1]) if operands[1].numel() else logits
    ordered = ordered if ordered.dtype == torch.float64 else ordered.float()
    lo, hi, length = cpu_leaves.intervals(operands)
    return cpu_leaves.path_loss(cpu_leaves.exact(ordered, lo, hi), length, options, cpu_leaves.lowest(logits.dtype))


def nodes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    target, first, child_first, child_count, child_column, path, lengths, excess, *ragged = operands
    values = logits if logits.dtype == torch.float64 else logits.float()
    length = lengths[target]
    depth = torch.arange(1, path.shape[1] + 1, device=logits.device)
    known = depth <= length[:, None]
    chain = torch.where(known, path[first[target]], 0).long()
    parent = torch.where(known, F.pad(chain[:, :-1], (1, 0)), 0)
    lane = torch.arange(int(child_count.max()), device=logits.device)
    inside = lane < child_count[parent][..., None]
    columns = child_column[(child_first[parent][..., None] + lane).clamp_max(len(child_column) - 1)].long()
    siblings = values.gather(1, columns.flatten(1)).view_as(columns).masked_fill(~inside, -torch.inf)
    own = values.gather(1, (chain - 1).clamp_min(0))
    masked = own < cpu_leaves.lowest(logits.dtype)
    log_p = (own - siblings.logsumexp(-1)).masked_fill(masked, -torch.inf).masked_fill(~known, 0)
    weight = cpu_leaves.edge_weights(depth.to(values.dtype), length[:, None].to(values.dtype), options)
    constant, mass = options[5:]
    loss = constant - (weight * log_p).sum(-1) - mass * excess[target] * log_p.sum(-1).exp()
    return loss + _ragged_mass(values, target, ragged, cpu_leaves.lowest(logits.dtype)) if ragged else loss


def _ragged_mass(values: Tensor, target: Tensor, operands: Sequence[Tensor], lowest: float) -> Tensor:
    """Compute the summed probabilities of `Ragged`'s nodes that are not strictly below the target."""
    begin, finish, column, _, begins, jumps, _, weight, enter, *_ = operands
    group = (begins.long().cumsum(0) - 1).expand(len(values), -1)
    entries = values.index_select(1, column.long())
    masked = entries < lowest
    finite = entries.masked_fill(masked, 0)
    groups = int(begins.sum())
    low = torch.finfo(values.dtype).min
    top = values.new_full((len(values), groups), low).scatter_reduce(1, group, entries.detach().clamp_min(low), "amax")
    parts = (finite - top.gather(1, group)).masked_fill(masked, -torch.inf).exp()
    total = values.new_zeros(len(values), groups).scatter_add(1, group, parts)
    log_total = torch.where(total > 0, total, 1).log().gather(1, group)
    log_prob = F.pad((finite - top.gather(1, group) - log_total).masked_fill(masked, -torch.inf), (0, 1))
    for jump in jumps:
        log_prob = log_prob + F.pad(log_prob.index_select(1, jump.long()), (0, 1))
    below = (enter > begin[target][:, None]) & (enter < finish[target][:, None])
    return (weight * log_prob[:, :-1].exp()).masked_fill(below, 0).sum(-1)


def classes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    values = logits if logits.dtype == torch.float64 else logits.float()
    rows = cpu_classes.open_rows(logits, values, operands, options)
    return rows.sum(-1) * values.logsumexp(-1) - torch.where(rows != 0, rows * values, 0).sum(-1)
