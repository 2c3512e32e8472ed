"""HXE beside its form in probability space, as Bertinetto et al. define and release it."""

import numpy as np
import pytest
import torch

from labelkin.functional import hierarchical_cross_entropy, tree_index
from labelkin.structure import Taxonomy
from support.numeric import GAP, close, gradient, positions, values
from support.trees import random_taxonomy

TREE = Taxonomy.from_nested({"animal": {"pet": ["cat", "dog"], "wild": ["deer"]}, "machine": ["car", "ship"]})


def in_probabilities(logits, target, taxonomy, alpha, normalize=False):
    """Leaf probabilities, summed up the tree, divided edge by edge, and only then their logarithms.

    `-sum lambda(C) log(p(C) / p(parent of C))` over the nodes C from the leaf up, `lambda = exp(-alpha depth(C))`. A node
    whose probability is exactly 0 has no logarithm: such edges are left out, which is how the released code avoids NaN.
    """
    p = torch.softmax(logits, -1)
    weight = [np.exp(-alpha * len(taxonomy.ancestors(node)[1:])) for node in range(len(taxonomy))]
    scale = sum(weight) if normalize else 1.0
    losses = []
    for row, k in zip(p, target.tolist(), strict=True):
        mass = [
            sum(row[c] for c, leaf in enumerate(taxonomy.leaves.tolist()) if node in taxonomy.ancestors(leaf))
            for node in range(len(taxonomy))
        ]
        total = row.sum() * 0
        for node in taxonomy.ancestors(int(taxonomy.leaves[k]))[1:].tolist():
            if mass[node] > 0:
                total = total - weight[node] / scale * torch.log(mass[node] / mass[taxonomy.parents[node]])
        losses.append(total)
    return torch.stack(losses)


@pytest.mark.long
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["unbalanced", "single-child", "scattered"])
def test_hxe_is_the_probability_form_where_that_can_be_computed(kind, alpha, normalize):
    taxonomy = random_taxonomy(np.random.default_rng(3), 7, kind)
    index = tree_index(taxonomy)
    logits, target = values(0, 4, 7), positions(1, 7, 4)

    def ours(x):
        return hierarchical_cross_entropy(x, index.leaves[target], index, alpha=alpha, normalize=normalize)

    def theirs(x):
        return in_probabilities(x, target, taxonomy, alpha, normalize)

    close(ours(logits), theirs(logits))
    close(gradient(ours, logits), gradient(theirs, logits))


def test_at_a_gap_of_200_only_log_space_still_learns():
    """In single precision the probabilities of both pets are 0: the other form sees neither loss nor slope."""
    index = tree_index(TREE)
    logits = torch.zeros(1, len(TREE.leaves))
    pets = [TREE.classes.index(name) for name in ("cat", "dog", "deer")]
    logits[0, pets] = -GAP
    target = torch.tensor([pets[0]])

    def ours(x):
        return hierarchical_cross_entropy(x, index.leaves[target], index, alpha=0.5)

    def theirs(x):
        return in_probabilities(x, target, TREE, 0.5)

    assert theirs(logits) == 0
    assert (gradient(theirs, logits) == 0).all()
    assert ours(logits) > GAP / 2
    grad = gradient(ours, logits)
    assert torch.isfinite(grad).all()
    assert (grad[0, pets[0]] < 0).all()
    close(grad.double(), gradient(theirs, logits.double()), atol=1e-6)  # double precision still reaches this far
