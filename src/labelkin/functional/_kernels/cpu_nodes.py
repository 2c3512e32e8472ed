"""CPU: losses on the path through softmaxes over siblings, in closed form; only the groups on the path are read."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin.functional._kernels.cpu_leaves import edge_weights, lowest


class _Siblings(NamedTuple):
    """The siblings along all paths, one after another."""

    segment: Tensor  # (S,): the edge that each belongs to, `row * L + depth - 1`
    place: Tensor  # (S,): the position of each in the flattened logits
    own: Tensor  # (S,): whether it is the node on the path
    columns: Tensor  # (n, L): the columns on the path, padded with 0
    known: Tensor  # (n, L): whether the path has this depth
    length: Tensor  # (n,)


def _siblings(width: int, operands: Sequence[Tensor]) -> _Siblings:
    target, first, child_first, child_count, child_column, path, lengths = operands[:7]
    length = lengths[target]
    known = torch.arange(path.shape[1]) < length[:, None]
    nodes = torch.where(known, path[first[target]], 0).long()
    parent = torch.nn.functional.pad(nodes[:, :-1], (1, 0))
    count = torch.where(known, child_count[parent], 0).flatten().long()
    segment = torch.repeat_interleave(count)
    offset = child_first[parent].flatten().long() - count.cumsum(0) + count
    columns = (nodes - 1).clamp_min(0)
    column = child_column[offset[segment] + torch.arange(len(segment))].long()
    place = segment // path.shape[1] * width + column
    return _Siblings(segment, place, column == columns.flatten()[segment], columns, known, length)


def forward(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> tuple[Tensor, Tensor]:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    at = _siblings(logits.shape[1], operands)
    values = wide.reshape(-1)[at.place]
    top = values.new_full((at.known.numel(),), float("-inf")).scatter_reduce_(0, at.segment, values, "amax")
    top = torch.where(top.isfinite(), top, 0)
    lse = top + torch.zeros_like(top).index_add_(0, at.segment, (values - top[at.segment]).exp()).log()
    lse = lse.view(at.known.shape)
    own = wide.gather(1, at.columns)
    log_p = torch.where(own < lowest(logits.dtype), -torch.inf, own - lse).masked_fill(~at.known, 0)
    log_prob = log_p.sum(-1)
    depth = torch.arange(1, log_p.shape[1] + 1, dtype=wide.dtype)
    loss = -(edge_weights(depth, at.length[:, None].to(wide.dtype), options) * log_p).sum(-1)
    constant, mass = options[5:]
    loss = loss + constant - mass * operands[7][operands[0]] * log_prob.exp()
    return loss, torch.nn.functional.pad(torch.cat([lse, log_prob[:, None]], -1), (0, 1))  # no closed node is counted


def backward(
    grad: Tensor, logits: Tensor, saved: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Tensor:
    at = _siblings(logits.shape[1], operands)
    lse, log_prob = saved[:, :-2], saved[:, -2]
    depth = torch.arange(1, lse.shape[1] + 1, dtype=saved.dtype)
    weight = edge_weights(depth, at.length[:, None].to(saved.dtype), options)
    weight = weight + (options[6] * operands[7][operands[0]] * log_prob.exp())[:, None]
    masked = logits.gather(1, at.columns) < lowest(logits.dtype)
    weight = (weight * grad[:, None]).masked_fill(masked, 0).flatten()[at.segment]
    lse = lse.masked_fill(masked, 0)  # finite, also where all siblings are masked
    values = logits.reshape(-1)[at.place].to(saved.dtype)
    result = torch.zeros(logits.shape, dtype=logits.dtype)
    shares = torch.exp(values - lse.flatten()[at.segment]) - at.own.to(saved.dtype)
    result.view(-1)[at.place] = (weight * shares).to(logits.dtype)
    return result
