# mypy: ignore-errors
"""Triton: the summed probabilities of a tree's inner nodes, for leaves at different depths.

One program processes one row and keeps the ragged part of the tree (see `Ragged`) in registers: scans over siblings give
`log p`, doubling steps give the probability of every node, and a cumulative sum in preorder gives the sum below each.
With W the mass at or below a node, the gradient is `W - p sum of W over the siblings`.
"""

import triton
import triton.language as tl

from labelkin.functional._kernels.cpu_leaves import lowest as cut_off
from labelkin.functional._kernels.triton_leaves import opened


@triton.jit
def _scan_max(left, left_begins, right, right_begins):
    return tl.where(right_begins != 0, right, tl.maximum(left, right)), left_begins | right_begins


@triton.jit
def _scan_sum(left, left_begins, right, right_begins):
    return tl.where(right_begins != 0, right, left + right), left_begins | right_begins


@triton.jit
def _masses(
    logits, stride, row, node, begin, finish, column, last, begins, jumps, weight, enter, size, lowest,
    steps: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, block)
    inside = lane < size
    where = tl.load(column + lane, mask=inside, other=0)
    value = opened(tl.load(logits + row * stride + where, mask=inside, other=0.0).to(tl.float32), lowest)
    start = tl.load(begins + lane, mask=inside, other=1)
    end = tl.where(inside, tl.load(last + lane, mask=inside, other=0), lane)
    highest, _ = tl.associative_scan((value, start), 0, _scan_max)
    shift = tl.gather(highest, end, 0)
    shift = tl.where(shift == float("-inf"), 0.0, shift)
    total, _ = tl.associative_scan((tl.exp(value - shift), start), 0, _scan_sum)
    log_p = value - shift - tl.log(tl.gather(total, end, 0))
    log_p = tl.where(value == float("-inf"), float("-inf"), log_p)  # also where all siblings are masked
    log_prob = log_p
    for step in tl.static_range(steps):
        above = tl.load(jumps + step * size + lane, mask=inside, other=size)
        log_prob += tl.gather(log_prob, above, 0)
    number = tl.load(enter + lane, mask=inside, other=0)
    below = (number > tl.load(begin + node)) & (number < tl.load(finish + node))
    share = tl.load(weight + lane, mask=inside & (below == 0), other=0.0)
    return where, log_p, tl.where(share > 0, share * tl.exp(log_prob), 0.0)


@triton.jit
def _forward(
    logits, stride, target, begin, finish, column, last, begins, jumps, up, weight, enter, preorder, first, end, size,
    lowest, loss, steps: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    _, _, mass = _masses(
        logits, stride, row, node, begin, finish, column, last, begins, jumps, weight, enter, size, lowest, steps, block
    )
    tl.store(loss + row, tl.load(loss + row) + tl.sum(mass, 0))


@triton.jit
def _backward(
    grad, logits, stride, target, begin, finish, column, last, begins, jumps, up, weight, enter, preorder, first, end,
    size, lowest, out, columns, steps: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    where, log_p, mass = _masses(
        logits, stride, row, node, begin, finish, column, last, begins, jumps, weight, enter, size, lowest, steps, block
    )
    lane = tl.arange(0, block)
    inside = lane < size
    ordered = tl.gather(mass, tl.where(inside, tl.load(preorder + lane, mask=inside, other=0), lane), 0)
    running = tl.cumsum(ordered, 0)
    place = tl.where(inside, tl.load(first + lane, mask=inside, other=0), lane)
    stop = tl.where(inside, tl.load(end + lane, mask=inside, other=0), lane)
    covered = tl.gather(running, stop, 0) - tl.gather(running - ordered, place, 0)
    beneath = tl.where(lane == size, tl.sum(mass, 0), covered - mass)
    siblings = tl.gather(beneath, tl.load(up + lane, mask=inside, other=size), 0)
    result = tl.load(grad + row).to(tl.float32) * (covered - tl.exp(log_p) * siblings)
    at = out + row * columns + where
    before = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    tl.store(at, (before + result).to(out.dtype.element_ty), mask=inside)


LARGEST = 4096  # columns of the ragged part that one program keeps in registers


def _shape(size: int) -> dict[str, int]:
    block = triton.next_power_of_2(size + 1)
    return {"block": block, "num_warps": min(8, max(1, block // 256))}


def add_forward(logits, target, ragged, loss):
    """Add each row's mass to `loss`; `ragged` is (begin, finish, *Ragged)."""
    column, jumps = ragged[2], ragged[5]
    _forward[(len(logits),)](
        logits, logits.stride(0), target, *ragged, len(column), cut_off(logits.dtype), loss, steps=len(jumps),
        **_shape(len(column)),
    )  # fmt: skip


def add_backward(grad, logits, target, ragged, out):
    """Add the gradient of each row's mass to `out`."""
    column, jumps = ragged[2], ragged[5]
    _backward[(len(logits),)](
        grad, logits, logits.stride(0), target, *ragged, len(column), cut_off(logits.dtype), out, out.shape[1],
        steps=len(jumps), **_shape(len(column)),
    )  # fmt: skip
