"""Losses on trees against 002 Eq. 2-4, conditional softmax and HXE, walked node by node."""

from functools import cache, partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin.functional import (
    conditional_softmax,
    convex_hierarchical,
    hierarchical,
    hierarchical_cross_entropy,
    node_log_probs,
    path_sum,
    sibling_log_softmax,
    subtree_logsumexp,
    tree_index,
)
from labelkin.functional._tree import above, below, sibling_sums
from support import reference
from support.numeric import (
    GAP,
    check_alive,
    check_gradient,
    close,
    gradient,
    positions,
    probabilities,
    renamed,
    samples,
    values,
)
from support.trees import KINDS, named, random_taxonomy, taxonomies

INTERLEAVED = [-1, 0, 0, 1, 2, 1, 2, 3, 2, 3, 0, 10, 11, 11, 5]  # siblings apart, single children at 5 and 10
# by node: 1 (3 (7, 9), 5 (14)), 2 (4, 6, 8), 10 (11 (12, 13)); leaves at three depths


def wide():
    """Node 1 has 300 children, of which 5 and 6 have two each; 2 and 3 have two each."""
    return named([-1, 0, 0, 0, *[1] * 150, *[2, 3] * 2, *[1] * 150, 5, 5, 6, 6])


TREES = {
    "flat": named([-1, 0, 0, 0, 0]),
    "even": named([-1, 0, 0, 1, 2, 1, 2, 1]),  # every leaf at depth 2
    "interleaved": named(INTERLEAVED),
    "permuted": named(INTERLEAVED).reorder(["n9", "n4", "n13", "n14", "n7", "n8", "n12", "n6"]),
    "chain": random_taxonomy(np.random.default_rng(0), 6, "chain"),
    "single-child": random_taxonomy(np.random.default_rng(1), 6, "single-child"),
    "scattered": random_taxonomy(np.random.default_rng(2), 9, "scattered"),
}
NODE_LOSSES = {  # one logit for each node but the root
    "conditional": (conditional_softmax, reference.conditional_softmax),
    "path": (partial(hierarchical, targets="path"), partial(reference.hierarchical, targets="path")),
    "leaf": (partial(hierarchical, targets="leaf"), partial(reference.hierarchical, targets="leaf")),
    "convex": (convex_hierarchical, partial(reference.convex_hierarchical, soft_off_path=False)),
    "convex soft": (
        partial(convex_hierarchical, soft_off_path=True),
        partial(reference.convex_hierarchical, soft_off_path=True),
    ),
}
LEAF_LOSSES = {  # K logits
    f"hxe {alpha} {normalize}": (
        partial(hierarchical_cross_entropy, alpha=alpha, normalize=normalize),
        partial(reference.hierarchical_cross_entropy, alpha=alpha, normalize=normalize),
    )
    for alpha, normalize in [(0.0, False), (0.5, False), (0.5, True)]
}
LOSSES = NODE_LOSSES | LEAF_LOSSES
every_tree = pytest.mark.parametrize("tree", TREES)
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_node_loss = pytest.mark.parametrize("loss", NODE_LOSSES)
leads = pytest.mark.parametrize("lead", [(6,), (2, 3)])


@cache
def index_of(tree):
    return tree_index(TREES[tree])


def width(loss, taxonomy):
    return len(taxonomy.leaves) if loss in LEAF_LOSSES else len(taxonomy) - 1


def loop(loss, taxonomy):
    """The slow loss as a function of (logits, node)."""
    parents, leaves = taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    slow = LOSSES[loss][1]
    if loss in LEAF_LOSSES:
        return lambda logits, node: slow(logits, parents, leaves, node)
    return lambda logits, node: slow(logits, parents, node)


