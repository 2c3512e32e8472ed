"""The closed forms of HXE and of the ancestors' term on the CPU: parts of rows, empty segments, masks, repeated gradients."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import torch

from labelkin.bench import _references as references
from labelkin.functional import _kernels as kernels
from labelkin.functional import tree_index
from labelkin.functional._kernels import cpu_leaves
from support.trees import KINDS, named, random_taxonomy

LOSSES = {
    "hxe": (
        partial(kernels.hierarchical_cross_entropy, alpha=0.4),
        partial(references.hierarchical_cross_entropy, alpha=0.4),
    ),
    "ancestors": (
        partial(kernels.ancestors, weight=0.3, base=1.0),
        partial(references.ancestors, weight=0.3, base=1.0),
    ),
}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def drawn(rows, classes, scale=2.0):
    return scale * torch.randn(rows, classes, generator=torch.Generator().manual_seed(rows))


def with_gradient(loss, logits, target, index):
    logits = logits.clone().requires_grad_()
    found = loss(logits, target, index)
    weight = torch.linspace(0.5, 1.5, len(found), dtype=found.dtype)
    return found.detach(), torch.autograd.grad((found * weight).sum(), logits)[0]


def check(loss, taxonomy, logits, target):
    ours, reference = LOSSES[loss]
    index = tree_index(taxonomy)
    found = with_gradient(ours, logits, target, index)
    expected = with_gradient(reference, logits.double(), target, index)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got.double(), wanted, atol=1e-5, rtol=1e-5)


@every_loss
@pytest.mark.parametrize("rows_at_once", [1, 3, 5, 7, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_parts_of_any_size(loss, rows_at_once, kind, monkeypatch):
    """Every node is a target, so that the last row ends inside and at the end of an interval."""
    taxonomy = random_taxonomy(np.random.default_rng(7), 19, kind)
    classes, nodes = len(taxonomy.leaves), torch.arange(len(taxonomy))
    monkeypatch.setattr(cpu_leaves, "NEAR_BYTES", 4 * classes * rows_at_once)
    check(loss, taxonomy, drawn(len(nodes), classes), nodes)
    check(loss, taxonomy, drawn(len(nodes), classes), nodes.flip(0))


@every_loss
def test_intervals_that_are_equal(loss):
    """Nodes with one child have its interval: the segments between them are empty."""
    taxonomy = named([-1, 0, 1, 2, 2, 0, 5, 6])
    check(loss, taxonomy, drawn(8, len(taxonomy.leaves)), torch.arange(8))


@every_loss
def test_small_subtrees_beside_large_ones_keep_their_precision(loss):
    """A node with a share of about 1e-15, whose sum a difference of sums over the row would lose."""
    taxonomy = random_taxonomy(np.random.default_rng(2), 700, "unbalanced")
    target = torch.as_tensor(taxonomy.leaves[::100].copy())
    logits = drawn(len(target), 700)
    logits[:, ::100] -= 25
    check(loss, taxonomy, logits, target)


@every_loss
def test_terms_of_masked_nodes_have_no_gradient(loss):
    """The target is masked, its sibling is not: the edge above has a gradient. In the second row, exp(-S) overflows."""
    index = tree_index(named([-1, 0, 0, 1, 1, 2, 2]))
    logits = torch.tensor([[-math.inf, 0.5, 1.0, -0.3], [-math.inf, -1000.0, 1.0, -0.3]])
    losses, grad = with_gradient(LOSSES[loss][0], logits, torch.tensor([3, 3]), index)
    exact = logits.double().requires_grad_()
    weight = {"hxe": math.exp(-0.4), "ancestors": 1.3}[loss] * torch.tensor([0.5, 1.5])
    (expected,) = torch.autograd.grad((weight * (exact.logsumexp(-1) - exact[:, 1])).sum(), exact)
    assert losses.isposinf().all()
    torch.testing.assert_close(grad.double(), expected, atol=1e-6, rtol=1e-5)


@every_loss
@pytest.mark.parametrize("hidden", [-math.inf, -1000.0])
def test_an_inner_target_whose_first_class_has_no_probability(loss, hidden, monkeypatch):
    """The sums over the other classes are exact, so the slow form is not needed."""
    monkeypatch.setattr(cpu_leaves, "exact", None)
    index, target = tree_index(named([-1, 0, 0, 1, 1, 1, 2, 2])), torch.tensor([1, 2])
    logits = drawn(2, 5)
    logits[:, [0, 3]] = hidden
    losses, grad = with_gradient(LOSSES[loss][0], logits, target, index)
    wanted, wanted_grad = with_gradient(LOSSES[loss][1], logits.double().clamp_min(-1000), target, index)
    torch.testing.assert_close((losses.double(), grad.double()), (wanted, wanted_grad), atol=1e-5, rtol=1e-5)


def test_the_operator_of_compiled_code_called_by_itself():
    """As an exported program does it; both what is saved and the incoming gradient may require gradients."""
    index = tree_index(random_taxonomy(np.random.default_rng(3), 9, "balanced"))
    at = kernels.path_index(index)
    given = [index.leaves[:4], at.order, at.first, at.last, at.path, at.length]
    logits, weight = drawn(4, 9).requires_grad_(), torch.linspace(0.5, 1.5, 4).requires_grad_()
    losses = torch.ops.labelkin.fused("leaves", logits, given, [1.0, 0.4, 0.0, 0.0, 0.0])[0]
    (found,) = torch.autograd.grad(losses, logits, weight)
    wanted_losses, wanted = with_gradient(LOSSES["hxe"][0], logits.detach(), given[0], index)
    torch.testing.assert_close((losses, found), (wanted_losses, wanted))


@every_loss
def test_infinite_logits_warn_of_nothing(loss):
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2])
    logits = drawn(4, 4)
    logits[0], logits[1, :2], logits[2, 3], logits[3, 0] = -math.inf, -math.inf, -1e30, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses, grad = with_gradient(LOSSES[loss][0], logits, torch.tensor([3, 3, 6, 3]), tree_index(taxonomy))
    assert losses[:2].isposinf().all()
    assert (grad[0] == 0).all()
    assert grad[:3].isfinite().all()


@every_loss
def test_a_gradient_is_the_same_when_asked_for_twice(loss):
    taxonomy = random_taxonomy(np.random.default_rng(3), 40, "balanced")
    logits = drawn(5, 40).requires_grad_()
    total = LOSSES[loss][0](logits, torch.as_tensor(taxonomy.leaves[:5].copy()), tree_index(taxonomy)).sum()
    once, twice = (torch.autograd.grad(total, logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(once, twice)
