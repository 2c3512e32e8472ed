# mypy: ignore-errors
"""Triton: losses on the path through softmaxes over siblings, `-sum_d w_d log p_d`.

One program processes one row and reads only the siblings along the path. `saved` holds the log-sum-exp of each of these
groups, the log-probability of the target's node, and how many children of closed nodes are masked. The backward pass writes
every column: zeros first, then the groups.

`constant - mass excess P(node)` is the part of the hierarchical loss's mass that depends only on the path. It takes for
granted that the probabilities of siblings sum to 1. A closed node whose children are all masked breaks this: then
`excess P(closed node)` is subtracted as well. Rows with a masked child of a closed node look for such nodes one by one.
"""

import torch
import triton
import triton.language as tl

from labelkin.functional._kernels import triton_mass
from labelkin.functional._kernels.composed import saved_by_nodes
from labelkin.functional._kernels.cpu_leaves import lowest as cut_off
from labelkin.functional._kernels.triton_leaves import edge_weight, opened


@triton.jit
def _sibling_lse(values, child_column, begin, count, lowest, block: tl.constexpr):
    """Return the log-sum-exp of the children of a node; -inf if all are masked."""
    lane = tl.arange(0, block)
    top = tl.full((block,), float("-inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, count, block):
        inside = start + lane < count
        column = tl.load(child_column + begin + start + lane, mask=inside, other=0)
        value = tl.load(values + column, mask=inside, other=float("-inf")).to(tl.float32)
        value = opened(value, lowest)
        higher = tl.maximum(top, value)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.exp(value - shift)
        top = higher
    highest = tl.max(top, 0)
    shift = tl.where(highest == float("-inf"), 0.0, highest)
    return shift + tl.log(tl.sum(total * tl.exp(top - shift), 0))


@triton.jit
def _masked_children(values, watched, size, lowest, look: tl.constexpr):
    """Return how many children of closed nodes are masked."""
    lane = tl.arange(0, look)
    found = tl.zeros((look,), tl.int32)
    for start in range(0, size, look):
        inside = start + lane < size
        column = tl.load(watched + start + lane, mask=inside, other=0)
        value = tl.load(values + column, mask=inside, other=0.0).to(tl.float32)
        found += (value < lowest).to(tl.int32)
    return tl.sum(found, 0)


@triton.jit
def _unreached(
    values, node, closed, begin, finish, first, child_first, child_count, child_column, path, length_of, excess, levels,
    lowest, block: tl.constexpr,
):  # fmt: skip
    """Return `excess P` of a closed node whose children are all masked; 0 for others, and at or below the target's node."""
    number = tl.load(begin + closed)
    known = (number >= tl.load(begin + node)) & (number < tl.load(finish + node))
    below = _sibling_lse(
        values, child_column, tl.load(child_first + closed), tl.load(child_count + closed), lowest, block
    )
    counts = (below == float("-inf")) & (known == 0)
    length = tl.where(counts, tl.load(length_of + closed), 0)
    place = tl.load(first + closed)
    log_prob = 0.0
    parent = tl.zeros((), tl.int32)
    for depth in range(1, length + 1):
        child = tl.load(path + place * levels + depth - 1)
        own = opened(tl.load(values + child - 1).to(tl.float32), lowest)
        lse = _sibling_lse(
            values, child_column, tl.load(child_first + parent), tl.load(child_count + parent), lowest, block
        )
        log_prob += tl.where(own == float("-inf"), float("-inf"), own - lse)
        parent = child
    return tl.where(counts, tl.load(excess + closed) * tl.exp(log_prob), 0.0)


@triton.jit
def _forward(
    logits, stride, target, first, child_first, child_count, child_column, path, length_of, excess, begin, finish, closed,
    watched, nodes_closed, nodes_watched, loss_out, saved, width, levels, lowest, scale, alpha, base, slope, inverse,
    constant, mass, closes: tl.constexpr, block: tl.constexpr, look: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    values = logits + row * stride
    kept = saved + row * width
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    place = tl.load(first + node)
    loss = 0.0
    log_prob = 0.0
    parent = tl.zeros((), tl.int32)
    for depth in range(1, length + 1):
        child = tl.load(path + place * levels + depth - 1)
        own = tl.load(values + child - 1).to(tl.float32)
        lse = _sibling_lse(
            values, child_column, tl.load(child_first + parent), tl.load(child_count + parent), lowest, block
        )
        tl.store(kept + depth - 1, lse)
        log_p = tl.where(own < lowest, float("-inf"), own - lse)
        loss -= edge_weight(depth, length, scale, alpha, base, slope, inverse) * log_p
        log_prob += log_p
        parent = child
    lost = 0.0
    if closes:
        masked = _masked_children(values, watched, nodes_watched, lowest, look)
        for number in range(tl.where(masked > 0, nodes_closed, 0)):
            lost += _unreached(
                values, node, tl.load(closed + number), begin, finish, first, child_first, child_count, child_column, path,
                length_of, excess, levels, lowest, block,
            )  # fmt: skip
        tl.store(kept + levels + 1, masked.to(tl.float32))
    tl.store(kept + levels, log_prob)
    tl.store(loss_out + row, loss + constant - mass * tl.load(excess + node) * tl.exp(log_prob) - lost)


@triton.jit
def _backward(
    grad, logits, stride, target, first, child_first, child_count, child_column, path, length_of, excess, begin, finish,
    closed, nodes_closed, saved, width, out, columns, levels, lowest, scale, alpha, base, slope, inverse, constant, mass,
    closes: tl.constexpr, block: tl.constexpr, fill: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    values = logits + row * stride
    kept = saved + row * width
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    place = tl.load(first + node)
    factor = tl.load(grad + row).to(tl.float32)
    extra = mass * tl.load(excess + node) * tl.exp(tl.load(kept + levels))
    zeros = tl.zeros((fill,), out.dtype.element_ty)
    for start in range(0, columns, fill):
        filled = start + tl.arange(0, fill)
        tl.store(out + row * columns + filled, zeros, mask=filled < columns)
    tl.debug_barrier()  # the groups overwrite zeros that other threads wrote
    lane = tl.arange(0, block)
    parent = tl.zeros((), tl.int32)
    for depth in range(1, length + 1):
        begins = tl.load(child_first + parent)
        count = tl.load(child_count + parent)
        child = tl.load(path + place * levels + depth - 1)
        lse = tl.load(kept + depth - 1)
        masked = tl.load(values + child - 1).to(tl.float32) < lowest
        shift = tl.where(masked, 0.0, lse)
        weight = factor * (edge_weight(depth, length, scale, alpha, base, slope, inverse) + extra)
        weight = tl.where(masked, 0.0, weight)
        for start in range(0, count, block):
            inside = start + lane < count
            column = tl.load(child_column + begins + start + lane, mask=inside, other=0)
            value = tl.load(values + column, mask=inside, other=float("-inf")).to(tl.float32)
            value = opened(value, lowest)
            result = weight * (tl.exp(value - shift) - tl.where(column == child - 1, 1.0, 0.0))
            tl.store(out + row * columns + column, result.to(out.dtype.element_ty), mask=inside)
        parent = child
    if closes:
        masked_children = tl.load(kept + levels + 1)
        for number in range(tl.where(masked_children > 0, nodes_closed, 0)):
            above = tl.load(closed + number)
            lost = factor * _unreached(
                values, node, above, begin, finish, first, child_first, child_count, child_column, path, length_of, excess,
                levels, lowest, block,
            )  # fmt: skip
            place = tl.load(first + above)
            parent = tl.zeros((), tl.int32)
            for depth in range(1, tl.where(lost != 0.0, tl.load(length_of + above), 0) + 1):
                begins = tl.load(child_first + parent)
                count = tl.load(child_count + parent)
                child = tl.load(path + place * levels + depth - 1)
                lse = _sibling_lse(values, child_column, begins, count, lowest, block)
                tl.debug_barrier()  # other threads may have written these columns
                for start in range(0, count, block):
                    inside = start + lane < count
                    column = tl.load(child_column + begins + start + lane, mask=inside, other=0)
                    value = tl.load(values + column, mask=inside, other=float("-inf")).to(tl.float32)
                    value = opened(value, lowest)
                    at = out + row * columns + column
                    before = tl.load(at, mask=inside, other=0.0).to(tl.float32)
                    result = before + lost * (tl.exp(value - lse) - tl.where(column == child - 1, 1.0, 0.0))
                    tl.store(at, result.to(out.dtype.element_ty), mask=inside)
                parent = child


def _mass_operands(first, rest):
    """Return begin, finish, closed nodes and watched columns, their numbers, and `Ragged`; without mass, nothing to look at."""
    if not rest:
        return [first] * 4, 0, 0, []
    return rest[:4], len(rest[2]), len(rest[3]), rest[4:]


def forward(logits, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *rest = operands
    given, closed, watched, ragged = _mass_operands(first, rest)
    rows, levels = len(logits), path.shape[1]
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(rows, saved_by_nodes(operands), dtype=torch.float32, device=logits.device)
    _forward[(rows,)](
        logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess, *given,
        closed, watched, loss, saved, saved.shape[1], levels, cut_off(logits.dtype), *options,
        closes=closed > 0, block=64, look=512 if watched > 256 else 64, num_warps=1,
    )  # fmt: skip
    if ragged:
        triton_mass.add_forward(logits, target, [*given[:2], *ragged], loss, saved, levels + 2)
    return loss, saved


def backward(grad, logits, saved, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *rest = operands
    given, closed, _, ragged = _mass_operands(first, rest)
    rows, columns = logits.shape
    out = torch.empty(rows, columns, dtype=logits.dtype, device=logits.device)
    wide = columns > 2048
    _backward[(rows,)](
        grad, logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess,
        *given[:3], closed, saved, saved.shape[1], out, columns, path.shape[1], cut_off(logits.dtype), *options,
        closes=closed > 0, block=128 if wide else 64, fill=2048 if wide else 512, num_warps=4 if wide else 1,
    )  # fmt: skip
    if ragged:
        triton_mass.add_backward(grad, logits, saved, path.shape[1] + 2, target, [*given[:2], *ragged], out)
    return out