def check_loss(loss, taxonomy, logits, target, soft):
    """Against the loop, at nodes (...,) and at class probabilities (..., K), for which the loss is the expected one."""
    index, fast, slow = tree_index(taxonomy), LOSSES[loss][0], loop(loss, taxonomy)
    hard_loss, soft_loss = fast(logits, target, index), fast(logits, soft, index)
    for i in samples(target.shape):
        close(hard_loss[i], slow(logits[i].tolist(), int(target[i])))
        shares = [(w, leaf) for w, leaf in zip(soft[i].tolist(), taxonomy.leaves.tolist(), strict=True) if w]
        close(soft_loss[i], sum(w * slow(logits[i].tolist(), leaf) for w, leaf in shares))
    assert hard_loss.shape == soft_loss.shape == target.shape


def given_values(loss, taxonomy, lead, seed, nodes):
    """Logits, some of the nodes as targets, and class probabilities whose mass class weights have changed."""
    target = torch.as_tensor(nodes)[positions(seed + 1, len(nodes), *lead)]
    soft = probabilities(seed + 2, *lead, len(taxonomy.leaves)) * 1.7
    return values(seed, *lead, width(loss, taxonomy)), target, soft


@pytest.mark.long
@every_tree
@every_loss
@leads
def test_leaf_and_soft_targets_are_the_loop(tree, loss, lead):
    taxonomy = TREES[tree]
    check_loss(loss, taxonomy, *given_values(loss, taxonomy, lead, 0, taxonomy.leaves.tolist()))


@every_tree
@every_loss
def test_every_node_as_target_is_the_loop(tree, loss):
    """Inner nodes and the root too, below which nothing contributes."""
    taxonomy, nodes = TREES[tree], torch.arange(len(TREES[tree]))
    logits = values(10, len(nodes), width(loss, taxonomy))
    slow = loop(loss, taxonomy)
    expected = [slow(row.tolist(), node) for node, row in enumerate(logits)]
    close(LOSSES[loss][0](logits, nodes, index_of(tree)), expected)


@pytest.mark.long
@every_loss
def test_a_wide_group_beside_pairs(loss):
    taxonomy, target = wide(), torch.tensor([4, 307, 309, 155, 5])
    logits, _, soft = given_values(loss, taxonomy, target.shape, 20, [0])
    share = soft * (torch.arange(soft.shape[-1]) % 97 == 3)  # the loop is slow: a few classes
    check_loss(loss, taxonomy, logits, target, share)


@every_loss
@given(taxonomy=taxonomies(max_leaves=12), seed=st.integers(0, 2**16))
@settings(max_examples=8, deadline=None)
def test_random_trees_are_the_loop(loss, taxonomy, seed):
    check_loss(loss, taxonomy, *given_values(loss, taxonomy, (2,), seed, range(len(taxonomy))))


# The pieces.


@every_tree
@leads
def test_pieces_are_the_loop(tree, lead):
    taxonomy, index = TREES[tree], index_of(tree)
    parents, nodes = taxonomy.parents.tolist(), range(1, len(taxonomy))
    logits = values(30, *lead, len(taxonomy) - 1)
    leaf_logits = values(31, *lead, len(taxonomy.leaves))
    found = {
        "log_p": sibling_log_softmax(logits, index),
        "z": node_log_probs(logits, index),
        "sums": path_sum(logits, index),
        "groups": sibling_sums(logits, index),
        "below": subtree_logsumexp(leaf_logits, index),
    }
    for i in samples(lead):
        row, leaf_row = logits[i].tolist(), leaf_logits[i].tolist()
        close(found["log_p"][i], [reference.log_p(row, parents, j) for j in nodes])
        close(found["z"][i], [reference.node_log_prob(row, parents, j) for j in nodes])
        close(found["sums"][i], [sum(row[a - 1] for a in reference.path(parents, j)) for j in nodes])
        groups = [sum(row[j - 1] for j in reference.children(parents, p)) for p in index.group_parent.tolist()]
        close(found["groups"][i], groups)
        leaves = taxonomy.leaves.tolist()
        expected = [reference.leaf_log_sum(leaf_row, parents, leaves, j) for j in range(len(parents))]
        close(found["below"][i], expected)


