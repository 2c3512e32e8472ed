"""Expected costs of two answers under the probabilities of a model: means, squares and product over the true class.

Costly mistakes may be too rare to occur among a few hundred samples. Then the observed costs vary too little, and an interval
that follows from them alone is too narrow. The expected moments count mistakes that did not occur as well.
"""

import numpy as np
import torch
from torch import Tensor

from labelkin.decide import node_probs
from labelkin.structure import Taxonomy


def expected_moments(
    probs: Tensor, before: Tensor, after: Tensor, tree: Taxonomy | None, costs: Tensor | None
) -> Tensor:
    """Return expectations (5, m): the cost before, the cost after, the square of the first, their product, the other square.

    Args:
        probs: (m, K) probabilities of the true class.
        before: (m,) answers.
        after: (m,) other answers.
        tree: The tree whose heights are the costs without `costs`.
        costs: (K, A) costs by true class and answer.
    """
    probs = probs.double()
    if costs is None:
        assert tree is not None
        mean, square = _of_height(probs, before, tree)
    else:
        paid = _paid(before, tree, costs)
        mean, square = (probs * paid).sum(-1), (probs * paid * paid).sum(-1)
    moments = torch.stack([mean, mean, square, square, square])
    changed = (before != after).nonzero().flatten()
    one, other = (_paid(answer[changed], tree, costs) for answer in (before, after))
    products = (one, other, one * one, one * other, other * other)
    moments[:, changed] = torch.stack([(probs[changed] * product).sum(-1) for product in products])
    return moments


def _paid(answer: Tensor, tree: Taxonomy | None, costs: Tensor | None) -> Tensor:
    """Return the costs (m, K) of answers for each true class."""
    if costs is not None:
        return costs.double().T[answer]
    assert tree is not None
    every = np.arange(len(tree.leaves))
    return torch.from_numpy(np.asarray(tree.distance("height", answer.numpy()[:, None], every), dtype=np.float64))


def _of_height(probs: Tensor, answer: Tensor, tree: Taxonomy) -> tuple[Tensor, Tensor]:
    """Return the expected height (m,) of the lowest common ancestor of an answer and the true class, and that of its square.

    The ancestor is a node on the path to the answer with the probability of this node less that of the next one on the path.
    """
    path = tree.paths[tree.leaves[answer.numpy()]]
    nodes, on_path = torch.from_numpy(np.maximum(path, 0)), torch.from_numpy(path >= 0)
    shared = node_probs(probs, tree).gather(1, nodes) * on_path
    shared[:, :-1] -= shared[:, 1:].clone()
    heights = torch.from_numpy(tree.height.astype(np.float64))[nodes] * on_path
    return (shared * heights).sum(-1), (shared * heights * heights).sum(-1)
