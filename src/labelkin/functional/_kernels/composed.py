"""The fused losses as differentiable torch operations; slow, and used only for second derivatives."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional._kernels import cpu_classes, cpu_leaves


def leaves(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    ordered = logits.index_select(1, operands[1]) if operands[1].numel() else logits
    ordered = ordered if ordered.dtype == torch.float64 else ordered.float()
    at = [part.cpu() for part in operands[:6]]
    ends, weight = (
        torch.from_numpy(part).to(logits.device) for part in (cpu_leaves.cuts(at), cpu_leaves.weights(at, options))
    )
    return cpu_leaves.path_loss(cpu_leaves.exact(ordered, ends), weight, cpu_leaves.lowest(logits.dtype))


def nodes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    target, excess, rest = operands[0], operands[7], operands[8:]
    values = logits if logits.dtype == torch.float64 else logits.float()
    low = cpu_leaves.lowest(logits.dtype)
    log_p, length = _path_log_p(values, operands, low)
    depth = torch.arange(1, log_p.shape[1] + 1, dtype=values.dtype, device=logits.device)
    weight = cpu_leaves.edge_weights(depth, length[:, None].to(values.dtype), options)
    constant, mass = options[5:]
    loss = constant - (weight * log_p).sum(-1) - mass * excess[target] * log_p.sum(-1).exp()
    if not mass:
        return loss
    loss = loss - _unreached(values, operands, low)
    return loss + _ragged_mass(values, target, rest, low) if len(rest) > 4 else loss


def saved_by_nodes(operands: Sequence[Tensor]) -> int:
    """Return the number of columns that the kernels of "nodes" save for the backward pass."""
    ragged = operands[12:]
    return operands[5].shape[1] + 2 + (3 * ragged[4].shape[0] if ragged else 0)


def _path_log_p(values: Tensor, operands: Sequence[Tensor], lowest: float) -> tuple[Tensor, Tensor]:
    """Return `log p` of the nodes on the paths of the targets (n, L), 0 after their ends, and the lengths (n,)."""
    target, first, child_first, child_count, child_column, path, lengths = operands[:7]
    length = lengths[target]
    known = torch.arange(path.shape[1], device=values.device) < length[:, None]
    chain = torch.where(known, path[first[target]], 0).long()
    parent = torch.where(known, F.pad(chain[:, :-1], (1, 0)), 0)
    lane = torch.arange(int(child_count.max()), device=values.device)
    inside = lane < child_count[parent][..., None]
    columns = child_column[(child_first[parent][..., None] + lane).clamp_max(len(child_column) - 1)].long()
    siblings = values.gather(1, columns.flatten(1)).view_as(columns).masked_fill(~inside, -torch.inf)
    own = values.gather(1, (chain - 1).clamp_min(0))
    masked = own < lowest
    return (own - siblings.logsumexp(-1)).masked_fill(masked, -torch.inf).masked_fill(~known, 0), length


def _unreached(values: Tensor, operands: Sequence[Tensor], lowest: float) -> Tensor:
    """Compute the part of the closed form that masks cut off: `sum excess P` over closed nodes without open children.

    Nodes at or below the target do not count, because the closed form leaves out what is below the target.
    """
    target, excess, (begin, finish, closed, watched) = operands[0], operands[7], operands[8:12]
    lost = values.new_zeros(len(values))
    if not (values.detach().index_select(1, watched.long()) < lowest).any():
        return lost
    nodes = closed.long()
    inside = torch.arange(int(operands[3][nodes].max()), device=values.device) < operands[3][nodes][:, None]
    places = (operands[2][nodes][:, None] + torch.arange(inside.shape[1], device=values.device)) * inside
    children = operands[4][places].long()
    dead = ((values.detach()[:, children] < lowest) | ~inside).all(-1)
    known = (begin[nodes] >= begin[target][:, None]) & (begin[nodes] < finish[target][:, None])
    rows, which = (dead & ~known).nonzero(as_tuple=True)
    if not len(rows):
        return lost
    log_p, _ = _path_log_p(values[rows], [nodes[which], *operands[1:]], lowest)
    return lost.index_add(0, rows, excess[nodes[which]] * log_p.sum(-1).exp())


def _ragged_mass(values: Tensor, target: Tensor, operands: Sequence[Tensor], lowest: float) -> Tensor:
    """Compute the summed probabilities of `Ragged`'s nodes that are not strictly below the target."""
    begin, finish, _, _, column, weight, above, uneven, first, _, _, _, jumps, _, enter = operands
    size = first.shape[0]
    group = above.long().expand(len(values), -1)
    entries = values.index_select(1, column.long())
    masked = entries < lowest
    finite = entries.masked_fill(masked, 0)
    low = torch.finfo(values.dtype).min
    top = values.new_full((len(values), size), low).scatter_reduce(1, group, entries.detach().clamp_min(low), "amax")
    parts = (finite - top.gather(1, group)).masked_fill(masked, -torch.inf).exp()
    total = values.new_zeros(len(values), size).scatter_add(1, group, parts)
    log_total = torch.where(total > 0, total, 1).log().gather(1, group)
    log_p = (finite - top.gather(1, group) - log_total).masked_fill(masked, -torch.inf)
    place = torch.where(uneven < size, uneven, size).long().expand(len(values), -1)
    log_prob = values.new_zeros(len(values), size + 1).scatter(1, place, log_p)[:, :size]  # the root's is 0
    for jump in jumps:
        log_prob = log_prob + log_prob.index_select(1, jump.long())
    known = (enter < begin[target][:, None]) | (enter >= finish[target][:, None])  # not at or below the target
    log_probs = log_prob.gather(1, group) + log_p
    return (weight * log_probs.exp()).masked_fill(~known.gather(1, group), 0).sum(-1)


def classes(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    values = logits if logits.dtype == torch.float64 else logits.float()
    rows = cpu_classes.open_rows(logits, values, operands, options)
    return rows.sum(-1) * values.logsumexp(-1) - torch.where(rows != 0, rows * values, 0).sum(-1)
