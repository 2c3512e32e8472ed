# mypy: ignore-errors
"""Triton: losses on the path through softmaxes over siblings, `-sum_d w_d log p_d`.

One program processes one row and reads only the siblings along the path. Edges of the path are columns of a tile and siblings
its rows, so that no load waits for the edge above and a thread adds up the siblings of an edge. `saved` holds the log-sum-exp
of each of these groups, the log-probability of the target's node, and how many children of closed nodes are masked. The
backward pass writes every column: zeros first, then for leaves at different depths the gradient of `triton_mass`, then the
groups.

`constant - mass excess P(node)` is the part of the hierarchical loss's mass that depends only on the path. It
assumes that the probabilities of siblings sum to 1. A closed node whose children are all masked breaks this: then
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
def _path(node, length, first, path, child_first, child_count, levels, deep: tl.constexpr):
    """Return for each edge of a path its depth, whether it exists, its lower node, and where its siblings begin and end."""
    depth = tl.arange(0, deep) + 1
    known = depth <= length
    at = path + tl.load(first + node) * levels + depth - 1
    child = tl.load(at, mask=known, other=1)
    parent = tl.load(at - 1, mask=known & (depth > 1), other=0)
    begin = tl.load(child_first + parent, mask=known, other=0)
    return depth, known, child, begin, tl.load(child_count + parent, mask=known, other=0)


@triton.jit
def _siblings(values, child_column, begin, count, start, lowest, block: tl.constexpr):
    """Return for some siblings of each edge the columns, whether they exist, and the logits."""
    number = start + tl.arange(0, block)
    inside = number[:, None] < count[None, :]
    column = tl.load(child_column + begin[None, :] + number[:, None], mask=inside, other=0)
    value = tl.load(values + column, mask=inside, other=float("-inf")).to(tl.float32)
    return column, inside, opened(value, lowest)


@triton.jit
def _path_lse(values, child_column, begin, count, lowest, deep: tl.constexpr, block: tl.constexpr):
    """Return the log-sum-exp of the siblings of each edge; -inf if all are masked."""
    top = tl.full((deep,), float("-inf"), tl.float32)
    total = tl.zeros((deep,), tl.float32)
    for start in range(0, tl.max(count, 0), block):
        _, _, value = _siblings(values, child_column, begin, count, start, lowest, block)
        higher = tl.maximum(top, tl.max(value, 0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(value - shift[None, :]), 0)
        top = higher
    shift = tl.where(top == float("-inf"), 0.0, top)
    return shift + tl.log(total)


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
    watched, nodes_closed, nodes_watched, column, weight, above, uneven, group_first, group_count, largest, own_column, jumps,
    end, enter, groups, loss_out, saved, width, levels, lowest, scale, alpha, base, slope, inverse, constant, mass,
    closes: tl.constexpr, deep: tl.constexpr, block: tl.constexpr, look: tl.constexpr, steps: tl.constexpr,
    lanes: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    values = logits + row * stride
    kept = saved + row * width
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    depth, known, child, begins, count = _path(node, length, first, path, child_first, child_count, levels, deep)
    own = tl.load(values + child - 1, mask=known, other=0.0).to(tl.float32)
    lse = _path_lse(values, child_column, begins, count, lowest, deep, block)
    tl.store(kept + depth - 1, lse, mask=known)
    log_p = tl.where(known, tl.where(own < lowest, float("-inf"), own - lse), 0.0)
    weights = edge_weight(depth, length, scale, alpha, base, slope, inverse)
    log_prob = tl.sum(log_p, 0)
    loss = constant - tl.sum(tl.where(known, weights * log_p, 0.0), 0)
    lost = 0.0
    if closes:
        masked = _masked_children(values, watched, nodes_watched, lowest, look)
        for number in range(tl.where(masked > 0, nodes_closed, 0)):
            lost += _unreached(
                values, node, tl.load(closed + number), begin, finish, first, child_first, child_count, child_column, path,
                length_of, excess, levels, lowest, look,
            )  # fmt: skip
        tl.store(kept + levels + 1, masked.to(tl.float32))
    tl.store(kept + levels, log_prob)
    loss -= mass * tl.load(excess + node) * tl.exp(log_prob) + lost
    if lanes > 0:
        loss += triton_mass.summed(
            values, tl.load(begin + node), tl.load(finish + node), column, weight, group_first, group_count, largest,
            own_column, jumps, end, enter, groups, lowest, kept + levels + 2, steps, lanes,
        )  # fmt: skip
    tl.store(loss_out + row, loss)


@triton.jit
def _backward(
    grad, logits, stride, target, first, child_first, child_count, child_column, path, length_of, excess, begin, finish,
    closed, nodes_closed, column, weight, above, uneven, enter, groups, entries, saved, width, out, columns, levels, lowest,
    scale, alpha, base, slope, inverse, constant, mass,
    closes: tl.constexpr, deep: tl.constexpr, block: tl.constexpr, fill: tl.constexpr, ragged: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    values = logits + row * stride
    kept = saved + row * width
    grads = out + row * columns
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    factor = tl.load(grad + row).to(tl.float32)
    extra = mass * tl.load(excess + node) * tl.exp(tl.load(kept + levels))
    depth, known, child, begins, count = _path(node, length, first, path, child_first, child_count, levels, deep)
    lse = tl.load(kept + depth - 1, mask=known, other=0.0)
    masked = tl.load(values + child - 1, mask=known, other=0.0).to(tl.float32) < lowest
    shift = tl.where(masked, 0.0, lse)
    weights = factor * (edge_weight(depth, length, scale, alpha, base, slope, inverse) + extra)
    weights = tl.where(masked, 0.0, weights)
    zeros = tl.zeros((fill,), out.dtype.element_ty)
    for start in range(0, columns, fill):
        filled = start + tl.arange(0, fill)
        tl.store(grads + filled, zeros, mask=filled < columns)
    tl.debug_barrier()  # the groups overwrite zeros that other threads wrote
    if ragged:
        triton_mass.store_gradient(
            factor, values, grads, tl.load(begin + node), tl.load(finish + node), column, weight, above, uneven, enter,
            groups, entries, lowest, kept + levels + 2, fill,
        )  # fmt: skip
        tl.debug_barrier()
    for start in range(0, tl.max(count, 0), block):
        sibling, inside, value = _siblings(values, child_column, begins, count, start, lowest, block)
        result = weights[None, :] * (tl.exp(value - shift[None, :]) - tl.where(sibling == child[None, :] - 1, 1.0, 0.0))
        if ragged:
            result += tl.load(grads + sibling, mask=inside, other=0.0).to(tl.float32)
        tl.store(grads + sibling, result.to(out.dtype.element_ty), mask=inside)
    if closes:
        lane = tl.arange(0, fill)
        masked_children = tl.load(kept + levels + 1)
        for number in range(tl.where(masked_children > 0, nodes_closed, 0)):
            dead = tl.load(closed + number)
            lost = factor * _unreached(
                values, node, dead, begin, finish, first, child_first, child_count, child_column, path, length_of, excess,
                levels, lowest, fill,
            )  # fmt: skip
            place = tl.load(first + dead)
            parent = tl.zeros((), tl.int32)
            for level in range(1, tl.where(lost != 0.0, tl.load(length_of + dead), 0) + 1):
                here = tl.load(child_first + parent)
                size = tl.load(child_count + parent)
                below = tl.load(path + place * levels + level - 1)
                lse_here = _sibling_lse(values, child_column, here, size, lowest, fill)
                tl.debug_barrier()  # other threads may have written these columns
                for start in range(0, size, fill):
                    inside = start + lane < size
                    sibling = tl.load(child_column + here + start + lane, mask=inside, other=0)
                    value = tl.load(values + sibling, mask=inside, other=float("-inf")).to(tl.float32)
                    value = opened(value, lowest)
                    at = grads + sibling
                    before = tl.load(at, mask=inside, other=0.0).to(tl.float32)
                    result = before + lost * (tl.exp(value - lse_here) - tl.where(sibling == below - 1, 1.0, 0.0))
                    tl.store(at, result.to(out.dtype.element_ty), mask=inside)
                parent = below


def _mass_operands(first, rest):
    """Return begin, finish, closed nodes and watched columns, their numbers, and `Ragged`; without mass, placeholders."""
    if not rest:
        return [first] * 4, 0, 0, [first] * 11
    return rest[:4], len(rest[2]), len(rest[3]), rest[4:] or [first] * 11


def _tile(levels):
    """Return the numbers of edges and of siblings in a tile."""
    deep = triton.next_power_of_2(levels)
    return {"deep": deep, "block": max(8, 256 // deep)}


def forward(logits, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *rest = operands
    given, closed, watched, ragged = _mass_operands(first, rest)
    rows, levels = len(logits), path.shape[1]
    groups = len(ragged[4]) if len(rest) > 4 else 0
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(rows, saved_by_nodes(operands), dtype=torch.float32, device=logits.device)
    lanes = max(32, triton.next_power_of_2(groups)) if groups else 0
    _forward[(rows,)](
        logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess, *given,
        closed, watched, *ragged, groups, loss, saved, saved.shape[1], levels, cut_off(logits.dtype), *options,
        closes=closed > 0, look=512 if watched > 256 else 64, steps=len(ragged[8]) if groups else 0, lanes=lanes,
        num_warps=min(8, max(2, lanes // 64)) if groups else 1, **_tile(levels),
    )  # fmt: skip
    return loss, saved


def backward(grad, logits, saved, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *rest = operands
    given, closed, _, ragged = _mass_operands(first, rest)
    rows, columns = logits.shape
    groups, entries = (len(ragged[4]), len(ragged[0])) if len(rest) > 4 else (0, 0)
    column, weight, above, uneven, *_, enter = ragged
    out = torch.empty(rows, columns, dtype=logits.dtype, device=logits.device)
    fill = 2048 if columns > 2048 else 512
    _backward[(rows,)](
        grad, logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess,
        *given[:3], closed, column, weight, above, uneven, enter, groups, entries, saved, saved.shape[1], out, columns,
        path.shape[1], cut_off(logits.dtype), *options,
        closes=closed > 0, fill=fill, ragged=groups > 0, num_warps=4 if groups or fill > 512 else 2,
        **_tile(path.shape[1]),
    )  # fmt: skip
    return out
