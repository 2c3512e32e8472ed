# mypy: ignore-errors
"""Triton: losses on the path through a flat softmax, `-sum_d w_d log p(node_d | node_(d-1))`.

One program processes one row. The leaves below the nodes on a path are nested intervals of the depth-first order, so the row
is divided into rings: the leaves below the node of depth d but not below that of depth d + 1. Going outward, one running
log-sum-exp over the rings passes through S_d, the log-sum-exp below every node on the path. Each logit is read once.

The gradient of `sum_d c_d S_d` for a leaf of ring r is `exp(x - S_r) A_r` with `A_r = c_r + A_(r-1) exp(S_r - S_(r-1))`,
which never overflows.
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


def _shape(classes: int) -> tuple[int, int]:
    """Return the size of a block of columns and the number of warps for a row."""
    if classes <= 512:
        return 64, 1
    return (128, 1) if classes <= 4096 else (1024, 4)


def forward(logits, operands, options):
    target, order, first, last, path, length = operands
    rows, levels = len(logits), path.shape[1]
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    lse = torch.empty(rows, levels + 1, dtype=torch.float32, device=logits.device)
    block, warps = _shape(logits.shape[1])
    _forward[(rows,)](
        logits, logits.stride(0), target, order, first, last, path, length, loss, lse, levels,
        cut_off(logits.dtype), *options,
        permuted=order.numel() > 0, block=block, num_warps=warps,
    )  # fmt: skip
    return loss, lse


def backward(grad, logits, lse, operands, options):
    target, order, first, last, path, length = operands
    rows, classes = logits.shape
    out = torch.empty(rows, classes, dtype=logits.dtype, device=logits.device)
    block, warps = _shape(classes)
    _backward[(rows,)](
        grad, logits, logits.stride(0), target, order, first, last, path, length, lse, out, classes, path.shape[1],
        cut_off(logits.dtype), *options, permuted=order.numel() > 0, block=block, num_warps=warps,
    )  # fmt: skip
    return out
