# mypy: ignore-errors
"""Triton: the summed probabilities of a tree's inner nodes, for leaves at different depths.

The functions process one row for the kernels of `triton_nodes`. With the uneven nodes u of `Ragged` and their children c, the
sum is `sum_u P_u A_u`, where `A_u = sum_c p_c weight_c`. Uneven nodes are columns of a tile and their children its rows: few
nodes and many rows for those with the most children, many nodes and few rows for the others. Doubling steps give log P of
the uneven nodes, and a cumulative sum in preorder gives B_u, the sum of P A at and below u. The gradient for a child is
`p_c (P_u weight_c - B_u)`, plus B_c if the child is uneven itself.

`kept` holds the log-sum-exp, log P and B of the uneven nodes.
"""

import triton
import triton.language as tl

from labelkin.functional._kernels.triton_leaves import opened


@triton.jit
def _groups(
    values, lowest, unknown_from, unknown_to, column, weight, first, count, largest, enter, size, kept, start,
    tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Store the log-sum-exp and A of some uneven nodes."""
    place = start + tl.arange(0, tall)
    present = place < size
    group = tl.load(largest + place, mask=present, other=0)
    children = tl.load(count + group, mask=present, other=0)
    begins = tl.load(first + group, mask=present, other=0)
    number = tl.arange(0, wide)
    top = tl.full((tall,), float("-inf"), tl.float32)
    total = tl.zeros((tall,), tl.float32)
    reached = tl.zeros((tall,), tl.float32)
    for before in range(0, tl.max(children, 0), wide):
        at = before + number
        inside = at[:, None] < children[None, :]
        entry = begins[None, :] + at[:, None]
        where = tl.load(column + entry, mask=inside, other=0)
        share = tl.load(weight + entry, mask=inside, other=0.0)
        value = opened(tl.load(values + where, mask=inside, other=float("-inf")).to(tl.float32), lowest)
        higher = tl.maximum(top, tl.max(value, 0))
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        part = tl.exp(value - shift[None, :])
        shrunk = tl.exp(top - shift)
        total = total * shrunk + tl.sum(part, 0)
        reached = reached * shrunk + tl.sum(part * share, 0)
        top = higher
    is_open = total > 0
    lse = tl.where(is_open, top + tl.log(tl.where(is_open, total, 1.0)), float("-inf"))
    number_in_tree = tl.load(enter + group, mask=present, other=0)
    unknown = (number_in_tree >= unknown_from) & (number_in_tree < unknown_to)
    reached = tl.where(is_open & (unknown == 0), reached / tl.where(is_open, total, 1.0), 0.0)
    tl.store(kept + group, lse, mask=present)
    tl.store(kept + 2 * size + group, reached, mask=present)


@triton.jit
def summed(
    values, unknown_from, unknown_to, column, weight, first, count, largest, own, jumps, end, enter, size, lowest, kept,
    steps: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Return the mass of a row without that at and below its target, whose preorder numbers are given; fill `kept`."""
    _groups(
        values, lowest, unknown_from, unknown_to, column, weight, first, count, largest, enter, size, kept, 0, 32, 16
    )
    for start in range(32, size, 128):
        _groups(
            values, lowest, unknown_from, unknown_to, column, weight, first, count, largest, enter, size, kept, start, 128, 4
        )  # fmt: skip
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
    tl.debug_barrier()  # all threads have read `reached`, which is overwritten
    tl.store(kept + size + lane, log_prob, mask=present)
    tl.store(kept + 2 * size + lane, covered, mask=present)
    return tl.sum(mass, 0)


@triton.jit
def store_gradient(
    factor, values, grads, unknown_from, unknown_to, column, weight, above, uneven, enter, size, entries, lowest, kept,
    block: tl.constexpr,
):  # fmt: skip
    """Store the gradient of a row's mass for the children of uneven nodes."""
    for start in range(0, entries, block):
        place = start + tl.arange(0, block)
        inside = place < entries
        where = tl.load(column + place, mask=inside, other=0)
        group = tl.load(above + place, mask=inside, other=0)
        value = opened(tl.load(values + where, mask=inside, other=float("-inf")).to(tl.float32), lowest)
        lse = tl.load(kept + group, mask=inside, other=0.0)
        p = tl.where(value == float("-inf"), 0.0, tl.exp(value - lse))
        number_in_tree = tl.load(enter + group, mask=inside, other=0)
        unknown = (number_in_tree >= unknown_from) & (number_in_tree < unknown_to)
        share = tl.load(weight + place, mask=inside & (unknown == 0), other=0.0)
        prob = tl.exp(tl.load(kept + size + group, mask=inside, other=0.0))
        child = tl.load(uneven + place, mask=inside, other=0)
        below = tl.load(kept + 2 * size + child, mask=inside & (child < size), other=0.0)
        result = factor * (p * (prob * share - tl.load(kept + 2 * size + group, mask=inside, other=0.0)) + below)
        tl.store(grads + where, result.to(grads.dtype.element_ty), mask=inside)
