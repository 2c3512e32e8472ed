"""CPU: cross entropy to rows of a class matrix, a few rows at a time; and a function that builds these rows."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

ROWS = 64  # in memory at once


def target_rows(target: Tensor, operands: Sequence[Tensor], code: int, classes: int) -> Tensor:
    """Return row y of the class matrix for each sample (n, K)."""
    own_column = target[:, None]
    if code == 0:
        return operands[0][target]
    if code == 1:
        group, own, kin, rest = operands
        rows = torch.where(group[target][:, None] == group, kin[target][:, None], rest[target][:, None])
        return rows.scatter(1, own_column, own[target][:, None])
    if code == 2:
        by_gap, scale, own = operands
        gap = (torch.arange(classes, device=target.device) - own_column).abs()
        return (by_gap[gap] * scale[target][:, None]).scatter(1, own_column, own[target][:, None])
    if code == 3:
        start, columns, values = operands
        begin, count = start[target].long(), (start[target + 1] - start[target]).long()
        row = torch.repeat_interleave(count)
        at = torch.arange(len(row), device=target.device) + (begin - count.cumsum(0) + count)[row]
        rows = torch.zeros(len(target), classes, dtype=values.dtype, device=target.device)
        rows[row, columns[at].long()] = values[at]
        return rows
    left, right, own = operands
    return (left[target] @ right.T).scatter_add(1, own_column, own[target][:, None])


def forward(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> tuple[Tensor, Tensor]:
    parts = []
    for values, rows, _ in _parts(logits, operands, options):
        lse = values.logsumexp(-1)
        mass = rows.sum(-1)
        picked = torch.where(rows != 0, rows * values, 0).sum(-1)
        parts.append(torch.stack([mass * lse - picked, lse, mass], -1))
    found = torch.cat(parts)
    return found[:, 0].contiguous(), found[:, 1:].contiguous()


def backward(
    grad: Tensor, logits: Tensor, saved: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Tensor:
    result = torch.empty(logits.shape, dtype=logits.dtype)
    for values, rows, chosen in _parts(logits, operands, options):
        lse, mass = saved[chosen].unbind(-1)
        probs = torch.exp(values - lse[:, None]).mul_(mass[:, None]).sub_(rows)
        result[chosen] = probs.mul_(grad[chosen, None]).to(result.dtype)
    return result


def _parts(
    logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    target, *given = operands
    for start in range(0, len(logits), ROWS):
        chosen = slice(start, start + ROWS)
        values = logits[chosen].to(dtype)
        yield values, target_rows(target[chosen], given, int(options[0]), logits.shape[1]).to(dtype), chosen
