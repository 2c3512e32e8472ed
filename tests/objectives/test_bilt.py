"""BiLT against its equations written as loops, known cases, and the order of classes and nodes."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from labelkin import BiLT, InputError, Taxonomy, decide
from labelkin.functional import cost_scores, cost_targets, cost_terms
from labelkin.objectives._bilt import levels_of
from support import reference, reference_peers
from support.numeric import check_gradient, close, positions, probabilities, renamed, values
from support.trees import taxonomies
from support.worlds import default_dtype, renumbered

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
K = len(TREE.leaves)


def learned(taxonomy, seed=0, **options):
    """A criterion in double precision whose corrections are random."""
    with default_dtype(torch.float64):
        criterion = BiLT(taxonomy, **{"reduction": "none", "batch_norm": False, **options})
    with torch.no_grad():
        for i, delta in enumerate(criterion.delta):
            delta.copy_(values(seed + i, *delta.shape))
    return criterion


def slow(criterion, taxonomy, outputs, y):
    """One sample of class y, level by level from the tree's own arrays."""
    parents, leaves = taxonomy.parents.tolist(), taxonomy.leaves.tolist()
    height, total, start = max(len(reference.path(parents, leaf)) for leaf in leaves), 0.0, 0
    for level, depth in enumerate(range(height, 0, -1)):
        ends = [reference_peers.cut(parents, leaf, depth) for leaf in leaves]
        nodes = leaves if depth == height else sorted(set(ends))
        if len(nodes) < 2:
            continue

        def apart(a, b, nodes=nodes):  # the height of the lowest common ancestor in the tree cut at this depth
            shared = [n for n in [0, *reference.path(parents, a)] if n in [0, *reference.path(parents, b)]][-1]
            own = len(reference.path(parents, shared))
            below = [n for n in nodes if shared in [0, *reference.path(parents, n)]]
            return max(len(reference.path(parents, n)) - own for n in below)

        costs = [[float(apart(a, b)) for b in nodes] for a in nodes]
        found = reference_peers.bilt_level(
            outputs[start : start + len(nodes)],
            nodes.index(ends[y]),
            costs,
            criterion.delta[level].tolist(),
            criterion.beta,
            criterion.eps,
            criterion.gamma,
            criterion.preset == "released",
        )
        total += math.exp(-criterion.alpha * (height - depth)) * found
        start += len(nodes)
    assert start == criterion.width
    return total


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_the_loss_is_the_loop(preset):
    criterion = learned(TREE, preset=preset, beta=0.7, eps=0.2, gamma=0.8, alpha=0.6)
    outputs, target = values(10, K, criterion.width), torch.arange(K)
    found = criterion(outputs, target)
    close(found.detach(), [slow(criterion, TREE, outputs[i].tolist(), i) for i in range(K)])


@given(taxonomy=taxonomies(max_leaves=9), seed=st.integers(0, 2**16))
@settings(max_examples=8, deadline=None)
def test_random_trees_are_the_loop(taxonomy, seed):
    criterion = learned(taxonomy, seed)
    if len(criterion.widths) != int(taxonomy.depth.max()):
        return  # a level of one node is left out, so that levels and depths are numbered differently
    outputs, y = values(seed, 1, criterion.width), int(positions(seed, criterion.num_classes, 1))
    close(criterion(outputs, torch.tensor([y])).detach(), [slow(criterion, taxonomy, outputs[0].tolist(), y)])


def test_class_probabilities_give_the_expected_loss():
    criterion = learned(TREE)
    outputs, soft = values(20, 5, criterion.width), probabilities(21, 5, K)
    of_class = torch.stack([criterion(outputs, torch.full((5,), y)) for y in range(K)], -1)
    close(criterion(outputs, soft).detach(), (soft * of_class).sum(-1).detach())


def test_without_corrections_the_scores_rank_as_crm_does():
    logits, costs = values(30, 40, K), torch.from_numpy(TREE.distance("height"))
    scores = cost_scores(logits, costs, torch.zeros_like(costs), beta=0.5)
    assert torch.equal(scores.argmax(-1), decide.least_cost(F.softmax(logits, -1), costs=TREE))
    close(scores, -F.softmax(logits, -1) @ costs)


