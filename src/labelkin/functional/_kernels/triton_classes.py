# mypy: ignore-errors
# ruff: noqa: RET505
"""Triton: cross entropy to rows of a class matrix. One program processes one row and reads each logit once.

For a low-rank matrix, one program processes 16 rows, so that their targets are small matrix products. Except for a sparse
matrix, the backward kernels read a logit once, before they write its gradient, which may therefore overwrite it. A logit
below `lowest` masks its class: unless the class is the target, its share of the target is left out.
"""

import torch
import triton
import triton.language as tl

from labelkin.functional._kernels.cpu_leaves import lowest as cut_off

DENSE, GROUPED, ORDINAL, SPARSE, LOW_RANK, HARD, SCALED = range(7)


@triton.jit
def _unmasked(share, value, column, label, lowest):
    return tl.where((value < lowest) & (column != label), 0.0, share)


@triton.jit
def _targets(a, b, c, d, own, kin, rest, label, column, inside, classes, code: tl.constexpr):
    if code == 0:
        return tl.load(a + label * classes + column, mask=inside, other=0.0).to(tl.float32)
    elif code == 6:
        found = tl.load(a + label * classes + column, mask=inside, other=0.0).to(tl.float32) * kin
        return tl.where(inside & (column == label), own, found)
    elif code == 1:
        same = tl.load(a + column, mask=inside, other=-1) == tl.load(a + label)
        return tl.where(inside, tl.where(column == label, own, tl.where(same, kin, rest)), 0.0)
    else:
        gap = tl.abs(column - label.to(tl.int32))
        found = tl.load(a + gap, mask=inside, other=0.0).to(tl.float32) * kin
        return tl.where(inside, tl.where(column == label, own, found), 0.0)


@triton.jit
def _shares(a, b, c, d, label, code: tl.constexpr):
    """Return the weights of the class itself, of related classes and of all others, or 0 if the kind of matrix has none."""
    if code == 1:
        return tl.load(b + label).to(tl.float32), tl.load(c + label).to(tl.float32), tl.load(d + label).to(tl.float32)
    elif code == 2 or code == 6:
        return tl.load(c + label).to(tl.float32), tl.load(b + label).to(tl.float32), 0.0
    else:
        return 0.0, 0.0, 0.0


