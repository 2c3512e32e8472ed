"""Least expected cost with one temperature per level of the tree."""

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count, check_number
from labelkin.decide._least_cost import first_of_ties
from labelkin.decide._temperature import Temperature
from labelkin.decide._validation import check_probs, check_target
from labelkin.structure import Taxonomy


@dataclass
class LevelTemperatures:
    """Calibrate the probabilities of each level of the tree with its own temperature, and decide by least expected cost.

    At level l, classes are merged into their ancestors at depth l (a class that is not as deep stands for itself), which have
    the probabilities `P_l`. Let `Q_l` be proportional to `P_l^(1 / T_l)`, with a temperature `T_l`. The expected cost of answer
    j is `sum_l (1 - Q_l(ancestor of j at depth l))`, the number of levels at which it is wrong, from 1 to the tree's depth.
    This is the distance `"depth"` of `Taxonomy.distance`, and `"height"` if all classes are equally deep.

    If all temperatures are 1, the decisions are those of `least_cost` with `distance="depth"`. A model may be overconfident
    between kin and not between groups, which a single temperature cannot repair; whether this helps depends on the model, so
    measure it on held-out samples.

    Args:
        values: The temperatures of the levels 1, 2, ... to the depth of the tree. None means that `fit` will find them.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> probs, target = torch.tensor([[0.70, 0.20, 0.10]]).repeat(8, 1), torch.tensor([0, 0, 0, 0, 1, 1, 1, 2])
        >>> levels = decide.LevelTemperatures().fit(probs, target, tree)  # sure enough of "animal", too sure of "cat"
        >>> [round(value, 2) for value in levels.values]
        [1.13, 1.87]
        >>> levels.least_cost(probs[:1], tree)
        tensor([0])
    """

    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for value in self.values or ():
            check_number("values", value, low=0, open_low=True)

    def fit(self, probs: Tensor, target: Tensor, taxonomy: Taxonomy) -> Self:
        """Find the temperature of each level with the least mean negative log-likelihood of the true ancestors.

        A level without a best temperature, such as one at which no sample is wrong, keeps temperature 1, with a warning.

        Args:
            probs: (n, K) probabilities of the classes on held-out samples.
            target: (n,) true class positions.
            taxonomy: The tree.

        Returns:
            The object itself.
        """
        check_probs("probs", probs, len(taxonomy.leaves))
        check_target("target", target, len(probs), len(taxonomy.leaves))
        found = []
        for depth, (log_probs, place) in enumerate(_levels(probs, taxonomy), start=1):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter(
                    "ignore"
                )  # other libraries, and files that they did not close, say nothing about the fit
                warnings.simplefilter("always", UserWarning)
                fitted = Temperature().fit(log_probs, place[target.long()]).value if log_probs.shape[-1] > 1 else 1.0
            assert fitted is not None
            if caught:
                warnings.warn(
                    f"LevelTemperatures: depth {depth} of the tree has no best temperature and keeps 1; at this depth all "
                    "samples are right, or the probabilities do not depend on the true class.",
                    stacklevel=2,
                )
            found.append(1.0 if caught else fitted)
        self.values = tuple(found)
        return self

    def expected_costs(self, probs: Tensor, taxonomy: Taxonomy) -> Tensor:
        """Return the expected cost of each class as the answer, in float64.

        Args:
            probs: (n, K) probabilities of the classes.
            taxonomy: The tree.

        Returns:
            (n, K) expected numbers of levels at which the answer is wrong; lower is better.
        """
        check_probs("probs", probs, len(taxonomy.leaves))
        levels = _levels(probs, taxonomy)
        if self.values is None:
            raise InputError(
                "LevelTemperatures: it has no values yet; call fit(probs, target, taxonomy) on held-out samples first."
            )
        if len(self.values) != len(levels):
            raise InputError(
                f"values: expected {len(levels)} temperatures, one per level of the tree, got {len(self.values)}."
            )
        total = torch.zeros_like(probs, dtype=torch.float64)
        for value, (log_probs, place) in zip(self.values, levels, strict=True):
            total += 1 - (log_probs / value).softmax(-1)[:, place]
        return total

    def least_cost(self, probs: Tensor, taxonomy: Taxonomy, *, k: int | None = None) -> Tensor:
        """Return the class with the least expected cost, with the rule of `decide.least_cost` for ties.

        Args:
            probs: (n, K) probabilities of the classes.
            taxonomy: The tree.
            k: The number of classes to return for each sample, best first. None returns one, without an axis for it.

        Returns:
            (n,) class positions, or (n, k).
        """
        expected = self.expected_costs(probs, taxonomy)
        count = 1 if k is None else k
        check_count("k", count)
        if count > expected.shape[-1]:
            raise InputError(f"k: expected at most {expected.shape[-1]}, the number of classes, got {k}.")
        levels = int(taxonomy.depth.max())
        rounding = 8 * levels * (expected.shape[-1] + 4) * float(torch.finfo(torch.float64).eps)
        order = first_of_ties(expected, probs, rounding, count)
        return order[:, 0] if k is None else order


def _levels(probs: Tensor, taxonomy: Taxonomy) -> list[tuple[Tensor, Tensor]]:
    """Return for each depth from 1 the log-probabilities of its nodes (n, M), and the column of each class (K,)."""
    found = []
    for depth in range(1, int(taxonomy.depth.max()) + 1):
        nodes, columns = np.unique(taxonomy.level(depth), return_inverse=True)
        place = torch.from_numpy(columns.reshape(-1)).to(probs.device)
        merged = torch.zeros(len(probs), len(nodes), dtype=torch.float64, device=probs.device)
        merged.index_add_(1, place, probs.double())
        found.append((merged.clamp_min(torch.finfo(torch.float64).tiny).log(), place))
    return found
