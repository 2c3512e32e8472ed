"""Hier-COS against its equations written as loops, known cases, and the order of classes and nodes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import HierCOS, InputError, Taxonomy
from labelkin.functional import subspace_scores, subspace_terms, tree_index
from support import reference_peers as reference
from support.numeric import check_gradient, close, positions, probabilities, samples, values
from support.trees import taxonomies
from support.worlds import renumbered

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
EVEN = Taxonomy.from_paths(["a/x", "a/y", "b/u", "b/v", "b/w"])
K, NODES = len(TREE.leaves), len(TREE) - 1


def check_loop(taxonomy, z, target, soft):
    index, parents, leaves = tree_index(taxonomy), taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    hard, mean, scores = subspace_terms(z, target, index), subspace_terms(z, soft, index), subspace_scores(z, index)
    for i in samples(target.shape):
        row = z[i].tolist()
        every = [reference.hier_cos(row, parents, leaf) for leaf in leaves]
        close(torch.stack([hard.divergence[i], hard.levels[i]]), every[int(target[i])])
        for found, own in zip(mean, zip(*every, strict=True), strict=True):
            close(found[i], sum(w * loss for w, loss in zip(soft[i].tolist(), own, strict=True)))
        close(scores[i], [reference.subspace_score(row, parents, leaf) for leaf in leaves])


def test_the_terms_are_the_loop():
    check_loop(TREE, values(0, 9, NODES), positions(1, K, 9), 1.3 * probabilities(2, 9, K))
    check_loop(EVEN, values(3, 2, 3, len(EVEN) - 1), positions(4, 5, 2, 3), probabilities(5, 2, 3, 5))


@given(taxonomy=taxonomies(max_leaves=10), seed=st.integers(0, 2**16))
@settings(max_examples=10, deadline=None)
def test_random_trees_are_the_loop(taxonomy, seed):
    classes = len(taxonomy.leaves)
    z = values(seed, 3, len(taxonomy) - 1)
    check_loop(taxonomy, z, positions(seed, classes, 3), probabilities(seed, 3, classes))


def test_a_flat_tree_has_the_cross_entropy_of_sizes():
    flat = tree_index(Taxonomy.from_nested(["a", "b", "c"]))
    z, target = values(6, 5, 3), positions(7, 3, 5)
    found = subspace_terms(z, target, flat)
    close(found.divergence, torch.nn.functional.cross_entropy(z.abs(), target, reduction="none"))
    close(subspace_scores(z, flat), z.abs())


def test_the_levels_vanish_where_z_lies_on_the_path_and_signs_do_not_matter():
    index = tree_index(EVEN)
    for y, leaf in enumerate(EVEN.leaves):
        z = torch.zeros(1, len(EVEN) - 1, dtype=torch.float64)
        z[0, [leaf - 1, EVEN.parents[leaf] - 1]] = torch.tensor([-2.0, 5.0], dtype=torch.float64)
        close(subspace_terms(z, torch.tensor([y]), index).levels, [0.0])
    z, target = values(8, 6, NODES), positions(9, K, 6)
    for ours, theirs in zip(*(subspace_terms(s * z, target, tree_index(TREE)) for s in (1, -1)), strict=True):
        close(ours, theirs)


def test_the_divergence_is_least_at_the_weights_of_the_path():
    """Of two levels the leaf has `exp(2)` where its parent has `exp(1)`."""
    z = torch.full((1, len(EVEN) - 1), 0.0, dtype=torch.float64)
    leaf, parent = int(EVEN.leaves[0]), EVEN.node("a")
    z[0, leaf - 1], z[0, parent - 1] = 60.0, 60.0 - math.log(math.exp(2) / math.exp(1))
    close(subspace_terms(z, torch.tensor([0]), tree_index(EVEN)).divergence, [0.0])


def test_gradients():
    target, soft, index = positions(10, K, 4), probabilities(11, 4, K), tree_index(TREE)
    for name in ("divergence", "levels"):
        for given_target in (target, soft):
            check_gradient(
                lambda z, n=name, t=given_target: getattr(subspace_terms(z, t, index), n), values(12, 4, NODES)
            )
    check_gradient(lambda z: subspace_scores(z, index), values(13, 4, NODES))


def test_nodes_by_another_number():
    other = renumbered(TREE)
    columns = [TREE.names.index(name) - 1 for name in other.names[1:]]
    z, target = values(14, 5, NODES), positions(15, K, 5)
    for ours, theirs in zip(
        subspace_terms(z, target, tree_index(TREE)),
        subspace_terms(z[:, columns], target, tree_index(other)),
        strict=True,
    ):
        close(ours, theirs)


def test_scores_prefer_kin():
    """The classes that share more of the path of a class lie nearer to it, if their own nodes are equal."""
    head = HierCOS(TREE)
    found = head.scores(torch.eye(NODES)[TREE.node("b") - 1] + 0.1)
    assert found[:2].min() > found[2:].max()


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="alpha: expected"):
        HierCOS(TREE, alpha=-1)
    with pytest.raises(InputError, match=r"taxonomy: expected a labelkin.Taxonomy, got int"):
        HierCOS(3)
