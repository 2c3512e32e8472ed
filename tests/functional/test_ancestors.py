"""The ancestors term against a slow loop, known cases, masked classes and the order of classes and nodes."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin.functional import ancestors, cross_entropy, hierarchical_cross_entropy, tree_index
from labelkin.functional._kernels import losses as fused_losses
from support import reference
from support.numeric import check_gradient, close, gradient, positions, probabilities, renamed, samples, values
from support.trees import named, taxonomies

PARENTS = [-1, 0, 0, 1, 2, 1, 2, 3, 2, 3, 0, 10, 11, 11, 5]  # leaves at three depths, single children at 5 and 10


TREE = named(PARENTS)
INDEX = tree_index(TREE)


@pytest.fixture(params=["composed", "fused"], autouse=True)
def form(request, monkeypatch):
    size = 0 if request.param == "fused" else math.inf
    monkeypatch.setattr(fused_losses, "SMALL", size)
    monkeypatch.setattr(fused_losses, "LITTLE", size)
    return request.param


def check_loop(taxonomy, logits, target, soft, weight):
    index = tree_index(taxonomy)
    slow = partial(
        reference.ancestors, parents=taxonomy.parents.tolist(), leaves=taxonomy.leaves.tolist(), weight=weight
    )
    hard, expected = ancestors(logits, target, index, weight=weight), ancestors(logits, soft, index, weight=weight)
    for i in samples(target.shape):
        close(hard[i], slow(logits[i].tolist(), node=int(target[i])))
        by_class = [slow(logits[i].tolist(), node=leaf) for leaf in taxonomy.leaves.tolist()]
        close(expected[i], sum(w * loss for w, loss in zip(soft[i].tolist(), by_class, strict=True)))
    assert hard.shape == expected.shape == target.shape


def test_every_node_and_class_probabilities_are_the_loop():
    nodes, classes = len(PARENTS), len(TREE.leaves)
    check_loop(TREE, values(0, nodes, classes), torch.arange(nodes), 1.7 * probabilities(1, nodes, classes), 0.3)
    check_loop(TREE, values(2, 2, 3, classes), positions(3, nodes, 2, 3), probabilities(4, 2, 3, classes), 2.0)


@given(taxonomy=taxonomies(max_leaves=12), seed=st.integers(0, 2**16))
@settings(max_examples=8, deadline=None)
def test_random_trees_are_the_loop(taxonomy, seed):
    classes = len(taxonomy.leaves)
    target = positions(seed, len(taxonomy), 4)
    check_loop(taxonomy, values(seed, 4, classes), target, probabilities(seed + 1, 4, classes), 0.5)


def test_weight_0_and_flat_trees_give_0():
    logits, nodes = values(5, 4, len(TREE.leaves)), torch.tensor([7, 2, 14, 0])
    assert (ancestors(logits, nodes, INDEX, weight=0.0) == 0).all()
    flat = tree_index(named([-1, 0, 0, 0]))
    assert (ancestors(values(6, 3, 3), flat.leaves, flat, weight=1.0) == 0).all()
    assert (ancestors(values(6, 3, 3), probabilities(7, 3, 3), flat, weight=1.0) == 0).all()


def test_two_levels_give_the_parent():
    taxonomy = named([-1, 0, 0, 1, 1, 2, 2, 2])
    index = tree_index(taxonomy)
    logits, classes = values(8, 5, 5), torch.arange(5)
    probs = F.softmax(logits, -1)
    parent = torch.stack([probs[:, :2].sum(-1), probs[:, 2:].sum(-1)], -1)
    expected = -0.4 * parent.log().gather(-1, torch.tensor([0, 0, 1, 1, 1])[:, None])[:, 0]
    close(ancestors(logits, index.leaves[classes], index, weight=0.4), expected)
    close(ancestors(logits, F.one_hot(classes, 5).double(), index, weight=0.4), expected)


def test_with_cross_entropy_it_weighs_the_edges_of_the_path():
    """On a path of three edges the weights are 1 + 2 w, 1 + w and 1."""
    taxonomy, index = named([-1, 0, 0, 1, 1, 3, 3]), tree_index(named([-1, 0, 0, 1, 1, 3, 3]))
    logits, leaf = values(9, 1, 4), 5
    target = torch.tensor([taxonomy.leaves.tolist().index(leaf)])
    found = cross_entropy(logits, target) + ancestors(logits, torch.tensor([leaf]), index, weight=0.7)
    parents, leaves = taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    sums = [reference.leaf_log_sum(logits[0].tolist(), parents, leaves, node) for node in (0, 1, 3, 5)]
    close(found, [sum(w * (a - b) for w, a, b in zip((2.4, 1.7, 1.0), sums, sums[1:], strict=False))])


def test_a_child_of_the_root_is_a_term_of_hxe():
    logits, target = values(10, 1, len(TREE.leaves)), torch.tensor([2])
    close(ancestors(logits, target, INDEX, weight=1.0), hierarchical_cross_entropy(logits, target, INDEX, alpha=0.0))


def test_order_of_samples_and_classes():
    logits, nodes = values(11, 8, len(TREE.leaves)), positions(12, len(PARENTS), 8)
    soft = probabilities(13, 8, len(TREE.leaves))
    order, _ = renamed(14, 8)
    found = ancestors(logits, nodes, INDEX, weight=1.0)
    close(ancestors(logits[order], nodes[order], INDEX, weight=1.0), found[order])
    move, _ = renamed(15, len(TREE.leaves))
    moved = tree_index(named(PARENTS, TREE.leaves[move.numpy()]))
    close(ancestors(logits[:, move], nodes, moved, weight=1.0), found)
    close(ancestors(logits[:, move], soft[:, move], moved, weight=1.0), ancestors(logits, soft, INDEX, weight=1.0))


def test_a_constant_added_to_the_logits_changes_nothing():
    logits, nodes = values(16, 4, len(TREE.leaves)), torch.tensor([7, 2, 14, 13])
    close(ancestors(logits + 3.0, nodes, INDEX, weight=1.0), ancestors(logits, nodes, INDEX, weight=1.0))


@pytest.mark.long
def test_gradients():
    nodes = torch.tensor([7, 2, 14, 0, 13, 1])
    logits, soft = values(17, 6, len(TREE.leaves)), probabilities(18, 6, len(TREE.leaves))
    check_gradient(lambda x: ancestors(x, nodes, INDEX, weight=0.6), logits)
    check_gradient(lambda x: ancestors(x, soft, INDEX, weight=0.6), logits)
    twice = logits.clone().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: ancestors(x, nodes, INDEX, weight=0.6), (twice,))


def test_siblings_below_the_same_parent_get_equal_shares():
    """The term does not see which class below the parent has the probability."""
    logits = values(19, 1, len(TREE.leaves))
    chosen = [TREE.classes.index(name) for name in ("n7", "n9")]
    grad = gradient(lambda x: ancestors(x, torch.tensor([7]), INDEX, weight=1.0), logits)[0, chosen]
    probs = F.softmax(logits, -1)[0, chosen]
    close(grad[0] * probs[1], grad[1] * probs[0])
    assert (grad < 0).all()


@pytest.mark.parametrize("mask", [-torch.inf, torch.finfo(torch.float64).min])
@pytest.mark.parametrize("masked", [("n9",), ("n4", "n6", "n8"), ("n7",)], ids=str)
def test_masked_classes(mask, masked):
    """Off the target's path they contribute nothing; the target itself may be masked while its parent is open."""
    columns = [TREE.classes.index(name) for name in masked]
    low, logits = values(20, 1, len(TREE.leaves)), values(20, 1, len(TREE.leaves))
    logits[:, columns], low[:, columns] = mask, -700.0
    soft = F.one_hot(torch.tensor([TREE.classes.index("n7")]), len(TREE.leaves)).double()
    for target in (torch.tensor([7]), soft):
        found = partial(ancestors, target=target, tree=INDEX, weight=1.0)
        close(found(logits), found(low))
        grad = gradient(found, logits)
        close(grad, gradient(found, low))
        assert (grad[:, columns] == 0).all()


def test_masked_ancestors_give_an_infinite_term():
    logits = values(21, 1, len(TREE.leaves))
    logits[:, [TREE.classes.index(name) for name in ("n7", "n9")]] = -torch.inf
    assert ancestors(logits, torch.tensor([7]), INDEX, weight=1.0).isposinf().all()
