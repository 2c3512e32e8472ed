# mypy: ignore-errors
"""Triton: the terms of the label embedding network and their gradients (the equations are in `cpu_embedding`).

One program processes one row: a first pass over z1, z2 and e computes the sums of the terms with running maxima, and a second
one overwrites each entry with its gradient.
"""

import torch
import triton
import triton.language as tl

from labelkin.functional._kernels.cpu_embedding import Found
from labelkin.functional._kernels.cpu_leaves import lowest as cut_off


@triton.jit
def _first_place(top, place, highest, classes):
    return tl.min(tl.where(top == highest, place, classes), 0)


@triton.jit
def _finite(value):
    return tl.where(value == float("-inf"), 0.0, value)


@triton.jit
def _step(
    z1, z2, e, stride1, stride2, stride_e, target, share_of, coefficients, terms, right_out, predicted_out, classes, lowest,
    cooling, alpha, p, absolute: tl.constexpr, rectified: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    lane = tl.arange(0, block)
    top1 = tl.full((block,), float("-inf"), tl.float32)
    top2 = tl.full((block,), float("-inf"), tl.float32)
    top_e = tl.full((block,), float("-inf"), tl.float32)
    place1 = tl.zeros((block,), tl.int32)
    place2 = tl.zeros((block,), tl.int32)
    total1 = tl.zeros((block,), tl.float32)
    total2 = tl.zeros((block,), tl.float32)
    total_q = tl.zeros((block,), tl.float32)
    total_e = tl.zeros((block,), tl.float32)
    mass = tl.zeros((block,), tl.float32)
    picked = tl.zeros((block,), tl.float32)
    learned = tl.zeros((block,), tl.float32)
    for start in range(0, classes, block):
        column = start + lane
        inside = column < classes
        a = tl.load(z1 + row * stride1 + column, mask=inside, other=float("-inf")).to(tl.float32)
        b = tl.load(z2 + row * stride2 + column, mask=inside, other=float("-inf")).to(tl.float32)
        c = tl.load(e + row * stride_e + column, mask=inside, other=0.0).to(tl.float32)
        if rectified:
            c = tl.maximum(c, 0.0)
        c = tl.where(inside, c, float("-inf"))
        place1 = tl.where(a > top1, column, place1)
        higher = tl.maximum(top1, a)
        shift = _finite(higher)
        total1 = total1 * tl.exp(top1 - shift) + tl.exp(a - shift)
        top1 = higher
        higher = tl.maximum(top_e, c)
        shift = _finite(higher)
        before = tl.exp(top_e - shift)
        weight = tl.exp(c - shift)
        total_e = total_e * before + weight
        weight = tl.where((a < lowest) & (column != label), 0.0, weight)
        mass = mass * before + weight
        picked = picked * before + tl.where(weight != 0, weight * a, 0.0)
        top_e = higher
        place2 = tl.where(b > top2, column, place2)
        higher = tl.maximum(top2, b)
        shift = _finite(higher)
        total2 = total2 * tl.exp(top2 - shift) + tl.exp(b - shift)
        before = tl.exp((top2 - shift) * cooling)
        weight = tl.exp((b - shift) * cooling)
        total_q = total_q * before + weight
        learned = learned * before + tl.where(weight != 0, weight * c, 0.0)
        top2 = higher
    highest1 = tl.max(top1, 0)
    highest2 = tl.max(top2, 0)
    shift1 = _finite(highest1)
    shift2 = _finite(highest2)
    shift_e = tl.max(top_e, 0)
    lse1 = shift1 + tl.log(tl.sum(total1 * tl.exp(top1 - shift1), 0))
    lse2 = shift2 + tl.log(tl.sum(total2 * tl.exp(top2 - shift2), 0))
    warm = tl.exp((top2 - shift2) * cooling)
    sum_q = tl.sum(total_q * warm, 0)
    log_q = shift2 * cooling + tl.log(sum_q)
    scale_e = tl.exp(top_e - shift_e)
    sum_e = tl.sum(total_e * scale_e, 0)
    lse_e = shift_e + tl.log(sum_e)
    known = tl.sum(mass * scale_e, 0) / sum_e
    own1 = tl.load(z1 + row * stride1 + label).to(tl.float32)
    own2 = tl.load(z2 + row * stride2 + label).to(tl.float32)
    right = _first_place(top2, place2, highest2, classes) == label
    own_prob = tl.exp(own2 - lse2)
    excess = own_prob - alpha
    if absolute:
        hinge = tl.abs(excess)
        slope = tl.where(excess > 0, 1.0, tl.where(excess < 0, -1.0, 0.0))
    else:
        log_excess = tl.log(tl.where(excess > 0, excess, 1.0))
        hinge = tl.where(excess > 0, tl.exp(p * log_excess), 0.0)
        slope = tl.where(excess > 0, p * tl.exp((p - 1) * log_excess), 0.0)
    tl.store(terms + row * 5, lse1 - own1)
    tl.store(terms + row * 5 + 1, known * lse1 - tl.sum(picked * scale_e, 0) / sum_e)
    tl.store(terms + row * 5 + 2, lse2 - own2)
    tl.store(terms + row * 5 + 3, hinge)
    tl.store(terms + row * 5 + 4, lse_e - tl.sum(learned * warm, 0) / sum_q)
    tl.store(right_out + row, right.to(tl.int8))
    tl.store(predicted_out + row, _first_place(top1, place1, highest1, classes).to(tl.int64))
    share = tl.load(share_of + row)
    hard = share * tl.load(coefficients)
    soft = share * tl.load(coefficients + 1)
    of_first = hard + soft * known
    of_second = share * (tl.load(coefficients + 2) - tl.load(coefficients + 3) * slope * own_prob)
    of_embedding = tl.where(right, share * tl.load(coefficients + 4), 0.0)
    nothing = share == 0
    tl.debug_barrier()  # every thread has read the class's own logits before they are overwritten
    for start in range(0, classes, block):
        column = start + lane
        inside = column < classes
        own = column == label
        at1 = z1 + row * stride1 + column
        at2 = z2 + row * stride2 + column
        at_e = e + row * stride_e + column
        a = tl.load(at1, mask=inside, other=float("-inf")).to(tl.float32)
        b = tl.load(at2, mask=inside, other=float("-inf")).to(tl.float32)
        c = tl.load(at_e, mask=inside, other=0.0).to(tl.float32)
        positive = c > 0
        if rectified:
            c = tl.maximum(c, 0.0)
        t = tl.exp(c - lse_e)
        result = of_first * tl.exp(a - lse1) - soft * tl.where((a < lowest) & (column != label), 0.0, t)
        result -= tl.where(own, hard, 0.0)
        tl.store(at1, tl.where(nothing, 0.0, result).to(z1.dtype.element_ty), mask=inside)
        result = of_second * (tl.exp(b - lse2) - tl.where(own, 1.0, 0.0))
        tl.store(at2, tl.where(nothing, 0.0, result).to(z2.dtype.element_ty), mask=inside)
        result = of_embedding * (t - tl.exp(b * cooling - log_q))
        if rectified:
            result = tl.where(positive, result, 0.0)
        tl.store(at_e, tl.where(nothing, 0.0, result).to(e.dtype.element_ty), mask=inside)


def with_gradients(z1, z2, e, target, share, coefficients, options):
    """Return the terms; z1, z2 and e, with adjacent columns, become gradients, as in `cpu_embedding`."""
    rows, classes = z1.shape
    terms = torch.empty(rows, 5, dtype=torch.float32, device=z1.device)
    right = torch.empty(rows, dtype=torch.int8, device=z1.device)
    predicted = torch.empty(rows, dtype=torch.int64, device=z1.device)
    shape = {"block": 1024, "num_warps": 4} if classes <= 4096 else {"block": 4096, "num_warps": 16}
    _step[(rows,)](
        z1, z2, e, z1.stride(0), z2.stride(0), e.stride(0), target, share, coefficients, terms, right, predicted, classes,
        cut_off(z1.dtype), 1 / options.tau, options.alpha, options.p, absolute=options.absolute,
        rectified=options.rectified, **shape,
    )  # fmt: skip
    return Found(terms, right.bool(), predicted)
