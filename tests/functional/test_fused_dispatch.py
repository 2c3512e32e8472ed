"""The public tree losses through the fused forms: the same losses and gradients as the composed ones, masks included."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from labelkin import functional
from labelkin.functional import _kernels as kernels
from labelkin.functional import tree_index
from labelkin.functional._kernels import fused
from labelkin.functional._kernels import losses as fused_losses
from support.trees import KINDS, named, random_taxonomy

LOSSES = {  # on leaves, the public function
    "conditional": (False, functional.conditional_softmax),
    "convex": (False, functional.convex_hierarchical),
    "path": (False, functional.hierarchical),
    "leaf": (False, partial(functional.hierarchical, targets="leaf")),
    "hxe": (True, partial(functional.hierarchical_cross_entropy, alpha=0.4)),
    "hxe normalized": (True, partial(functional.hierarchical_cross_entropy, alpha=0.4, normalize=True)),
    "ancestors": (True, partial(functional.ancestors, weight=0.3)),
}
EVEN = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3]  # all leaves at depth 2
every_loss = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture
def sizes(monkeypatch):
    """Return a function that sets from which sizes on the fused forms are used."""

    def use(size):
        monkeypatch.setattr(fused_losses, "SMALL", size)
        monkeypatch.setattr(fused_losses, "LITTLE", size)

    return use


@pytest.fixture
def calls(monkeypatch):
    """Return a list that gets the kind of kernel at each call of a fused form."""
    found = []
    real = fused.fused
    monkeypatch.setattr(fused_losses, "fused", lambda kind, *given: found.append(kind) or real(kind, *given))
    return found


def drawn(loss, taxonomy, rows, dtype=torch.float64):
    width = len(taxonomy.leaves) if LOSSES[loss][0] else len(taxonomy) - 1
    return 2 * torch.randn(rows, width, generator=torch.Generator().manual_seed(rows), dtype=dtype)


def with_gradient(loss, logits, target, index):
    logits = logits.detach().clone().requires_grad_()
    losses = LOSSES[loss][1](logits, target, index)
    return losses.detach(), torch.autograd.grad(losses.sum(), logits)[0]


def both(loss, logits, target, index, sizes):
    """Loss and gradient through the composed form and through the fused one."""
    sizes(math.inf)
    composed = with_gradient(loss, logits, target, index)
    sizes(0)
    return composed, with_gradient(loss, logits, target, index)


@every_loss
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_losses_and_gradients(loss, kind, sizes, calls):
    taxonomy = random_taxonomy(np.random.default_rng(5), 30, kind)
    index, nodes = tree_index(taxonomy), torch.arange(len(taxonomy))
    logits = drawn(loss, taxonomy, len(nodes))
    composed, through = both(loss, logits, nodes, index, sizes)
    for wanted, got in zip(composed, through, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=1e-10)
    uneven = loss in ("path", "leaf") and kernels.path_index(index).ragged.column.numel()
    assert calls == ([] if uneven else ["leaves" if LOSSES[loss][0] else "nodes"])


@pytest.mark.long
@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [-torch.inf, "lowest"], ids=str)
@pytest.mark.parametrize("masked", ["siblings", "subtree", "all but the path"])
def test_the_same_with_masks_off_the_path(loss, dtype, mask, masked, sizes):
    taxonomy = named(EVEN)
    index, target = tree_index(taxonomy), torch.tensor([4, 1])
    logits = drawn(loss, taxonomy, 2, dtype)
    value = torch.finfo(dtype).min if mask == "lowest" else mask
    if LOSSES[loss][0]:
        columns = {"siblings": [1], "subtree": [3, 4], "all but the path": [1, 2, 3, 4, 5, 6]}[masked]
    else:
        columns = {"siblings": [4], "subtree": [1, 6, 7], "all but the path": [1, 2, 4, 5, 6, 7, 8, 9]}[masked]
    logits[:, columns] = value
    composed, through = both(loss, logits, target, index, sizes)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 3e-2}[dtype]
    for wanted, got in zip(composed, through, strict=True):
        assert torch.isfinite(got).all()
        assert got.dtype == dtype
        torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)
    assert (through[1][:, columns] == 0).all()


@every_loss
@pytest.mark.parametrize("mask", [-torch.inf, torch.finfo(torch.float32).min], ids=str)
@pytest.mark.parametrize("whole", [False, True], ids=["the node", "all nodes"])
def test_masks_on_the_path_give_infinite_losses_without_nan(loss, mask, whole, sizes):
    taxonomy = named(EVEN)
    index = tree_index(taxonomy)
    logits = drawn(loss, taxonomy, 1, torch.float32)
    logits[:, slice(None) if whole else [0, 1, 2] if LOSSES[loss][0] else [0]] = mask  # node 1, or all
    composed, through = both(loss, logits, torch.tensor([4]), index, sizes)
    assert composed[0].isposinf().all()
    assert through[0].isposinf().all()
    assert torch.isfinite(through[1]).all()


@pytest.mark.long
@every_loss
def test_gradients_of_gradients(loss, sizes):
    sizes(0)
    taxonomy, index = named(EVEN), tree_index(named(EVEN))
    logits, target = drawn(loss, taxonomy, 4).requires_grad_(), torch.tensor([4, 1, 0, 10])
    assert torch.autograd.gradcheck(lambda x: LOSSES[loss][1](x, target, index), (logits,))
    assert torch.autograd.gradgradcheck(lambda x: LOSSES[loss][1](x, target, index), (logits,))


@every_loss
@pytest.mark.parametrize("kind", ["unbalanced", "balanced", "chain"])
def test_the_forms_for_gradients_of_gradients_are_the_losses(loss, kind, sizes, monkeypatch):
    """Also for leaves at different depths, which have a kernel on CUDA alone."""
    taxonomy = random_taxonomy(np.random.default_rng(2), 20, kind)
    index, nodes = tree_index(taxonomy), torch.arange(len(taxonomy))
    logits = drawn(loss, taxonomy, len(nodes))
    logits[:, -1] = -torch.inf
    sizes(math.inf)
    wanted = with_gradient(loss, logits, nodes, index)

    def composed(name, rows, target, operands, options):
        return fused.COMPOSED[name](rows, [target, *operands], options)

    sizes(0)
    monkeypatch.setattr(fused_losses, "fused", composed)
    monkeypatch.setattr(functional._hierarchical.kernels, "fits_hierarchical", kernels.fits)
    got = with_gradient(loss, logits, nodes, index)
    open_rows = wanted[0].isfinite()
    assert open_rows.sum() > len(nodes) / 2
    torch.testing.assert_close(got[0], wanted[0], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(got[1][open_rows], wanted[1][open_rows], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("loss", ["path", "leaf"])
@pytest.mark.parametrize("masked", [[5, 6], [8], [4, 5, 8], [5, 6, 7, 8]], ids=str)
def test_the_forms_for_gradients_of_gradients_count_nothing_below_masked_children(loss, masked, sizes, monkeypatch):
    """Columns 5 to 8 are the children of open nodes, whose leaves have the same depth."""
    taxonomy = named([-1, 0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    index, nodes = tree_index(taxonomy), torch.arange(len(taxonomy))
    logits = drawn(loss, taxonomy, len(nodes))
    logits[:, masked] = -torch.inf
    sizes(math.inf)
    wanted = with_gradient(loss, logits, nodes, index)
    sizes(0)
    monkeypatch.setattr(
        fused_losses,
        "fused",
        lambda name, rows, target, operands, options: fused.COMPOSED[name](rows, [target, *operands], options),
    )
    monkeypatch.setattr(functional._hierarchical.kernels, "fits_hierarchical", kernels.fits)
    got = with_gradient(loss, logits, nodes, index)
    finite = wanted[0].isfinite()
    torch.testing.assert_close(got[0], wanted[0])
    torch.testing.assert_close(got[1][finite], wanted[1][finite])


@pytest.mark.long
@every_loss
def test_transforms_take_the_composed_form(loss, sizes, calls):
    """`vmap`, forward mode and `torch.compile` cannot go through the kernels."""
    sizes(0)
    taxonomy, index = named(EVEN), tree_index(named(EVEN))
    function, target = LOSSES[loss][1], torch.tensor([4, 1])
    logits = drawn(loss, taxonomy, 2)
    expected = function(logits, target, index)
    direct = len(calls)
    by_sample = torch.func.vmap(lambda x, y: function(x, y, index))(logits, target)
    torch.testing.assert_close(by_sample, expected)
    _, forward = torch.func.jvp(lambda x: function(x, target, index), (logits,), (torch.ones_like(logits),))
    torch.testing.assert_close(forward, torch.zeros_like(forward), atol=1e-9, rtol=0)  # a constant changes nothing
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(logits, torch.ones_like(logits))
        function(dual, target, index)
    compiled = torch.compile(lambda x, y: function(x, y, index), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, target), expected)
    assert len(calls) == direct


def test_deep_trees_take_the_composed_form(sizes):
    sizes(0)
    for depth, fits in [(64, True), (65, False)]:
        index = tree_index(named([-1, *range(depth), 0]))
        assert kernels.fits(torch.zeros(1, 2), index.leaves[:1], index) is fits


def test_small_inputs_take_the_composed_form_on_the_cpu(calls):
    taxonomy = random_taxonomy(np.random.default_rng(0), 600, "balanced")
    index = tree_index(taxonomy)
    for rows, times in [(16, 0), (64, 1)]:
        functional.conditional_softmax(torch.zeros(rows, len(taxonomy) - 1), index.leaves[:rows], index)
        assert len(calls) == times


def test_logits_that_are_masked_keep_the_composed_mass_on_the_cpu(sizes, calls):
    """An open node whose children are all masked counts, and its children do not."""
    sizes(0)
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6])
    index = tree_index(taxonomy)
    logits = torch.zeros(1, len(taxonomy) - 1)
    functional.hierarchical(logits, torch.tensor([7]), index)
    assert calls == ["nodes"]
    logits[:, [4, 5]] = -torch.inf  # both children of node 2
    found = functional.hierarchical(logits, torch.tensor([7]), index, targets="leaf")
    torch.testing.assert_close(found, torch.tensor([3 * math.log(2) + 1 + 0.5]))
    assert calls == ["nodes"]
