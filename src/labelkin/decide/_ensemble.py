"""Hierarchical ensembles (HiE): class probabilities corrected by a classifier of the parents."""

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, counted
from labelkin.decide._validation import check_probs
from labelkin.structure import Taxonomy


def hierarchical_ensemble(probs: Tensor, parent_probs: Tensor, taxonomy: Taxonomy) -> Tensor:
    """Multiply the probability of each class by that of its parent, from another classifier, and normalize.

    HiE (Jain et al., Test-Time Amendment with a Coarse Classifier for Fine-Grained Classification, 2023): `p'(y)` is
    proportional to `p(y) a(parent of y)`. The coarse classifier `a`, a second network or a separate head, makes fewer
    mistakes between distant classes. Decide with the result by any rule, such as `least_cost`. If all parents have the same
    probability, nothing changes.

    Args:
        probs: (n, K) probabilities of the classes.
        parent_probs: (n, P) probabilities of the parents of classes, in the order of their indices:
            `numpy.unique(taxonomy.parents[taxonomy.leaves])`. A parent counts only the classes directly below it.
        taxonomy: The tree.

    Returns:
        (n, K) probabilities. A sample for which the two classifiers contradict each other (every product is 0) keeps its
        `probs`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> decide.hierarchical_ensemble(torch.tensor([[0.30, 0.20, 0.50]]), torch.tensor([[0.75, 0.25]]), tree)
        tensor([[0.4500, 0.3000, 0.2500]])
    """
    check_probs("probs", probs, len(taxonomy.leaves))
    parents, columns = np.unique(taxonomy.parents[taxonomy.leaves], return_inverse=True)
    if len(parents) == 1:  # a flat tree: its one parent is certain
        return probs
    check_probs("parent_probs", parent_probs, len(parents))
    if len(parent_probs) != len(probs):
        raise InputError(
            f"parent_probs: expected {counted(len(probs), 'sample')}, as in probs, got {len(parent_probs)}."
        )
    place = torch.from_numpy(columns.reshape(-1)).to(probs.device)
    product = probs.double() * parent_probs.to(probs.device).double()[:, place]
    total = product.sum(-1, keepdim=True)
    return torch.where(total > 0, product / total, probs.double()).to(probs.dtype)