def test_a_flat_tree_without_softening_is_two_cross_entropies():
    flat = Taxonomy.from_nested(["a", "b", "c"])
    criterion = learned(flat, eps=0.0, beta=0.0)
    outputs, target = values(40, 6, 3), positions(41, 3, 6)
    own = F.softmax(outputs, -1)  # with costs of 1 a score is p - 1
    expected = F.cross_entropy(outputs, target, reduction="none") + F.cross_entropy(own, target, reduction="none")
    close(criterion(outputs, target).detach(), expected)


def test_logits_may_be_shifted():
    criterion = learned(TREE)
    outputs, target = values(50, 6, criterion.width), positions(51, K, 6)
    shift = torch.cat([torch.full((w,), 3.0 * i + 2) for i, w in enumerate(criterion.widths)])
    close(criterion(outputs + shift, target).detach(), criterion(outputs, target).detach())


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_classes_and_nodes_by_another_name(preset):
    order, place = renamed(5, K)
    there = renumbered(TREE).reorder([TREE.classes[i] for i in order])
    here_names = [[TREE.names[i] for i in level.nodes] for level in levels_of(TREE)]
    there_names = [[there.names[i] for i in level.nodes] for level in levels_of(there)]
    columns = [[here.index(name) for name in found] for here, found in zip(here_names, there_names, strict=True)]
    ours, other = learned(TREE, preset=preset), learned(there, preset=preset)
    with torch.no_grad():
        for mine, moved, own in zip(ours.delta, other.delta, columns, strict=True):
            moved.copy_(mine[own][:, own])
    outputs, target = values(60, 7, ours.width), positions(61, K, 7)
    parts = zip(outputs.split(ours.widths, -1), columns, strict=True)
    moved_outputs = torch.cat([part[:, own] for part, own in parts], -1)
    close(other(moved_outputs, place[target]).detach(), ours(outputs, target).detach())
    close(other.scores(moved_outputs).detach(), ours.scores(outputs)[:, order].detach())


def test_gradients():
    costs, target = torch.from_numpy(TREE.distance("height")), positions(70, K, 4)
    targets = cost_targets(costs, eps=0.3, gamma=0.3)

    def total(logits, delta):
        terms = cost_terms(logits, target, costs, delta, targets, beta=0.5)
        return terms.hard + terms.cost

    check_gradient(total, values(71, 4, K), values(72, K, K))
    criterion = learned(TREE, preset="released", eps=0.0)
    check_gradient(lambda outputs: criterion(outputs, target), values(73, 4, criterion.width))


def test_the_diagonal_of_the_corrections_is_never_used():
    criterion = learned(TREE)
    outputs, target = values(80, 6, criterion.width), positions(81, K, 6)
    criterion(outputs, target).sum().backward()
    for delta in criterion.delta:
        assert not delta.grad.diagonal().any()
        assert delta.grad.any()


@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_level_reads_the_finer_logits_alone(batch_norm):
    head = BiLT(TREE, features=4, batch_norm=batch_norm).eval()
    outputs = head(torch.randn(2, 3, 4))
    assert outputs.shape == (2, 3, head.width)
    with torch.no_grad():
        head.head.weight.zero_()
        head.head.bias.copy_(torch.arange(K))
    first, second = head(torch.randn(2, 4))
    torch.testing.assert_close(first, second)  # nothing but the logits of the classes reaches the levels above
    assert any(isinstance(module, torch.nn.BatchNorm1d) for module in head.modules()) == batch_norm


def test_a_batch_of_one_sample_is_normalized_by_the_running_statistics():
    torch.manual_seed(0)
    head = BiLT(TREE, features=4)
    head(torch.randn(16, 4))
    before = {name: value.clone() for name, value in head.state_dict().items()}
    one = torch.randn(1, 4)
    trained = head(one)
    torch.testing.assert_close(trained, head.eval()(one))
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -1}, "beta: expected"),
        ({"eps": 2}, "eps: expected"),
        ({"gamma": -1}, "gamma: expected"),
        ({"alpha": -0.1}, "alpha: expected"),
        ({"preset": "best"}, "preset: expected one of 'paper', 'released', got 'best'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        BiLT(TREE, **options)
