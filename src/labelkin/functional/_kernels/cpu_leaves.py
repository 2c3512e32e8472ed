"""CPU: losses on the path through a flat softmax, in closed form (the equations are in `triton_leaves`).

Rows of the softmax are cut into blocks. Prefix sums over blocks, in float64, give the sum of the blocks inside each interval of
a path, and the partial blocks at its ends are read one by one. A difference of prefix sums is inexact if the interval is a
small part of the whole sum; such rows are computed again without prefix sums. The gradient is the softmax times one factor in
each ring, `A_r exp(S_0 - S_r)`; rows in which a factor would overflow are computed without the softmax.
"""

from collections.abc import Sequence
from math import exp

import torch
from torch import Tensor

BLOCK = 32
EXACT_ROWS = 64  # rows computed at once without prefix sums
NEAR_ROWS = 64  # rows computed at once otherwise, so that they stay in the cache between operations
SMALLEST_SHARE = {torch.float32: 1e-8, torch.float64: 1e-3}
WIDEST_GAP = 50.0  # between S_0 and S_r; with more, probabilities below the node may be rounded to 0


def lowest(dtype: torch.dtype) -> float:
    """Return the threshold below which a logit or log-sum-exp counts as masked."""
    return torch.finfo(dtype).min / 4


def edge_weights(depth: Tensor, length: Tensor, options: Sequence[float]) -> Tensor:
    scale, alpha, base, slope, inverse = options[:5]
    return scale * torch.exp(-alpha * depth) + base + slope * (length - depth) + inverse / depth.clamp_min(1)