@triton.jit
def _forward(
    logits, stride, target, a, b, c, d, loss, saved, classes, lowest, code: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    lane = tl.arange(0, block)
    top = tl.full((block,), float("-inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    picked = tl.zeros((block,), tl.float32)
    mass = tl.zeros((block,), tl.float32)
    own, kin, rest = _shares(a, b, c, d, label, code)
    for start in range(0, classes, block):
        column = start + lane
        inside = column < classes
        value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, value)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.exp(value - shift)
        top = higher
        if code != 3 and code != 5:
            share = _targets(a, b, c, d, own, kin, rest, label, column, inside, classes, code)
            share = _unmasked(share, value, column, label, lowest)
            picked += tl.where(share != 0, share * value, 0.0)
            mass += share
    if code == 3:
        first = tl.load(a + label)
        last = tl.load(a + label + 1)
        for start in range(first, last, block):
            inside = start + lane < last
            column = tl.load(b + start + lane, mask=inside, other=0)
            share = tl.load(c + start + lane, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(logits + row * stride + column, mask=inside, other=0.0).to(tl.float32)
            share = _unmasked(share, value, column, label, lowest)
            picked += tl.where(share != 0, share * value, 0.0)
            mass += share
    if code == 5:
        mass = tl.where(lane == 0, 1.0, 0.0)
        picked = tl.where(lane == 0, tl.load(logits + row * stride + label).to(tl.float32), 0.0)
    highest = tl.max(top, 0)
    shift = tl.where(highest == float("-inf"), 0.0, highest)
    lse = shift + tl.log(tl.sum(total * tl.exp(top - shift), 0))
    whole = tl.sum(mass, 0)
    tl.store(loss + row, whole * lse - tl.sum(picked, 0))
    tl.store(saved + row * 2, lse)
    tl.store(saved + row * 2 + 1, whole)


@triton.jit
def _backward(
    grad, logits, stride, target, a, b, c, d, saved, out, classes, lowest, code: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    lane = tl.arange(0, block)
    factor = tl.load(grad + row).to(tl.float32)
    lse = tl.load(saved + row * 2)
    mass = tl.load(saved + row * 2 + 1) * factor
    own, kin, rest = _shares(a, b, c, d, label, code)
    for start in range(0, classes, block):
        column = start + lane
        inside = column < classes
        value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
        result = tl.where(factor == 0, 0.0, tl.exp(value - lse) * mass)
        if code == 5:
            result -= tl.where(column == label, factor, 0.0)
        elif code != 3:
            share = _targets(a, b, c, d, own, kin, rest, label, column, inside, classes, code)
            result -= factor * _unmasked(share, value, column, label, lowest)
        tl.store(out + row * classes + column, result.to(out.dtype.element_ty), mask=inside)
    if code == 3:
        tl.debug_barrier()  # the entries overwrite values that other threads wrote
        first = tl.load(a + label)
        last = tl.load(a + label + 1)
        for start in range(first, last, block):
            inside = start + lane < last
            column = tl.load(b + start + lane, mask=inside, other=0)
            share = tl.load(c + start + lane, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(logits + row * stride + column, mask=inside, other=float("-inf")).to(tl.float32)
            result = tl.where(factor == 0, 0.0, tl.exp(value - lse) * mass)
            result -= factor * _unmasked(share, value, column, label, lowest)
            tl.store(out + row * classes + column, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _rank_forward(
    logits, stride, target, left, right, own, loss, saved, rows, classes, rank, lowest,
    tall: tl.constexpr, block: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    present = row < rows
    label = tl.load(target + row, mask=present, other=0).to(tl.int32)
    lane = tl.arange(0, block)
    part = tl.arange(0, wide)
    known = part < rank
    ours = tl.load(left + label.to(tl.int64)[:, None] * rank + part[None, :], mask=known[None, :], other=0.0).to(
        tl.float32
    )
    diagonal = tl.load(own + label).to(tl.float32)
    top = tl.full((tall, block), float("-inf"), tl.float32)
    total = tl.zeros((tall, block), tl.float32)
    picked = tl.zeros((tall, block), tl.float32)
    mass = tl.zeros((tall, block), tl.float32)
    base = logits + row.to(tl.int64)[:, None] * stride
    for start in range(0, classes, block):
        column = start + lane
        inside = present[:, None] & (column < classes)[None, :]
        value = tl.load(base + column[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        at = right + column[None, :] * rank + part[:, None]
        theirs = tl.load(at, mask=known[:, None] & (column < classes)[None, :], other=0.0).to(tl.float32)
        share = tl.dot(ours, theirs, input_precision="tf32x3")
        share += tl.where(column[None, :] == label[:, None], diagonal[:, None], 0.0)
        share = _unmasked(share, value, column[None, :], label[:, None], lowest)
        higher = tl.maximum(top, value)
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.exp(value - shift)
        top = higher
        picked += tl.where(inside & (share != 0), share * value, 0.0)
        mass += tl.where(inside, share, 0.0)
    highest = tl.max(top, 1)
    shift = tl.where(highest == float("-inf"), 0.0, highest)
    lse = shift + tl.log(tl.sum(total * tl.exp(top - shift[:, None]), 1))
    whole = tl.sum(mass, 1)
    tl.store(loss + row, whole * lse - tl.sum(picked, 1), mask=present)
    tl.store(saved + row * 2, lse, mask=present)
    tl.store(saved + row * 2 + 1, whole, mask=present)


@triton.jit
def _rank_backward(
    grad, logits, stride, target, left, right, own, saved, out, rows, classes, rank, lowest,
    tall: tl.constexpr, block: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    present = row < rows
    label = tl.load(target + row, mask=present, other=0).to(tl.int32)
    lane = tl.arange(0, block)
    part = tl.arange(0, wide)
    known = part < rank
    factor = tl.load(grad + row, mask=present, other=0.0).to(tl.float32)
    lse = tl.load(saved + row * 2, mask=present, other=0.0)
    mass = tl.load(saved + row * 2 + 1, mask=present, other=0.0) * factor
    ours = tl.load(left + label.to(tl.int64)[:, None] * rank + part[None, :], mask=known[None, :], other=0.0).to(
        tl.float32
    )
    ours *= factor[:, None]
    diagonal = tl.load(own + label).to(tl.float32) * factor
    wide_row = row.to(tl.int64)[:, None]
    for start in range(0, classes, block):
        column = start + lane
        inside = present[:, None] & (column < classes)[None, :]
        at = logits + wide_row * stride + column[None, :]
        value = tl.load(at, mask=inside, other=float("-inf")).to(tl.float32)
        at = right + column[None, :] * rank + part[:, None]
        theirs = tl.load(at, mask=known[:, None] & (column < classes)[None, :], other=0.0).to(tl.float32)
        share = tl.dot(ours, theirs, input_precision="tf32x3")
        share += tl.where(column[None, :] == label[:, None], diagonal[:, None], 0.0)
        share = _unmasked(share, value, column[None, :], label[:, None], lowest)
        result = tl.where(factor[:, None] == 0, 0.0, tl.exp(value - lse[:, None]) * mass[:, None]) - share
        tl.store(out + wide_row * classes + column[None, :], result.to(out.dtype.element_ty), mask=inside)


def _shape(classes: int) -> dict[str, int]:
    if classes <= 256:
        return {"block": 128, "num_warps": 1}
    return {"block": 512, "num_warps": 2} if classes <= 4096 else {"block": 2048, "num_warps": 8}


def _rank_shape(rank: int) -> dict[str, int]:
    wide = max(16, triton.next_power_of_2(rank))
    shape = {"tall": 16, "block": 128, "wide": wide, "num_warps": 8, "num_stages": 2}
    return {**shape, "maxnreg": 128} if wide <= 32 else shape  # two programs of 8 warps fit into a multiprocessor


def _four(given):
    """Return the four tensors that the kernels take; kinds with fewer repeat the last one, which is not read."""
    return [*given, *[given[-1]] * (4 - len(given))]


def forward(logits, operands, options):
    target, *given = operands
    rows, classes = logits.shape
    loss = torch.empty(rows, dtype=torch.float32, device=logits.device)
    saved = torch.empty(rows, 2, dtype=torch.float32, device=logits.device)
    code, lowest = int(options[0]), cut_off(logits.dtype)
    if code == LOW_RANK:
        rank = given[0].shape[1]
        _rank_forward[(triton.cdiv(rows, 16),)](
            logits, logits.stride(0), target, *given, loss, saved, rows, classes, rank, lowest, **_rank_shape(rank)
        )
    else:
        _forward[(rows,)](
            logits, logits.stride(0), target, *_four(given or [target]), loss, saved, classes, lowest, code=code,
            **_shape(classes),
        )  # fmt: skip
    return loss, saved


def backward(grad, logits, saved, operands, options, out=None):
    target, *given = operands
    rows, classes = logits.shape
    out = torch.empty(rows, classes, dtype=logits.dtype, device=logits.device) if out is None else out
    code, lowest = int(options[0]), cut_off(logits.dtype)
    if code == LOW_RANK:
        rank = given[0].shape[1]
        _rank_backward[(triton.cdiv(rows, 16),)](
            grad, logits, logits.stride(0), target, *given, saved, out, rows, classes, rank, lowest, **_rank_shape(rank)
        )
    else:
        _backward[(rows,)](
            grad, logits, logits.stride(0), target, *_four(given or [target]), saved, out, classes, lowest, code=code,
            **_shape(classes),
        )  # fmt: skip
    return out


def with_gradient(logits, factor, operands, options):
    """Return the losses (n,) and the gradient of `sum factor * losses`, which overwrites contiguous logits if it can."""
    loss, saved = forward(logits, operands, options)
    out = None if int(options[0]) == SPARSE else logits
    return loss, backward(factor, logits, saved, operands, options, out)
