"""The expected cost of a prediction, by a tree's distances and by a matrix, against slow loops and known cases."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin.functional import expected_cost, expected_distance, tree_index
from support import reference
from support.numeric import check_gradient, close, positions, probabilities, renamed, samples, values
from support.trees import named, taxonomies

PARENTS = [-1, 0, 0, 1, 2, 1, 2, 3, 2, 3, 0, 10, 11, 11, 5]  # leaves at three depths, single children at 5 and 10


TREE = named(PARENTS)
INDEX = tree_index(TREE)
CLASSES = len(TREE.leaves)


def check_loop(taxonomy, logits, target, soft):
    index, parents, leaves = tree_index(taxonomy), taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    hard, mixed = expected_distance(logits, target, index), expected_distance(logits, soft, index)
    for i in samples(target.shape):
        row = logits[i].tolist()
        close(hard[i], reference.expected_distance(row, parents, leaves, int(target[i])))
        by_class = [reference.expected_distance(row, parents, leaves, leaf) for leaf in leaves]
        close(mixed[i], sum(w * cost for w, cost in zip(soft[i].tolist(), by_class, strict=True)))
    assert hard.shape == mixed.shape == target.shape


def test_every_node_and_class_probabilities_are_the_loop():
    nodes = len(PARENTS)
    check_loop(TREE, values(0, nodes, CLASSES), torch.arange(nodes), 1.7 * probabilities(1, nodes, CLASSES))
    check_loop(TREE, values(2, 2, 3, CLASSES), positions(3, nodes, 2, 3), probabilities(4, 2, 3, CLASSES))


@given(taxonomy=taxonomies(max_leaves=12), seed=st.integers(0, 2**16))
@settings(max_examples=12, deadline=None)
def test_random_trees_are_the_loop(taxonomy, seed):
    classes = len(taxonomy.leaves)
    check_loop(
        taxonomy, values(seed, 4, classes), positions(seed, len(taxonomy), 4), probabilities(seed + 1, 4, classes)
    )


def test_the_tree_is_the_matrix_of_its_distances():
    logits, target = values(5, 9, CLASSES), positions(6, CLASSES, 9)
    costs = torch.from_numpy(TREE.distance("height")).double()
    close(expected_distance(logits, INDEX.leaves[target], INDEX), expected_cost(logits, target, costs))


def test_a_flat_tree_gives_the_probability_of_a_mistake():
    flat = tree_index(named([-1, 0, 0, 0]))
    logits = values(7, 3, 3)
    close(expected_distance(logits, flat.leaves, flat), 1 - F.softmax(logits, -1).diagonal())


def test_the_root_costs_nothing_and_a_sure_right_answer_neither():
    logits = values(8, 2, CLASSES)
    assert (expected_distance(logits, torch.zeros(2, dtype=torch.int64), INDEX) == 0).all()
    sure = torch.zeros(1, CLASSES, dtype=torch.float64)
    sure[0, 3] = 400
    assert (expected_distance(sure, INDEX.leaves[3:4], INDEX) == 0).all()


def test_order_of_classes_and_a_constant_change_nothing():
    logits, nodes = values(11, 8, CLASSES), positions(12, len(PARENTS), 8)
    found = expected_distance(logits, nodes, INDEX)
    move, _ = renamed(15, CLASSES)
    moved = tree_index(named(PARENTS, TREE.leaves[move.numpy()]))
    close(expected_distance(logits[:, move], nodes, moved), found)
    close(expected_distance(logits + 3.0, nodes, INDEX), found)


@pytest.mark.parametrize("mask", [-torch.inf, torch.finfo(torch.float64).min])
@pytest.mark.parametrize("masked", [("n9",), ("n4", "n6", "n8"), ("n7",), ("n7", "n9")], ids=str)
def test_masked_classes_have_probability_0(mask, masked):
    columns = [TREE.classes.index(name) for name in masked]
    low, logits = values(20, 1, CLASSES), values(20, 1, CLASSES)
    logits[:, columns], low[:, columns] = mask, -700.0
    soft = F.one_hot(torch.tensor([TREE.classes.index("n7")]), CLASSES).double()
    for target in (torch.tensor([7]), soft):
        at = logits.clone().requires_grad_()
        found = expected_distance(at, target, INDEX)
        found.sum().backward()
        close(found, expected_distance(low, target, INDEX))
        assert torch.isfinite(at.grad).all()
        assert (at.grad[:, columns] == 0).all()


@pytest.mark.long
def test_gradients():
    nodes, target = torch.tensor([7, 2, 14, 0, 13, 1]), positions(16, CLASSES, 6)
    logits, soft = values(17, 6, CLASSES), probabilities(18, 6, CLASSES)
    costs = values(19, CLASSES, CLASSES)
    check_gradient(lambda x: expected_distance(x, nodes, INDEX), logits)
    check_gradient(lambda x: expected_distance(x, soft, INDEX), logits)
    check_gradient(lambda x: expected_cost(x, target, costs), logits)
    check_gradient(lambda x: expected_cost(x, soft, costs), logits)


def test_a_matrix_of_costs_is_the_loop():
    logits, target, soft = values(21, 7, 5), positions(22, 5, 7), 1.3 * probabilities(23, 7, 5)
    costs = values(24, 5, 5)  # neither symmetric nor positive, and right answers cost something
    hard, mixed = expected_cost(logits, target, costs), expected_cost(logits, soft, costs)
    for i in range(7):
        by_class = [reference.expected_cost(logits[i].tolist(), costs.tolist(), k) for k in range(5)]
        close(hard[i], by_class[int(target[i])])
        close(mixed[i], sum(w * cost for w, cost in zip(soft[i].tolist(), by_class, strict=True)))


def test_unit_costs_give_the_probability_of_a_mistake():
    logits = values(25, 4, 4)
    unit = 1 - torch.eye(4, dtype=torch.float64)
    close(expected_cost(logits, torch.arange(4), unit), 1 - F.softmax(logits, -1).diagonal())