def intervals(operands: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the intervals below the nodes on the path (n, L + 1), padded with the target's interval, and the lengths (n,)."""
    target, _, first, last, path, lengths = operands[:6]
    length = lengths[target]
    steps = torch.arange(path.shape[1] + 1, device=target.device)
    nodes = torch.nn.functional.pad(path[first[target]], (1, 0)).long()
    nodes = torch.where(steps <= length[:, None], nodes, target[:, None])
    return first[nodes].long(), last[nodes].long(), length


def path_loss(lse: Tensor, length: Tensor, options: Sequence[float], lowest: float) -> Tensor:
    """Compute `sum_d w_d (S_(d-1) - S_d)` over the first `length` edges; infinite where a node on the path is masked.

    If S is below `lowest`, all leaves of the node are masked.
    """
    depth = torch.arange(1, lse.shape[1], dtype=lse.dtype, device=lse.device)
    weight = edge_weights(depth, length[:, None].to(lse.dtype), options)
    known = (depth <= length[:, None]) & (weight != 0)
    masked = lse[:, 1:] < lowest
    steps = torch.where(known & ~masked, lse[:, :-1] - lse[:, 1:], 0)
    return (weight * steps.masked_fill(known & masked, torch.inf)).sum(-1)


def exact(logits: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """Return the log-sum-exp of every interval (n, L + 1) of rows in depth-first order."""
    place = torch.arange(logits.shape[1], device=logits.device)
    inside = (place >= lo[..., None]) & (place < hi[..., None])
    return logits[:, None].masked_fill(~inside, float("-inf")).logsumexp(-1)


def forward(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> tuple[Tensor, Tensor]:
    ordered = _ordered(logits, operands[1])
    lo, hi, length = intervals(operands)
    saved = ordered.new_empty(len(ordered), lo.shape[1] + ordered.shape[1])
    lse, probs = _kept(saved, lo.shape[1])
    found, doubtful = _by_blocks(ordered, lo, hi, probs)
    lse.copy_(found)
    for rows in torch.split(doubtful.nonzero().flatten(), EXACT_ROWS):
        lse[rows] = exact(ordered[rows], lo[rows], hi[rows])
    return path_loss(lse, length, options, lowest(logits.dtype)), saved


def _kept(saved: Tensor, depths: int) -> tuple[Tensor, Tensor]:
    """Return the log-sum-exps (n, depths) and the softmax (n, K) in depth-first order, which `saved` holds in this order."""
    values, size = saved.view(-1), len(saved) * depths
    return values[:size].view(-1, depths), values[size:].view(len(saved), -1)


def backward(
    grad: Tensor, logits: Tensor, saved: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Tensor:
    lo, hi, length = intervals(operands)
    lse, probs = _kept(saved, lo.shape[1])
    masked = lse < lowest(logits.dtype)  # all leaves of the node are masked and get no gradient
    share = _shares(lse, length, options, masked) * grad[:, None]
    lse = lse.masked_fill(masked, 0)
    levels, classes = lo.shape[1] - 1, probs.shape[1]
    bounds = torch.cat([lo[:, 1:], hi[:, 1:].flip(-1)], -1)

    def ring(bounds: Tensor, places: Tensor) -> Tensor:
        passed = torch.searchsorted(bounds, places, right=True)
        return torch.minimum(passed, 2 * levels - passed)

    gap = (lse[:, :1] - lse).masked_fill(masked, 0)
    factor = share * gap.clamp_max(WIDEST_GAP).exp()
    starts = torch.arange(0, classes, BLOCK).expand(len(lo), -1).contiguous()
    ends = (bounds // BLOCK).clamp_max(starts.shape[1] - 1)
    edges = (ends[..., None] * BLOCK + torch.arange(BLOCK)).flatten(1).clamp_max(classes - 1)
    of_blocks, of_edges = (factor.gather(1, ring(bounds, places)) for places in (starts, edges))
    result = torch.empty_like(probs)
    for values, out, factors in _blocks(probs, result, of_blocks):
        torch.mul(values, factors.unsqueeze(-1), out=out)
    result.scatter_(1, edges, probs.gather(1, edges).mul_(of_edges))
    far = ((gap > WIDEST_GAP).any(-1) | masked[:, 0]).nonzero().flatten()
    for rows in torch.split(far, EXACT_ROWS):
        ordered = _ordered(logits[rows], operands[1])
        at = ring(bounds[rows], torch.arange(classes).expand(len(rows), -1).contiguous())
        result[rows] = torch.exp(ordered - lse[rows].gather(1, at)) * share[rows].gather(1, at)
    order = operands[1]
    result = result.index_select(1, order.argsort()) if order.numel() else result
    return result.to(logits.dtype)


def _ordered(logits: Tensor, order: Tensor) -> Tensor:
    """Return rows in depth-first order, in float32 or float64."""
    values = logits.index_select(1, order) if order.numel() else logits
    return values if values.dtype == torch.float64 else values.float()


def _by_blocks(logits: Tensor, lo: Tensor, hi: Tensor, probs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-sum-exp of every interval, and a mask (n,) of the rows in which it is not exact; fill the softmax."""
    classes, whole = logits.shape[1], logits.shape[1] // BLOCK
    sums, highest = logits.new_empty(len(logits), whole), logits.new_empty(len(logits), 1)
    for rows in _slices(len(logits)):
        part = torch.softmax(logits[rows], -1, out=probs[rows])
        torch.amax(part, -1, keepdim=True, out=highest[rows])
        torch.sum(torch.unflatten(part[:, : whole * BLOCK], 1, (whole, BLOCK)), -1, out=sums[rows])
    top = logits.amax(-1, keepdim=True) - highest.log()  # S_0; NaN in rows whose classes are all masked
    shut = top.isnan()
    top, sums = top.masked_fill(shut, 0), sums.masked_fill(shut, 0)
    prefix = torch.nn.functional.pad(sums.double().cumsum(-1), (1, 0))
    begin, end = -(-lo // BLOCK), hi // BLOCK
    middle = torch.where(begin < end, prefix.gather(1, end) - prefix.gather(1, begin.clamp_max(whole)), 0)
    lane = torch.arange(BLOCK)
    left = lo[..., None] + lane
    right = torch.maximum(end, begin)[..., None] * BLOCK + lane
    left_outside = left >= torch.minimum(begin * BLOCK, hi)[..., None]
    right_outside = right >= hi[..., None]
    places = torch.cat([left, right], -1).clamp_max_(classes - 1)
    outside = torch.cat([left_outside, right_outside], -1).logical_or_(shut[..., None])
    found = probs.gather(1, places.flatten(1)).view_as(places).masked_fill_(outside, 0)
    total = middle + found.sum(-1, dtype=torch.float64)
    least = prefix[:, -1:] * SMALLEST_SHARE[logits.dtype]
    doubtful = (begin < end) & (middle < least) | (total < exp(-WIDEST_GAP))
    return (top.double() + total.log()).to(logits.dtype), doubtful.any(-1)


def _slices(rows: int) -> list[slice]:
    return [slice(start, min(start + NEAR_ROWS, rows)) for start in range(0, rows, NEAR_ROWS)]


def _blocks(values: Tensor, out: Tensor, factors: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return the full blocks (n, blocks, BLOCK) and the last, shorter one if columns remain, with their factors."""
    whole = values.shape[1] // BLOCK
    cut = whole * BLOCK
    parts = []
    if whole:
        cuts = [torch.unflatten(part[:, :cut], 1, (whole, BLOCK)) for part in (values, out)]
        parts.append((cuts[0], cuts[1], factors[:, :whole]))
    if cut < values.shape[1]:
        parts.append((values[:, None, cut:], out[:, None, cut:], factors[:, whole:]))
    return parts


def _shares(lse: Tensor, length: Tensor, options: Sequence[float], masked: Tensor) -> Tensor:
    """Return A_r of every ring: `c_r + A_(r-1) exp(S_r - S_(r-1))`; 0 for masked nodes, whose terms have no gradient."""
    depth = torch.arange(lse.shape[1], dtype=lse.dtype, device=lse.device)
    size = length[:, None].to(lse.dtype)
    weight = edge_weights(depth, size, options)
    lower = torch.where(depth < size, edge_weights(depth + 1, size, options), 0)
    lower = lower.masked_fill(torch.nn.functional.pad(masked[:, 1:], (0, 1)), 0)
    coefficient = lower - torch.where((depth > 0) & (depth <= size), weight, 0)
    shares = [coefficient[:, 0]]
    for step in range(1, lse.shape[1]):
        shrunk = shares[-1] * torch.exp(lse[:, step] - lse[:, step - 1])
        shares.append((coefficient[:, step] + shrunk).masked_fill(masked[:, step], 0))
    return torch.stack(shares, -1)
