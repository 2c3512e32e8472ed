"""Soft labels from a tree against the loop, known cases, and what they are not."""

import pytest
import torch
import torch.nn.functional as F

from labelkin import InputError, SemanticSmoothing, Taxonomy, TreeSoftLabels, relations
from support import reference, reference_peers
from support.numeric import GAP, check_alive, check_gradient, close, each, each_soft, positions, probabilities, values
from support.worlds import default_dtype

TREE = Taxonomy.from_paths(["a/b/x", "a/b/y", "a/z", "c/u", "c/v", "w"])
K = len(TREE.leaves)


def criterion(**options):
    with default_dtype(torch.float64):
        return TreeSoftLabels(TREE, reduction="none", **options)


@pytest.mark.parametrize("beta", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("distance", ["height", "depth", "edges", "semantic"])
def test_the_loss_is_the_loop(beta, distance):
    apart = TREE.distance(distance).tolist()

    def slow(logits, y):
        return reference.soft_cross_entropy(logits, reference_peers.tree_soft_labels(apart, y, beta))

    logits, target, soft = values(0, 9, K), positions(1, K, 9), probabilities(2, 9, K)
    objective = criterion(beta=beta, distance=distance)
    close(objective(logits, target), each(slow, logits, target))
    close(objective(logits, soft), each_soft(slow, logits, soft))


def test_a_large_beta_is_cross_entropy_and_a_small_one_is_uniform():
    logits, target = values(3, 7, K), positions(4, K, 7)
    close(criterion(beta=500.0)(logits, target), F.cross_entropy(logits, target, reduction="none"))
    close(criterion(beta=1e-12)(logits, target), -F.log_softmax(logits, -1).mean(-1))


def test_it_is_semantic_smoothing_to_the_same_targets_and_not_to_the_same_relation():
    logits, target = values(5, 7, K), positions(6, K, 7)
    given = relations.tree_targets(TREE, beta=6.0)
    with default_dtype(torch.float64):
        same = SemanticSmoothing(K, targets=given, reduction="none")
        other = SemanticSmoothing(K, relation=relations.tree(TREE, beta=6.0), reduction="none")
    ours = criterion(beta=6.0)(logits, target)
    close(ours, same(logits, target))
    assert not torch.allclose(ours, other(logits, target), atol=1e-3)


def test_logits_may_be_shifted_and_the_gradient_lives_far_away():
    logits, target = values(7, 5, K), positions(8, K, 5)
    objective = criterion()
    close(objective(logits + 40, target), objective(logits, target))
    check_gradient(lambda x: objective(x, target), logits)
    far = torch.zeros(1, K, dtype=torch.float64)
    far[0, 2] = -GAP
    check_alive(lambda x: objective(x, torch.tensor([2])), far, 2)


def test_probabilities_of_nodes_are_sums_over_their_classes():
    objective = criterion()
    logits = values(9, 4, K)
    found = objective.node_log_probs(logits).exp()
    probs = F.softmax(logits, -1)
    close(found[:, TREE.node("a") - 1], probs[:, :3].sum(-1))
    close(found[:, TREE.leaves - 1], probs)


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="beta: expected"):
        TreeSoftLabels(TREE, beta=0)
    with pytest.raises(InputError, match="distance: expected one of"):
        TreeSoftLabels(TREE, distance="miles")
    with pytest.raises(InputError, match=r"taxonomy: expected a labelkin.Taxonomy, got int"):
        TreeSoftLabels(3)
