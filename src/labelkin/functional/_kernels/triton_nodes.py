# mypy: ignore-errors
"""Triton: losses on the path through softmaxes over siblings, `-sum_d w_d log p_d`.

One program processes one row and reads only the siblings along the path. `saved` holds the log-sum-exp of each of these
groups, followed by the log-probability of the target's node. The backward pass writes every column: zeros first, then the
groups. `constant - mass excess P(node)` is the part of the hierarchical loss's mass that depends only on the path.
"""

import torch
import triton
import triton.language as tl

from labelkin.functional._kernels import triton_mass
from labelkin.functional._kernels.cpu_leaves import lowest as cut_off
from labelkin.functional._kernels.triton_leaves import edge_weight, opened


@triton.jit
def _forward(
    logits, stride, target, first, child_first, child_count, child_column, path, length_of, excess, loss_out, saved, levels,
    lowest, scale, alpha, base, slope, inverse, constant, mass, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    place = tl.load(first + node)
    lane = tl.arange(0, block)
    loss = 0.0
    log_prob = 0.0
    parent = tl.zeros((), tl.int32)
    for depth in range(1, length + 1):
        begin = tl.load(child_first + parent)
        count = tl.load(child_count + parent)
        child = tl.load(path + place * levels + depth - 1)
        own = tl.load(logits + row * stride + child - 1).to(tl.float32)
        top = tl.full((block,), float("-inf"), tl.float32)
        total = tl.zeros((block,), tl.float32)
        for start in range(0, count, block):
            inside = start + lane < count
            column = tl.load(child_column + begin + start + lane, mask=inside, other=0)
            value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
            value = opened(value, lowest)
            higher = tl.maximum(top, value)
            shift = tl.where(higher == float("-inf"), 0.0, higher)
            total = total * tl.exp(top - shift) + tl.exp(value - shift)
            top = higher
        highest = tl.max(top, 0)
        shift = tl.where(highest == float("-inf"), 0.0, highest)
        lse = shift + tl.log(tl.sum(total * tl.exp(top - shift), 0))
        tl.store(saved + row * (levels + 1) + depth - 1, lse)
        log_p = tl.where(own < lowest, float("-inf"), own - lse)
        loss -= edge_weight(depth, length, scale, alpha, base, slope, inverse) * log_p
        log_prob += log_p
        parent = child
    tl.store(saved + row * (levels + 1) + levels, log_prob)
    tl.store(loss_out + row, loss + constant - mass * tl.load(excess + node) * tl.exp(log_prob))


@triton.jit
def _backward(
    grad, logits, stride, target, first, child_first, child_count, child_column, path, length_of, excess, saved, out,
    columns, levels, lowest, scale, alpha, base, slope, inverse, constant, mass, block: tl.constexpr, fill: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    node = tl.load(target + row)
    length = tl.load(length_of + node)
    place = tl.load(first + node)
    factor = tl.load(grad + row).to(tl.float32)
    extra = mass * tl.load(excess + node) * tl.exp(tl.load(saved + row * (levels + 1) + levels))
    zeros = tl.zeros((fill,), out.dtype.element_ty)
    for start in range(0, columns, fill):
        filled = start + tl.arange(0, fill)
        tl.store(out + row * columns + filled, zeros, mask=filled < columns)
    tl.debug_barrier()  # the groups overwrite zeros that other threads wrote
    lane = tl.arange(0, block)
    parent = tl.zeros((), tl.int32)
    for depth in range(1, length + 1):
        begin = tl.load(child_first + parent)
        count = tl.load(child_count + parent)
        child = tl.load(path + place * levels + depth - 1)
        lse = tl.load(saved + row * (levels + 1) + depth - 1)
        masked = tl.load(logits + row * stride + child - 1).to(tl.float32) < lowest
        shift = tl.where(masked, 0.0, lse)
        weight = factor * (edge_weight(depth, length, scale, alpha, base, slope, inverse) + extra)
        weight = tl.where(masked, 0.0, weight)
        for start in range(0, count, block):
            inside = start + lane < count
            column = tl.load(child_column + begin + start + lane, mask=inside, other=0)
            value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
            value = opened(value, lowest)
            result = weight * (tl.exp(value - shift) - tl.where(column == child - 1, 1.0, 0.0))
            tl.store(out + row * columns + column, result.to(out.dtype.element_ty), mask=inside)
        parent = child


def forward(logits, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *ragged = operands
    rows, levels = len(logits), path.shape[1]
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(rows, levels + 1, dtype=torch.float32, device=logits.device)
    _forward[(rows,)](
        logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess, loss,
        saved, levels, cut_off(logits.dtype), *options, block=64, num_warps=1,
    )  # fmt: skip
    if ragged:
        triton_mass.add_forward(logits, target, ragged, loss)
    return loss, saved


def backward(grad, logits, saved, operands, options):
    target, first, child_first, child_count, child_column, path, length, excess, *ragged = operands
    rows, columns = logits.shape
    out = torch.empty(rows, columns, dtype=logits.dtype, device=logits.device)
    wide = columns > 2048
    _backward[(rows,)](
        grad, logits, logits.stride(0), target, first, child_first, child_count, child_column, path, length, excess,
        saved, out, columns, path.shape[1], cut_off(logits.dtype), *options, block=128 if wide else 64,
        fill=2048 if wide else 512, num_warps=4 if wide else 1,
    )  # fmt: skip
    if ragged:
        triton_mass.add_backward(grad, logits, target, ragged, out)
    return out
