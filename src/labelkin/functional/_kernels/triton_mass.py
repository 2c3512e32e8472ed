# mypy: ignore-errors
"""Triton: the summed probabilities of a tree's inner nodes, for leaves at different depths.

One program processes one row. With the uneven nodes u of `Ragged` and their children c, the sum is `sum_u P_u A_u`, where
`A_u = sum_c p_c weight_c`. A lane computes the log-sum-exp and A of one uneven node; lanes with similar numbers of children
work together. Doubling steps give log P of the uneven nodes, and a cumulative sum in preorder gives B_u, the sum of P A at
and below u. The gradient for a child is `p_c (P_u weight_c - B_u)`, plus B_c if the child is uneven itself.

`saved` holds, for each row after `skip` columns, the log-sum-exp, log P and B of the uneven nodes.
"""

import triton
import triton.language as tl

from labelkin.functional._kernels.cpu_leaves import lowest as cut_off
from labelkin.functional._kernels.triton_leaves import opened


@triton.jit
def _at_or_below(number, begin, finish, node):
    return (number >= tl.load(begin + node)) & (number < tl.load(finish + node))


@triton.jit
def _forward(
    logits, stride, target, begin, finish, column, weight, above, uneven, first, count, largest, own, jumps, end, enter,
    size, lowest, loss, saved, width, skip, steps: tl.constexpr, lanes: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    kept = saved + row * width + skip
    values = logits + row * stride
    for start in range(0, size, lanes):
        place = start + tl.arange(0, lanes)
        present = place < size
        group = tl.load(largest + place, mask=present, other=0)
        children = tl.load(count + group, mask=present, other=0)
        begins = tl.load(first + group, mask=present, other=0)
        top = tl.full((lanes,), float("-inf"), tl.float32)
        total = tl.zeros((lanes,), tl.float32)
        reached = tl.zeros((lanes,), tl.float32)
        for number in range(tl.max(children, 0)):
            inside = number < children
            where = tl.load(column + begins + number, mask=inside, other=0)
            share = tl.load(weight + begins + number, mask=inside, other=0.0)
            value = opened(tl.load(values + where, mask=inside, other=float("-inf")).to(tl.float32), lowest)
            higher = tl.maximum(top, value)
            shift = tl.where(higher == float("-inf"), 0.0, higher)
            part = tl.exp(value - shift)
            shrunk = tl.exp(top - shift)
            total = total * shrunk + part
            reached = reached * shrunk + part * share
            top = higher
        is_open = total > 0
        lse = tl.where(is_open, top + tl.log(tl.where(is_open, total, 1.0)), float("-inf"))
        unknown = _at_or_below(tl.load(enter + group, mask=present, other=0), begin, finish, node)
        reached = tl.where(is_open & (unknown == 0), reached / tl.where(is_open, total, 1.0), 0.0)
        tl.store(kept + group, lse, mask=present)
        tl.store(kept + 2 * size + group, reached, mask=present)
    tl.debug_barrier()  # other threads wrote what is read below
    lane = tl.arange(0, block)
    present = lane < size
    above_it = (
        tl.load(jumps + lane, mask=present, other=0) if steps > 0 else tl.zeros((block,), tl.int32)
    )  # one step up
    value = tl.load(values + tl.load(own + lane, mask=present, other=0), mask=present & (lane > 0), other=0.0)
    value = opened(value.to(tl.float32), lowest)
    lse = tl.load(kept + above_it, mask=present & (lane > 0), other=0.0)
    log_prob = tl.where(value == float("-inf"), float("-inf"), value - lse)
    for step in tl.static_range(steps):
        higher_up = tl.load(jumps + step * size + lane, mask=present, other=0)
        log_prob += tl.gather(log_prob, higher_up, 0)
    reached = tl.load(kept + 2 * size + lane, mask=present, other=0.0)
    mass = tl.where(reached > 0, tl.exp(log_prob) * reached, 0.0)
    running = tl.cumsum(mass, 0)
    last = tl.load(end + lane, mask=present, other=0)
    covered = tl.gather(running, tl.where(present, last, lane), 0) - (running - mass)
    tl.store(loss + row, tl.load(loss + row) + tl.sum(mass, 0))
    tl.debug_barrier()  # all threads have read `reached`, which is overwritten
    tl.store(kept + size + lane, log_prob, mask=present)
    tl.store(kept + 2 * size + lane, covered, mask=present)


@triton.jit
def _backward(
    grad, logits, stride, target, begin, finish, column, weight, above, uneven, first, count, largest, own, jumps, end,
    enter, size, lowest, saved, width, skip, out, columns, entries, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    kept = saved + row * width + skip
    factor = tl.load(grad + row).to(tl.float32)
    for start in range(0, entries, block):
        place = start + tl.arange(0, block)
        inside = place < entries
        where = tl.load(column + place, mask=inside, other=0)
        group = tl.load(above + place, mask=inside, other=0)
        value = tl.load(logits + row * stride + where, mask=inside, other=float("-inf")).to(tl.float32)
        value = opened(value, lowest)
        lse = tl.load(kept + group, mask=inside, other=0.0)
        p = tl.where(value == float("-inf"), 0.0, tl.exp(value - lse))
        unknown = _at_or_below(tl.load(enter + group, mask=inside, other=0), begin, finish, node)
        share = tl.load(weight + place, mask=inside & (unknown == 0), other=0.0)
        prob = tl.exp(tl.load(kept + size + group, mask=inside, other=0.0))
        child = tl.load(uneven + place, mask=inside, other=0)
        below = tl.load(kept + 2 * size + child, mask=inside & (child < size), other=0.0)
        result = factor * (p * (prob * share - tl.load(kept + 2 * size + group, mask=inside, other=0.0)) + below)
        at = out + row * columns + where
        before = tl.load(at, mask=inside, other=0.0).to(tl.float32)
        tl.store(at, (before + result).to(out.dtype.element_ty), mask=inside)


def add_forward(logits, target, ragged, loss, saved, skip):
    """Add each row's mass to `loss`, and fill `saved` after `skip` columns; `ragged` is (begin, finish, *Ragged)."""
    size, jumps = len(ragged[6]), ragged[10]
    block = max(32, triton.next_power_of_2(size))
    _forward[(len(logits),)](
        logits, logits.stride(0), target, *ragged, size, cut_off(logits.dtype), loss, saved, saved.shape[1], skip,
        steps=len(jumps), lanes=min(block, 64), block=block, num_warps=min(8, max(1, block // 128)),
    )  # fmt: skip


def add_backward(grad, logits, saved, skip, target, ragged, out):
    """Add the gradient of each row's mass to `out`."""
    entries, size = len(ragged[2]), len(ragged[6])
    block = min(1024, triton.next_power_of_2(entries))
    _backward[(len(logits),)](
        grad, logits, logits.stride(0), target, *ragged, size, cut_off(logits.dtype), saved, saved.shape[1], skip, out,
        out.shape[1], entries, block=block, num_warps=min(4, max(1, block // 256)),
    )  # fmt: skip
