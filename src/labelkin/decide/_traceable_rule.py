"""A decision rule as a module without branches on values, which `torch.export` and ONNX can trace."""

import torch
from torch import Tensor, nn

from labelkin.decide._answers import THRESHOLD, Answers, Rule, answer_nodes, probs_of
from labelkin.decide._fallback import deepest, ways_down
from labelkin.decide._least_cost import rounding_of, with_actions
from labelkin.decide._tree_sums import expected_distances, sums_below


class TraceableRule(nn.Module):
    """Decide as `Rule.answer` does, without checks of the probabilities.

    The sums over the tree are those of the other functions of this package. The only difference: among answers whose
    expected costs are equal up to rounding, this compares each with the least, and `least_cost` compares neighbors.

    Args:
        rule: The rule, with a taxonomy.
    """

    leaves: Tensor
    costs: Tensor | None
    least: Tensor | None

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        assert rule.taxonomy is not None
        self.name, self.tree, guarantee = rule.name, rule.taxonomy, rule.guarantee
        self.threshold = THRESHOLD if rule.threshold is None else float(rule.threshold)
        paid = self.tree if rule.costs is None else rule.costs
        self.rounding = rounding_of(paid, len(self.tree.leaves))
        self.step = 0 if guarantee is None else guarantee.step(self.tree)
        self.actions = len(rule.actions)
        self.register_buffer("leaves", answer_nodes(self.tree, self.actions))
        self.register_buffer("costs", None if rule.costs is None else rule.costs.double())
        self.register_buffer("least", None if guarantee is None else guarantee.least(self.tree))

    def forward(self, probs: Tensor) -> Answers:
        """Return the answers for (n, K) probabilities in float64."""
        if self.name == "fallback":
            below = sums_below(probs, self.tree).T
            nodes, walked = ways_down(below, self.tree)
            least: float | Tensor = self.threshold
            if self.least is not None:
                least = self.least[nodes[:, self.step]].unsqueeze(-1)
            answer = deepest(nodes, walked, least)
            return Answers(answer, probs_of(below, answer))
        best = probs.argmax(-1) if self.name == "argmax" else self._least_cost(probs)
        return Answers(self.leaves[best], probs_of(probs, best, self.actions))

    def _least_cost(self, probs: Tensor) -> Tensor:
        expected = expected_distances(probs, self.tree, "height") if self.costs is None else probs @ self.costs
        tied = expected <= expected.amin(-1, keepdim=True) + self.rounding
        return torch.where(tied, with_actions(probs, expected.shape[-1]), -1.0).argmax(-1)