@every_tree
def test_below_and_above_are_the_loop(tree):
    taxonomy, index = TREES[tree], index_of(tree)
    parents, everyone = taxonomy.parents.tolist(), torch.arange(len(taxonomy))
    under, over = below(everyone, everyone, index), above(everyone, everyone, index)
    for a in everyone.tolist():
        for b in everyone.tolist():
            expected = a == b or reference.strictly_below(parents, a, b)
            assert bool(under[a, b]) == expected
            assert bool(over[b, a]) == expected
    assert below(everyone.reshape(1, -1), everyone[:2], index).shape == (1, len(taxonomy), 2)


@pytest.mark.long
@every_tree
def test_gradients_of_the_pieces(tree):
    taxonomy, index = TREES[tree], index_of(tree)
    logits = values(32, 2, len(taxonomy) - 1)
    for piece in (sibling_log_softmax, node_log_probs, path_sum):
        check_gradient(lambda x, piece=piece: piece(x, index), logits)
    check_gradient(lambda x: subtree_logsumexp(x, index), values(33, 2, len(taxonomy.leaves)))


@pytest.mark.long
@every_loss
@pytest.mark.parametrize("tree", ["interleaved", "permuted", "scattered"])
def test_gradients(tree, loss):
    taxonomy, index, fast = TREES[tree], index_of(tree), LOSSES[loss][0]
    logits = values(34, 3, width(loss, taxonomy))
    target = torch.tensor([int(taxonomy.leaves[0]), 2, int(taxonomy.leaves[-1])])
    check_gradient(lambda x: fast(x, target, index), logits)
    check_gradient(lambda x: fast(x, probabilities(35, 3, len(taxonomy.leaves)), index), logits)


def check_leaf_sum(taxonomy, seed):
    log_probs = node_log_probs(values(seed, 2, len(taxonomy) - 1), tree_index(taxonomy))
    close(log_probs[:, taxonomy.leaves - 1].exp().sum(-1), torch.ones(2))


