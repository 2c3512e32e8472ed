"""CPU: losses on the path through a flat softmax, in closed form (the equations are in `triton_leaves`).

The leaves below the nodes on a path are nested intervals. The ends of L of them cut a row into 2 L + 1 segments; the two
between one interval and the next are a ring. One call of `np.add.reduceat` sums the softmax over all segments of many rows,
and sums of rings from the inside to the outside are the probabilities of the nodes, without cancellation. The gradient is the
softmax times one factor in each ring, `A_r exp(S_0 - S_r) = sum_(q <= r) c_q exp(S_0 - S_q)`, which `np.repeat` writes to the
segments. Rows in which a probability is rounded to 0 or a factor would overflow are computed without the softmax.

Arrays of L columns are numpy's, whose operations on small arrays take less time than torch's.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.functional._kernels.chunks import split_rows

Array = npt.NDArray[Any]
EXACT_ROWS = 64  # rows computed at once without the softmax
NEAR_BYTES = 2**24  # size of the rows computed at once otherwise; with more parts, threads wait more often
WIDEST_GAP = 50.0  # between S_0 and S_r; with more, probabilities below the node may be rounded to 0


def lowest(dtype: torch.dtype) -> float:
    """Return the threshold below which a logit or log-sum-exp counts as masked."""
    return torch.finfo(dtype).min / 4


def edge_weights(depth: Tensor, length: Tensor, options: Sequence[float]) -> Tensor:
    scale, alpha, base, slope, inverse = options[:5]
    return scale * torch.exp(-alpha * depth) + base + slope * (length - depth) + inverse / depth.clamp_min(1)


def cuts(operands: Sequence[Tensor]) -> Array:
    """Return the ends of the intervals of the nodes on the path (n, 2 L + 2) in ascending order, the root's first and last.

    After the end of a path, the target's interval is repeated.
    """
    target, _, first, last, path, lengths = (part.numpy() for part in operands[:6])
    depths = path.shape[1]
    on_path = np.arange(1, depths + 1) <= lengths.take(target)[:, None]
    nodes = np.where(on_path, path.take(first.take(target), 0), target[:, None])
    ends = np.empty((len(target), 2 * depths + 2), np.int64)
    ends[:, 0], ends[:, -1] = first[0], last[0]
    ends[:, 1 : depths + 1], ends[:, -2:depths:-1] = first.take(nodes), last.take(nodes)
    return ends


@lru_cache(maxsize=64)
def _weights(depths: int, options: tuple[float, ...]) -> Array:
    """Return w_d for d from 0 to L + 1 of paths of each length (L + 1, L + 2): 0 for the root and after the end of the path."""
    depth = torch.arange(depths + 2, dtype=torch.float64, device="cpu")
    length = depth[:-1, None]
    found: Array = torch.where((depth > 0) & (depth <= length), edge_weights(depth, length, options), 0).numpy()
    return found


def weights(operands: Sequence[Tensor], options: Sequence[float]) -> Array:
    """Return w_d of each row for d from 0 to L + 1 (n, L + 2), in float64: 0 for the root and after the end of the path."""
    length = operands[5].numpy().take(operands[0].numpy())
    return _weights(operands[4].shape[1], tuple(options)).take(length, 0)


def path_loss(lse: Tensor, weight: Tensor, lowest: float) -> Tensor:
    """Compute `sum_d w_d (S_(d-1) - S_d)` over the edges of a path; infinite where a node on the path is masked.

    If S is below `lowest`, all leaves of the node are masked.
    """
    weight = weight[:, 1:-1].to(lse.dtype)
    masked, steps = lse[:, 1:] < lowest, lse[:, :-1] - lse[:, 1:]
    if masked.any():
        steps = torch.where(masked, 0, steps).masked_fill(masked & (weight != 0), torch.inf)
    return (weight * steps).sum(-1)


def exact(logits: Tensor, ends: Tensor) -> Tensor:
    """Return the log-sum-exp of every interval (n, L + 1) of rows in depth-first order."""
    lo, hi = ends.chunk(2, -1)
    place = torch.arange(logits.shape[1], device=logits.device)
    inside = (place >= lo[..., None]) & (place < hi.flip(-1)[..., None])
    return logits[:, None].masked_fill(~inside, float("-inf")).logsumexp(-1)


@np.errstate(all="ignore")  # masks are infinite
def forward(logits: Tensor, operands: Sequence[Tensor], options: Sequence[float]) -> tuple[Tensor, Tensor]:
    ordered, ends = _ordered(logits, operands[1]), cuts(operands)
    depths = ends.shape[1] // 2
    saved = ordered.new_empty(len(ordered), ordered.shape[1] + depths)
    probs, lse = _kept(saved, depths)
    below = _probabilities(ordered, ends, saved)
    own = torch.from_numpy(ends[:, depths - 1 : depths])  # a leaf at or below the target
    share, logit = (values.gather(1, own).numpy() for values in (probs, ordered))
    top, least = logit - np.log(share), exp(-WIDEST_GAP)  # S_0 and the smallest probability that counts as exact
    for rows in _few(~(share >= least)):  # NaN if all classes of a row are masked
        top[rows] = ordered[rows].logsumexp(-1, keepdim=True).numpy()
    found = lse.numpy()
    found[:, :1], found[:, 1:] = top, top + np.log(below)
    for rows in _few(~(below[:, -1] >= least)):
        lse[rows] = exact(ordered[rows], torch.from_numpy(ends)[rows])
    return path_loss(lse, torch.from_numpy(weights(operands, options)), lowest(logits.dtype)), saved


@np.errstate(all="ignore")
def backward(
    grad: Tensor, logits: Tensor, saved: Tensor, operands: Sequence[Tensor], options: Sequence[float]
) -> Tensor:
    ends, weight, order = cuts(operands), weights(operands, options), operands[1]
    probs, kept = _kept(saved, ends.shape[1] // 2)
    lse, above = kept.numpy(), grad.numpy()[:, None]
    masked = lse < lowest(logits.dtype)  # all leaves of the node are masked and get no gradient
    if masked.any():
        lse = np.where(masked, 0, lse)
        weight = np.where(np.pad(masked, ((0, 0), (0, 1))), 0, weight)
    coefficient = weight[:, 1:] - weight[:, :-1]
    gap = np.where(masked, 0, lse[:, :1] - lse)
    factor = np.add.accumulate(coefficient * np.exp(np.minimum(gap, WIDEST_GAP), dtype=np.float64), 1)
    factor *= above
    result = _spread(probs, factor, ends)
    far = (gap > WIDEST_GAP).any(-1) | masked[:, 0]
    for rows in _few(far):
        chosen = rows.numpy()
        share = _shares(lse[chosen], coefficient[chosen], masked[chosen]) * above[chosen]
        at = _ring(torch.from_numpy(ends)[rows])
        sums, shares = (torch.from_numpy(part).gather(1, at) for part in (lse[chosen], share.astype(lse.dtype)))
        result[rows] = torch.exp(_ordered(logits[rows], order) - sums) * shares
    result = result.index_select(1, order.argsort()) if order.numel() else result
    return result.to(logits.dtype)


def _ordered(logits: Tensor, order: Tensor) -> Tensor:
    """Return rows in depth-first order, in float32 or float64."""
    values = logits.index_select(1, order) if order.numel() else logits
    return values if values.dtype == torch.float64 else values.float()


def _kept(saved: Tensor, depths: int) -> tuple[Tensor, Tensor]:
    """Return the softmax (n, K) in depth-first order and the log-sum-exps (n, depths), which lie one after the other."""
    values, size = saved.view(-1), len(saved) * (saved.shape[1] - depths)
    return values[:size].view(len(saved), -1), values[size:].view(-1, depths)


def _few(chosen: Array) -> Iterator[Tensor]:
    """Return the numbers of the chosen rows in parts; no part if there are none, which is the usual case."""
    rows = np.flatnonzero(chosen)
    return iter(torch.split(torch.from_numpy(rows), EXACT_ROWS) if len(rows) else ())


def _slices(values: Tensor) -> list[slice]:
    return split_rows(len(values), NEAR_BYTES // (values.shape[1] * values.element_size()))


def _ring(ends: Tensor) -> Tensor:
    """Return the depth of the innermost interval around each class (n, K)."""
    bounds, classes = ends[:, 1:-1].contiguous(), int(ends[0, -1])
    passed = torch.searchsorted(
        bounds, torch.arange(classes, device=ends.device).expand(len(bounds), -1).contiguous(), right=True
    )
    return torch.minimum(passed, bounds.shape[1] - passed)


def _probabilities(ordered: Tensor, ends: Array, saved: Tensor) -> Array:
    """Fill in the softmax and return the summed softmax (n, L) in each interval below the root, in float64."""
    rows, classes = ordered.shape
    values = saved.view(-1)
    flat, probs = values.numpy(), values[: rows * classes].view(rows, classes)
    starts = ends[:, 1:-1] + np.arange(0, rows * classes, classes)[:, None]
    sums = np.empty(starts.shape, flat.dtype)
    for part in _slices(ordered):
        torch.softmax(ordered[part], -1, out=probs[part])
        # One value after these rows is read, so that the end of the last row is a place too. The sum after the outermost
        # interval is not used.
        np.add.reduceat(flat[: part.stop * classes + 1], starts[part].ravel(), out=sums[part].reshape(-1))
    # Of an empty segment, numpy returns the value at its place.
    sums[:, :-1][starts[:, 1:] == starts[:, :-1]] = 0
    depths = starts.shape[1] // 2
    rings = sums[:, :depths].astype(np.float64)
    rings[:, :-1] += sums[:, 2 * depths - 2 : depths - 1 : -1]
    return np.add.accumulate(rings[:, ::-1], 1)[:, ::-1]


def _spread(probs: Tensor, factor: Array, ends: Array) -> Tensor:
    """Return the softmax times the factor of the ring of each class."""
    depths = factor.shape[1]
    factors = np.empty((len(factor), 2 * depths - 1), probs.numpy().dtype)
    factors[:, :depths], factors[:, depths:] = factor, factor[:, -2::-1]
    spread = np.repeat(factors.ravel(), (ends[:, 1:] - ends[:, :-1]).ravel())
    return torch.from_numpy(spread).view_as(probs).mul_(probs)


def _shares(lse: Array, coefficient: Array, masked: Array) -> Array:
    """Return A_r of every ring: `c_r + A_(r-1) exp(S_r - S_(r-1))`; 0 for masked nodes, whose terms have no gradient."""
    shares = np.empty(lse.shape)
    shares[:, 0] = coefficient[:, 0]
    for step in range(1, lse.shape[1]):
        shrunk = shares[:, step - 1] * np.exp(lse[:, step] - lse[:, step - 1])
        shares[:, step] = np.where(masked[:, step], 0, coefficient[:, step] + shrunk)
    return shares
