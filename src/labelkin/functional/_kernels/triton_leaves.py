# mypy: ignore-errors
"""Triton: losses on the path through a flat softmax, `-sum_d w_d log p(node_d | node_(d-1))`.

One program processes one row. The leaves below the nodes on a path are nested intervals of the depth-first order, so the row
is divided into rings: the leaves below the node of depth d but not below that of depth d + 1. Going outward, one running
log-sum-exp over the rings passes through S_d, the log-sum-exp below every node on the path. Each logit is read once.

The gradient of `sum_d c_d S_d` for a leaf of ring r is `exp(x - S_r) A_r` with `A_r = c_r + A_(r-1) exp(S_r - S_(r-1))`,
which never overflows.

With few classes one program holds a whole row, so that it waits for memory only once: a table has the ring of every leaf for
every class, and each S_d is one masked sum. The forward pass then also computes A, since
`A_r = sum_(j <= r) c_j exp(S_r - S_j)`, and the backward pass reads S and A of each leaf's ring.
"""

import torch
import triton
import triton.language as tl

from labelkin.functional._kernels.cpu_leaves import lowest as cut_off


@triton.jit
def edge_weight(depth, length, scale, alpha, base, slope, inverse):
    return scale * tl.exp(-alpha * depth) + base + slope * (length - depth) + inverse / tl.maximum(depth * 1.0, 1.0)


@triton.jit
def opened(value, lowest):
    """Return logits with masked ones set to -inf."""
    return tl.where(value < lowest, float("-inf"), value)


@triton.jit
def _node_at(path, place, depth, levels):
    return tl.load(path + place * levels + depth - 1, mask=depth > 0, other=0)


