"""Torch operations: cross entropy to rows of a class matrix, a few rows at a time; and a function that builds these rows."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from labelkin.functional._kernels.cpu_leaves import lowest

ROWS = 64  # in memory at once
HARD, SCALED = 5, 6  # the codes of the identity matrix and of `ScaledTargets`


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
        lane = torch.arange(int((start[1:] - start[:-1]).max()), device=target.device)
        inside = lane < (start[target + 1] - start[target])[:, None]
        at = torch.where(inside, start[target][:, None] + lane, 0)
        rows = torch.zeros(len(target), classes, dtype=values.dtype, device=target.device)
        return rows.scatter_add(1, torch.where(inside, columns[at], 0).long(), torch.where(inside, values[at], 0))
    if code == HARD:
        rows = torch.zeros(len(target), classes, device=target.device)
        return rows.scatter(1, own_column, 1.0)
    if code == SCALED:
        matrix, scale, own = operands
        return (matrix[target] * scale[target][:, None]).scatter(1, own_column, own[target][:, None])
    left, right, own = operands
    return (left[target] @ right.T).scatter_add(1, own_column, own[target][:, None])


def open_rows(logits: Tensor, values: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> Tensor:
    """Return the rows of the class matrix in the dtype of `values`, without masked classes other than the target."""
    target, *given = operands
    rows = target_rows(target, given, int(options[0]), logits.shape[1]).to(values.dtype)
    masked = logits.detach() < lowest(logits.dtype)
    return rows.masked_fill(masked.scatter(1, target[:, None], False), 0)


def forward(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> tuple[Tensor, Tensor]:
    parts = []
    for values, rows, _ in _parts(logits, operands, options):
        lse = values.logsumexp(-1)
        mass = rows.sum(-1)
        parts.append(torch.stack([mass * lse - _picked(rows, values), lse, mass], -1))
    found = torch.cat(parts)
    return found[:, 0].contiguous(), found[:, 1:].contiguous()


def backward(
    grad: Tensor, logits: Tensor, saved: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Tensor:
    result = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    for values, rows, chosen in _parts(logits, operands, options):
        lse, mass = saved[chosen].unbind(-1)
        probs = torch.exp(values - lse[:, None]).mul_(mass[:, None]).sub_(rows)
        result[chosen] = probs.mul_(grad[chosen, None]).to(result.dtype)
    return result


def with_gradient(
    logits: Tensor, factor: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Return the losses (n,) and the gradient of `sum factor * losses`, which overwrites the logits."""
    wide = logits if logits.dtype == torch.float64 else logits.float()  # the logits themselves in float32
    lse = wide.logsumexp(-1)
    closed = torch.where(
        factor == 0, torch.inf, lse
    )  # a factor of 0 gives 0, also for a row whose classes are all masked
    if int(options[0]) == HARD:
        own_column = operands[0][:, None]
        loss = lse - wide.gather(1, own_column).squeeze(1)
        wide.sub_(closed[:, None]).exp_().mul_(factor[:, None])
        wide.scatter_add_(1, own_column, -factor[:, None])
    else:
        rows = open_rows(logits, wide, operands, options)
        mass = rows.sum(-1)
        loss = mass * lse - _picked(rows, wide)
        wide.sub_(closed[:, None]).exp_().mul_((mass * factor)[:, None])
        wide.addcmul_(rows, factor[:, None], value=-1)
    return loss, logits.copy_(wide) if wide is not logits else logits


def _picked(rows: Tensor, values: Tensor) -> Tensor:
    return torch.where(rows != 0, rows * values, 0).sum(-1)


def _parts(
    logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    target, *given = operands
    for start in range(0, len(logits), ROWS):
        chosen = slice(start, start + ROWS)
        values = logits[chosen].to(dtype)
        yield values, open_rows(logits[chosen], values, [target[chosen], *given], options), chosen