@pytest.mark.long
@given(taxonomy=taxonomies(max_leaves=2000), seed=st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test_leaf_probabilities_sum_to_1(taxonomy, seed):
    check_leaf_sum(taxonomy, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_leaf_probabilities_of_2000_classes_sum_to_1(kind):
    check_leaf_sum(random_taxonomy(np.random.default_rng(5), 2000, kind), 36)


# An inner node as target.


@pytest.mark.long
@every_tree
@every_node_loss
def test_no_gradient_below_an_inner_target(tree, loss):
    taxonomy, index = TREES[tree], index_of(tree)
    parents = taxonomy.parents.tolist()
    for node in range(len(parents)):
        target = torch.tensor([node])
        grad = gradient(lambda x, y=target: LOSSES[loss][0](x, y, index), values(40 + node, 1, len(parents) - 1))
        hidden = [j - 1 for j in range(1, len(parents)) if reference.strictly_below(parents, node, j)]
        assert (grad[0, hidden] == 0).all(), node


@pytest.mark.parametrize("loss", LEAF_LOSSES)
def test_hxe_does_not_see_how_leaves_share_what_an_inner_target_has(loss):
    """Leaf logits below the target move while the log of their summed exponentials stays."""
    taxonomy, index, node = TREES["interleaved"], index_of("interleaved"), 2
    hidden = [k for k, leaf in enumerate(taxonomy.leaves.tolist()) if taxonomy.parents[leaf] == node]
    logits = values(60, 1, len(taxonomy.leaves))
    moved = logits.clone()
    moved[0, hidden] = logits[0, hidden].logsumexp(0) + torch.log_softmax(values(61, len(hidden)), 0)
    assert not torch.allclose(moved, logits)
    target = torch.tensor([node])
    close(LOSSES[loss][0](moved, target, index), LOSSES[loss][0](logits, target, index))


# What they come down to.


@every_loss
def test_a_flat_tree_gives_cross_entropy(loss):
    """But for HXE's constant factor where alpha is not 0."""
    taxonomy = TREES["flat"].reorder(["n3", "n1", "n4", "n2"])
    index = tree_index(taxonomy)
    logits, target = values(70, 5, 4), positions(71, 4, 5)
    by_class = logits if loss in LEAF_LOSSES else logits[:, taxonomy.leaves - 1]
    factor = {"hxe 0.5 False": np.exp(-0.5), "hxe 0.5 True": np.exp(-0.5) / (1 + 4 * np.exp(-0.5))}.get(loss, 1.0)
    expected = factor * F.cross_entropy(by_class, target, reduction="none")
    close(LOSSES[loss][0](logits, index.leaves[target], index), expected)


@given(taxonomy=taxonomies(max_leaves=60), seed=st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test_hxe_at_alpha_0_is_cross_entropy_on_any_tree(taxonomy, seed):
    index, classes = tree_index(taxonomy), len(taxonomy.leaves)
    logits, target = values(seed, 4, classes), positions(seed + 1, classes, 4)
    expected = F.cross_entropy(logits, target, reduction="none")
    close(hierarchical_cross_entropy(logits, index.leaves[target], index, alpha=0.0), expected)
    normalised = hierarchical_cross_entropy(logits, index.leaves[target], index, alpha=0.0, normalize=True)
    close(normalised, expected / len(taxonomy))


def inner_mass(logits, taxonomy):
    """The second sum of 002 Eq. 2 without the root, from the loop's node probabilities."""
    parents = taxonomy.parents.tolist()
    return [
        sum(np.exp(reference.node_log_prob(row, parents, i)) for i in set(parents) - {-1, 0}) for row in logits.tolist()
    ]


@every_tree
def test_leaf_targets_are_conditional_softmax_and_the_inner_mass(tree):
    taxonomy, index = TREES[tree], index_of(tree)
    logits = values(72, 5, len(taxonomy) - 1)
    target = index.leaves[positions(73, len(taxonomy.leaves), 5)]
    mass = hierarchical(logits, target, index, targets="leaf") - conditional_softmax(logits, target, index)
    close(mass, inner_mass(logits, taxonomy))


@pytest.mark.parametrize(("tree", "moves"), [("flat", False), ("even", False), ("interleaved", True), ("chain", True)])
def test_the_inner_mass_has_a_gradient_only_where_leaf_depths_differ(tree, moves):
    taxonomy, index = TREES[tree], index_of(tree)
    assert (len(set(taxonomy.depth[taxonomy.leaves].tolist())) > 1) == moves
    target = index.leaves[:1].expand(5)

    def mass(logits):
        return hierarchical(logits, target, index, targets="leaf") - conditional_softmax(logits, target, index)

    grad = gradient(mass, values(74, 5, len(taxonomy) - 1))
    assert (grad.abs().max() > 1e-3) == moves
    assert moves or grad.abs().max() < 1e-12


def test_the_inner_mass_is_the_expected_leaf_depth():
    """Counted in nodes strictly between root and leaf."""
    taxonomy, index = TREES["interleaved"], index_of("interleaved")
    logits = values(75, 4, len(taxonomy) - 1)
    share = node_log_probs(logits, index)[:, taxonomy.leaves - 1].exp()
    between = torch.from_numpy(taxonomy.depth[taxonomy.leaves] - 1).double()
    close((share * between).sum(-1), inner_mass(logits, taxonomy))


def test_worked_by_hand():
    """Uniform logits, leaf 7 = root / 1 / 3 / 7: p = 1/3, 1/2, 1/2; s = 3, 2, 1; depths of the parents 1, 2, 3."""
    index, log = index_of("interleaved"), np.log
    logits, leaf = torch.zeros(1, len(INTERLEAVED) - 1, dtype=torch.float64), torch.tensor([7])
    # inner nodes below the root: 1, 2, 10, 11 with 1/3 each, 3 and 5 with 1/6 each
    mass = 4 / 3 + 1 / 3
    close(conditional_softmax(logits, leaf, index), [log(3) + 2 * log(2)])
    close(hierarchical(logits, leaf, index), [3 * log(3) + 2 * log(2) + log(2) + mass])
    close(hierarchical(logits, leaf, index, targets="leaf"), [log(3) + 2 * log(2) + mass])
    close(convex_hierarchical(logits, leaf, index), [log(3) + log(2) / 2 + log(2) / 3])
    # uniform off the path is met by uniform logits
    close(convex_hierarchical(logits, leaf, index, soft_off_path=True), [log(3) + log(2) / 2 + log(2) / 3])
    # target 1, an inner node: its own edge alone; the mass without 3 and 5, which lie below
    close(hierarchical(logits, torch.tensor([1]), index), [log(3) + 4 / 3])


# Order and names mean nothing.


@every_loss
def test_sample_order(loss):
    taxonomy, index = TREES["interleaved"], index_of("interleaved")
    logits, nodes = values(80, 8, width(loss, taxonomy)), positions(81, len(taxonomy), 8)
    order, _ = renamed(82, 8)
    found = LOSSES[loss][0](logits[order], nodes[order], index)
    close(found, LOSSES[loss][0](logits, nodes, index)[order])


@every_loss
def test_class_order(loss):
    """Reordering the classes moves leaf logits and class probabilities; node logits stay with their nodes."""
    plain, permuted = TREES["interleaved"], TREES["permuted"]
    move = torch.tensor([plain.leaves.tolist().index(leaf) for leaf in permuted.leaves.tolist()])
    logits, soft = values(83, 4, width(loss, plain)), probabilities(84, 4, len(plain.leaves))
    moved = logits[:, move] if loss in LEAF_LOSSES else logits
    fast = LOSSES[loss][0]
    close(fast(moved, soft[:, move], index_of("permuted")), fast(logits, soft, index_of("interleaved")))
    target = torch.tensor([7, 2, 14, 0])
    close(fast(moved, target, index_of("permuted")), fast(logits, target, index_of("interleaved")))


@every_loss
def test_node_order(loss):
    """The same tree with its nodes numbered breadth first, siblings side by side."""
    scattered = TREES["interleaved"]
    children = [reference.children(INTERLEAVED, i) for i in range(len(INTERLEAVED))]
    order = [0]
    for node in order:
        order += children[node]
    place = {node: i for i, node in enumerate(order)}
    parents = [-1] + [place[INTERLEAVED[node]] for node in order[1:]]
    tidy = named(parents, [place[leaf] for leaf in scattered.leaves.tolist()])
    logits = values(85, 4, width(loss, scattered))
    moved = logits if loss in LEAF_LOSSES else logits[:, [node - 1 for node in order[1:]]]
    target = torch.tensor([7, 2, 14, 1])
    found = LOSSES[loss][0](moved, torch.tensor([place[node] for node in target.tolist()]), tree_index(tidy))
    close(found, LOSSES[loss][0](logits, target, index_of("interleaved")))


# The true class far below the best.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("node", [1, 3, 7], ids=["across the tree", "in between", "among siblings"])
@every_node_loss
def test_alive_200_below(loss, node, dtype):
    """Leaf 7 is the class; a node on its path lies 200 below its siblings, all else is even."""
    logits = torch.zeros(1, len(INTERLEAVED) - 1, dtype=dtype)
    logits[0, node - 1] = -GAP
    fast, index = LOSSES[loss][0], index_of("interleaved")
    for target in (torch.tensor([7]), (index.leaves == 7).to(dtype).unsqueeze(0)):
        found, grad = check_alive(lambda x, y=target: fast(x, y, index), logits, node - 1)
        assert (found > GAP / 4).all()
        assert (grad[:, node - 1] < 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("near", [[], ["n9"], ["n9", "n14"]], ids=["all", "but its sibling", "but its cousins"])
@pytest.mark.parametrize("loss", LEAF_LOSSES)
def test_hxe_alive_200_below(loss, near, dtype):
    """The class 200 below all others; or it and its kin together 200 below the rest of the tree."""
    taxonomy, index = TREES["interleaved"], index_of("interleaved")
    logits = torch.zeros(1, len(taxonomy.leaves), dtype=dtype)
    for name in ["n7", *near]:
        logits[0, taxonomy.classes.index(name)] = -GAP
    own = taxonomy.classes.index("n7")
    found, grad = check_alive(lambda x: LOSSES[loss][0](x, torch.tensor([7]), index), logits, own)
    assert (found > 1).all()
    assert (grad[:, own] < 0).all()