@triton.jit
def _forward(
    logits, stride, target, order, first, last, path, length_of, loss_out, lse_out, levels,
    lowest, scale, alpha, base, slope, inverse, permuted: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    lane = tl.arange(0, block)
    top = tl.full((block,), float("-inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    place_of_path = tl.load(first + node)
    inner_lo = tl.load(last + node)
    inner_hi = inner_lo
    below = 0.0
    loss = 0.0
    for step in range(length + 1):
        depth = length - step
        here = _node_at(path, place_of_path, depth, levels)
        lo = tl.load(first + here)
        hi = tl.load(last + here)
        left = inner_lo - lo
        count = left + hi - inner_hi
        for start in range(0, count, block):
            i = start + lane
            inside = i < count
            place = lo + i + tl.where(i >= left, inner_hi - inner_lo, 0)
            column = tl.load(order + place, mask=inside, other=0) if permuted else place
            value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
            value = opened(value, lowest)
            higher = tl.maximum(top, value)
            shift = tl.where(higher == float("-inf"), 0.0, higher)
            total = total * tl.exp(top - shift) + tl.exp(value - shift)
            top = higher
        highest = tl.max(top, 0)
        shift = tl.where(highest == float("-inf"), 0.0, highest)
        lse = shift + tl.log(tl.sum(total * tl.exp(top - shift), 0))
        tl.store(lse_out + row * (levels + 1) + depth, lse)
        weight = edge_weight(depth + 1, length, scale, alpha, base, slope, inverse)
        term = tl.where(below == float("-inf"), float("inf"), weight * (lse - below))
        loss += tl.where((step > 0) & (weight != 0.0), term, 0.0)
        below = lse
        inner_lo = lo
        inner_hi = hi
    tl.store(loss_out + row, loss)


@triton.jit
def _backward(
    grad, logits, stride, target, order, first, last, path, length_of, lse_in, out, classes, levels,
    lowest, scale, alpha, base, slope, inverse, permuted: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    lane = tl.arange(0, block)
    factor = tl.load(grad + row).to(tl.float32)
    before = tl.load(lse_in + row * (levels + 1))
    share = 0.0
    place_of_path = tl.load(first + node)
    lo = tl.load(first)
    hi = tl.load(last)
    for depth in range(length + 1):
        lse = tl.load(lse_in + row * (levels + 1) + depth)
        lower = edge_weight(depth + 1, length, scale, alpha, base, slope, inverse)
        upper = edge_weight(depth, length, scale, alpha, base, slope, inverse)
        beneath = tl.load(lse_in + row * (levels + 1) + depth + 1, mask=depth < length, other=float("-inf"))
        coefficient = tl.where(beneath == float("-inf"), 0.0, lower) - tl.where(depth > 0, upper, 0.0)
        masked = lse == float("-inf")  # all leaves below are masked and get no gradient
        share = tl.where(masked, 0.0, coefficient + share * tl.exp(lse - before))
        before = lse
        shift = tl.where(masked, 0.0, lse)
        child = tl.load(path + place_of_path * levels + depth, mask=depth < length, other=0)
        inner_lo = tl.where(depth < length, tl.load(first + child), hi)
        inner_hi = tl.where(depth < length, tl.load(last + child), hi)
        left = inner_lo - lo
        count = left + hi - inner_hi
        for start in range(0, count, block):
            i = start + lane
            inside = i < count
            place = lo + i + tl.where(i >= left, inner_hi - inner_lo, 0)
            column = tl.load(order + place, mask=inside, other=0) if permuted else place
            value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
            value = opened(value, lowest)
            result = tl.exp(value - shift) * (share * factor)
            tl.store(out + row * classes + column, result.to(out.dtype.element_ty), mask=inside)
        lo = inner_lo
        hi = inner_hi


@triton.jit
def _depth_shares(sums, beneath, length, scale, alpha, base, slope, inverse, deep: tl.constexpr):
    """Return A of every ring from the log-sum-exps at its depth and one below; 0 where all leaves are masked."""
    depth = tl.arange(0, deep)
    lower = edge_weight(depth + 1, length, scale, alpha, base, slope, inverse)
    upper = edge_weight(depth, length, scale, alpha, base, slope, inverse)
    open_below = (depth < length) & (beneath != float("-inf"))
    coefficient = tl.where(open_below, lower, 0.0) - tl.where(depth > 0, upper, 0.0)
    is_open = (depth <= length) & (sums != float("-inf"))
    finite = tl.where(is_open, sums, 0.0)
    counts = (depth[None, :] <= depth[:, None]) & is_open[:, None]
    gap = tl.where(counts, finite[:, None] - finite[None, :], float("-inf"))
    return tl.sum(tl.exp(gap) * coefficient[None, :], 1)


@triton.jit
def _whole_forward(
    logits, stride, target, first, length_of, rings, loss_out, saved, classes, levels,
    lowest, scale, alpha, base, slope, inverse, deep: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    column = tl.arange(0, block)
    inside = column < classes
    value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    value = opened(value, lowest)
    ring = tl.load(rings + tl.load(first + node) * classes + column, mask=inside, other=0).to(tl.int32)
    top = tl.max(value, 0)
    top = tl.where(top == float("-inf"), 0.0, top)
    part = tl.exp(value - top)
    depths = tl.arange(0, deep)
    sums = tl.full((deep,), float("-inf"), tl.float32)
    beneath = tl.full((deep,), float("-inf"), tl.float32)
    below = 0.0
    loss = 0.0
    for step in range(length + 1):
        depth = length - step
        within = ring >= depth
        total = tl.sum(tl.where(within, part, 0.0), 0)
        lse = top + tl.log(total)
        if total < 1e-30:  # all leaves below are far from the best one: terms are rounded to 0
            near = tl.where(within, value, float("-inf"))
            highest = tl.max(near, 0)
            highest = tl.where(highest == float("-inf"), 0.0, highest)
            lse = highest + tl.log(tl.sum(tl.exp(near - highest), 0))
        sums = tl.where(depths == depth, lse, sums)
        beneath = tl.where(depths == depth - 1, lse, beneath)
        weight = edge_weight(depth + 1, length, scale, alpha, base, slope, inverse)
        term = tl.where(below == float("-inf"), float("inf"), weight * (lse - below))
        loss += tl.where((step > 0) & (weight != 0.0), term, 0.0)
        below = lse
    tl.store(loss_out + row, loss)
    kept = saved + row * 2 * (levels + 1) + depths
    shares = _depth_shares(sums, beneath, length, scale, alpha, base, slope, inverse, deep)
    tl.store(kept, tl.where(sums == float("-inf"), 0.0, sums), mask=depths <= levels)
    tl.store(kept + levels + 1, shares, mask=depths <= levels)


@triton.jit
def _whole_backward(
    grad, logits, stride, target, first, length_of, rings, saved, out, classes, levels, lowest, block: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    factor = tl.load(grad + row).to(tl.float32)
    column = tl.arange(0, block)
    inside = column < classes
    value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    ring = tl.load(rings + tl.load(first + node) * classes + column, mask=inside, other=0).to(tl.int32)
    kept = saved + row * 2 * (levels + 1) + tl.minimum(ring, length)
    result = tl.exp(opened(value, lowest) - tl.load(kept)) * (tl.load(kept + levels + 1) * factor)
    tl.store(out + row * classes + column, result.to(out.dtype.element_ty), mask=inside)


def _shape(classes: int) -> tuple[int, int]:
    """Return the size of a block of columns and the number of warps for a row."""
    if classes <= 512:
        return 64, 1
    return (128, 1) if classes <= 4096 else (1024, 4)


def _whole_shape(classes: int, a_warp: int) -> dict[str, int]:
    """Return the width of a row in a program, and the number of warps if each has `a_warp` columns."""
    block = max(32, triton.next_power_of_2(classes))
    return {"block": block, "num_warps": max(1, block // a_warp)}


def forward(logits, operands, options):
    target, order, first, last, path, length, *rings = operands
    rows, levels = len(logits), path.shape[1]
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if rings:
        saved = torch.empty(rows, 2 * (levels + 1), dtype=torch.float32, device=logits.device)
        _whole_forward[(rows,)](
            logits, logits.stride(0), target, first, length, rings[0], loss, saved, logits.shape[1], levels,
            cut_off(logits.dtype), *options, deep=triton.next_power_of_2(levels + 1),
            **_whole_shape(logits.shape[1], 1024),
        )  # fmt: skip
        return loss, saved
    lse = torch.empty(rows, levels + 1, dtype=torch.float32, device=logits.device)
    block, warps = _shape(logits.shape[1])
    _forward[(rows,)](
        logits, logits.stride(0), target, order, first, last, path, length, loss, lse, levels,
        cut_off(logits.dtype), *options,
        permuted=order.numel() > 0, block=block, num_warps=warps,
    )  # fmt: skip
    return loss, lse


def backward(grad, logits, lse, operands, options):
    target, order, first, last, path, length, *rings = operands
    rows, classes = logits.shape
    out = torch.empty(rows, classes, dtype=logits.dtype, device=logits.device)
    if rings:
        _whole_backward[(rows,)](
            grad, logits, logits.stride(0), target, first, length, rings[0], lse, out, classes, path.shape[1],
            cut_off(logits.dtype), **_whole_shape(classes, 512),
        )  # fmt: skip
        return out
    block, warps = _shape(classes)
    _backward[(rows,)](
        grad, logits, logits.stride(0), target, order, first, last, path, length, lse, out, classes, path.shape[1],
        cut_off(logits.dtype), *options, permuted=order.numel() > 0, block=block, num_warps=warps,
    )  # fmt: skip
    return out
