"""Hierarchical ensembles against loops over classes and parents, known cases, and the order of classes and nodes."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import HierarchicalEnsemble, InputError, Taxonomy, decide
from support import reference
from support.numeric import check_gradient, close, positions, probabilities, renamed, values
from support.trees import taxonomies
from support.worlds import renumbered

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
K = len(TREE.leaves)


def parents_of(taxonomy: Taxonomy) -> tuple[list[int], list[int]]:
    """The parents of classes by index, and the place of each class's own among them."""
    above = [int(taxonomy.parents[leaf]) for leaf in taxonomy.leaves]
    found = sorted(set(above))
    return found, [found.index(parent) for parent in above]


def slow_probs(taxonomy: Taxonomy, outputs: list[float]) -> list[float]:
    parents, place = parents_of(taxonomy)
    size = len(taxonomy.leaves)
    fine, coarse = reference.softmax(outputs[:size]), reference.softmax(outputs[size:])
    assert len(coarse) == len(parents)
    joint = [fine[y] * coarse[place[y]] for y in range(size)]
    return [x / math.fsum(joint) for x in joint]


@given(taxonomy=taxonomies(max_leaves=9), seed=st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_loss_and_probabilities_are_the_loops(taxonomy, seed):
    criterion = HierarchicalEnsemble(taxonomy, coarse=0.7, reduction="none")
    _, place = parents_of(taxonomy)
    size = len(place)
    outputs, target = values(seed, size, criterion.width), torch.arange(size)
    loss = [
        reference.cross_entropy(row[:size], y) + 0.7 * reference.cross_entropy(row[size:], place[y])
        for y, row in enumerate(outputs.tolist())
    ]
    close(criterion(outputs, target), loss)
    close(criterion.probs(outputs), [slow_probs(taxonomy, row) for row in outputs.tolist()])


def test_probabilities_are_those_of_decide():
    criterion = HierarchicalEnsemble(TREE)
    outputs = values(1, 30, criterion.width)
    fine, coarse = outputs[:, :K].softmax(-1), outputs[:, K:].softmax(-1)
    close(criterion.probs(outputs), decide.hierarchical_ensemble(fine, coarse, TREE))


def test_class_probabilities_give_the_expected_loss():
    criterion = HierarchicalEnsemble(TREE, reduction="none")
    outputs, soft = values(20, 5, criterion.width), probabilities(21, 5, K)
    of_class = torch.stack([criterion(outputs, torch.full((5,), y)) for y in range(K)], -1)
    close(criterion(outputs, soft), (soft * of_class).sum(-1))


def test_a_flat_tree_and_equal_parents_are_one_hot():
    flat = HierarchicalEnsemble(Taxonomy.from_nested(["a", "b", "c"]))
    outputs, target = values(40, 6, flat.width), positions(41, 3, 6)
    close(flat(outputs, target), F.cross_entropy(outputs[:, :3], target))
    close(flat.probs(outputs), outputs[:, :3].softmax(-1))
    tree = HierarchicalEnsemble(TREE, coarse=0.0)
    outputs = torch.cat([values(42, 6, K), torch.zeros(6, tree.width - K, dtype=torch.float64)], -1)
    close(tree.probs(outputs), outputs[:, :K].softmax(-1))
    close(tree(outputs, target), F.cross_entropy(outputs[:, :K], target))


def test_logits_of_either_classifier_may_be_shifted():
    criterion = HierarchicalEnsemble(TREE)
    outputs, target = values(50, 6, criterion.width), positions(51, K, 6)
    shift = torch.cat([torch.full((K,), 3.0), torch.full((criterion.width - K,), -2.0)])
    close(criterion(outputs + shift, target), criterion(outputs, target))
    close(criterion.probs(outputs + shift), criterion.probs(outputs))


def test_classes_and_nodes_by_another_name():
    order, place = renamed(5, K)
    there = renumbered(TREE).reorder([TREE.classes[i] for i in order])
    here_names, there_names = ([tree.names[i] for i in parents_of(tree)[0]] for tree in (TREE, there))
    columns = [*order.tolist(), *(K + here_names.index(name) for name in there_names)]
    ours, other = HierarchicalEnsemble(TREE), HierarchicalEnsemble(there)
    outputs, target = values(60, 7, ours.width), positions(61, K, 7)
    close(other(outputs[:, columns], place[target]), ours(outputs, target))
    close(other.probs(outputs[:, columns]), ours.probs(outputs)[:, order])


def test_gradients():
    criterion, target = HierarchicalEnsemble(TREE, coarse=0.4, reduction="none"), positions(70, K, 4)
    check_gradient(lambda outputs: criterion(outputs, target), values(71, 4, criterion.width))
    check_gradient(criterion.log_probs, values(72, 3, criterion.width))


def test_masked_classes_and_parents():
    criterion = HierarchicalEnsemble(TREE, reduction="none")
    outputs = values(80, 3, criterion.width)
    outputs[0, 0] = outputs[1, K] = -torch.inf  # a class; the parent of classes 0 and 1 or another first node
    found = criterion.probs(outputs)
    assert found.isfinite().all()
    assert found[0, 0] == 0
    _, place = parents_of(TREE)
    assert not found[1, [y for y in range(K) if place[y] == 0]].any()
    outputs[2] = -torch.inf
    outputs[2, 0] = 0.0  # the classes leave x alone, the parents leave out its parent
    outputs[2, K + (place[0] + 1) % (criterion.width - K)] = 0.0
    close(criterion.probs(outputs)[2], F.one_hot(torch.tensor(0), K).double())


def test_bad_options():
    with pytest.raises(InputError, match=r"coarse: expected a number in \[0, inf\], got -1"):
        HierarchicalEnsemble(TREE, coarse=-1)
    with pytest.raises(InputError, match="taxonomy"):
        HierarchicalEnsemble(3)
