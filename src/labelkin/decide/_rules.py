"""Comparison of two decision rules on the same samples: argmax and least expected cost (CRM)."""

from dataclasses import dataclass
from math import nan

import numpy as np
import torch
from torch import Tensor

from labelkin._arrays import ranked
from labelkin._checks import InputError, check_count
from labelkin.decide._least_cost import as_matrix, least_cost_top_k
from labelkin.decide._validation import check_probs, check_target
from labelkin.structure import DistanceKind, Taxonomy


@dataclass(frozen=True, eq=False)
class Decided:
    """The answers of a rule for n samples, and their outcome.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> rules = decide.compare_rules(torch.tensor([[0.30, 0.28, 0.42]]), torch.tensor([1]), tree)
        >>> rules.after.answer, rules.after.accuracy
        (tensor([0]), 0.0)
    """

    classes: Tensor  # (n, k) the best classes, and actions from K on, with the answer first
    right: Tensor  # (n,) whether the answer is the true class; never for an action
    distances: Tensor | None  # (n, k) distances from the true class, NaN for an action; None without a tree
    costs: Tensor | None  # (n,) costs of the answers; None without a matrix of costs

    @property
    def answer(self) -> Tensor:
        """(n,) the answers."""
        return self.classes[:, 0]

    @property
    def accuracy(self) -> float:
        """The share of right answers; an action is none."""
        return float(self.right.double().mean())

    @property
    def severity(self) -> float:
        """The mean distance of wrong answers that are classes; NaN without any or without a tree."""
        if self.distances is None:
            return nan
        wrong = self.distances[~self.right, 0]
        return float(wrong[~wrong.isnan()].mean())

    @property
    def average_distance(self) -> float:
        """The mean distance of the `k` best classes; NaN without a tree, or if an action is among them."""
        return nan if self.distances is None else float(self.distances.mean())


@dataclass(frozen=True, eq=False)
class Rules:
    """The outcomes of both rules on the same samples.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> rules = decide.compare_rules(torch.tensor([[0.30, 0.28, 0.42]]), torch.tensor([1]), tree)
        >>> rules.before.answer, rules.after.answer
        (tensor([2]), tensor([0]))
    """

    before: Decided  # the most probable class
    after: Decided  # the answer with the least expected cost


def compare_rules(
    probs: Tensor,
    target: Tensor,
    taxonomy: Taxonomy | None = None,
    *,
    costs: Tensor | None = None,
    k: int = 1,
    distance: DistanceKind = "height",
) -> Rules:
    """Decide samples by `argmax` and by `least_cost`, and return the outcomes of both.

    Args:
        probs: (n, K) probabilities of the classes.
        target: (n,) true class positions.
        taxonomy: The tree in which distances are measured. Its distances are the costs unless `costs` is given.
        costs: (K, A) costs by true class (row) and answer (column); see `least_cost`.
        k: The number of best answers to rank, at most K.
        distance: The kind of distance in the tree; see `Taxonomy.distance`.

    Returns:
        The outcomes as `Rules`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> rules = decide.compare_rules(torch.tensor([[0.30, 0.28, 0.42]]), torch.tensor([1]), tree)
        >>> rules.before.severity, rules.after.severity
        (2.0, 1.0)
    """
    by = taxonomy if costs is None else costs
    if by is None:
        raise InputError("taxonomy: expected a labelkin.Taxonomy or a matrix of costs, got neither.")
    check_probs("probs", probs, None if taxonomy is None else len(taxonomy.leaves))
    check_target("target", target, len(probs), probs.shape[-1])
    check_count("k", k)
    if k > probs.shape[-1]:
        raise InputError(f"k: expected at most {probs.shape[-1]}, the number of classes, got {k}.")
    pair = (ranked(probs, k), least_cost_top_k(probs, by, k, distance=distance))
    before, after = (_decided(classes, target, taxonomy, costs, distance) for classes in pair)
    return Rules(before, after)


def _decided(
    classes: Tensor, target: Tensor, taxonomy: Taxonomy | None, costs: Tensor | None, distance: DistanceKind
) -> Decided:
    answer, distances = classes[:, 0], None
    if taxonomy is not None:
        positions, size = classes.cpu().numpy(), len(taxonomy.leaves)
        found = np.asarray(taxonomy.distance(distance, target.cpu().numpy()[:, None], positions.clip(max=size - 1)))
        if (actions := positions >= size).any():
            found = np.where(actions, nan, found)
        distances = torch.from_numpy(found).to(classes.device)
    paid = None if costs is None else as_matrix(costs).to(classes.device)[target.long(), answer]
    return Decided(classes, answer == target, distances, paid)
