"""A decision rule as one object: a class or an action by probability or expected cost, or a probable enough node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_names, check_number, counted
from labelkin.decide._class_shares import checked_shares, reweighted, share_ratios
from labelkin.decide._fallback import fallback
from labelkin.decide._guarantee import GuaranteedFallback, GuaranteeKind
from labelkin.decide._halves import split_halves
from labelkin.decide._least_cost import argmax, least_cost
from labelkin.decide._rule_options import RULES, RuleName, check_enough, choose_rule
from labelkin.decide._temperature import Temperature
from labelkin.decide._tree_sums import node_probs
from labelkin.decide._validation import check_probs
from labelkin.structure import Taxonomy

THRESHOLD = 0.5  # of a fallback: the answer is more probable than not


class Answers(NamedTuple):
    """The answers for n samples.

    Args:
        nodes: (n,) indices of nodes of the tree; class positions if the rule has no tree. The indices after the last of them
            are actions, in their order.
        probs: (n,) probabilities of the answers. NaN for an action, which is no statement about the true class.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> decide.Rule("argmax").answer(torch.tensor([[0.25, 0.75]])).probs
        tensor([0.7500])
    """

    nodes: Tensor
    probs: Tensor


@dataclass(frozen=True, eq=False)
class Rule:
    """A decision rule that is ready for new samples.

    Args:
        name: `"argmax"` for the most probable class, `"crm"` for the answer of least expected cost, or `"fallback"` for the
            most specific node of the tree that is probable enough.
        taxonomy: The tree over the classes. `"crm"` needs it or `costs`, and `"fallback"` needs it.
        costs: (K, A) costs by true class (row) and answer (column), for `"crm"`; by default the distances in the tree. The
            columns after the classes are actions.
        threshold: The minimum probability of an answer of `"fallback"`; 0.5 by default.
        guarantee: A fitted `GuaranteedFallback`, whose thresholds replace `threshold`.
        temperature: The number that logits were divided by to get the probabilities. `fitted` records it; `answer` does not use
            it.
        actions: The names of the actions, such as "ask a person".
        share_ratios: (K,) the share of each class in the samples to decide, divided by the share that the probabilities stand
            for. `fitted` records them; `answer` does not use them, but takes the result of `adjusted`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> probs = torch.tensor([[0.30, 0.28, 0.42]])
        >>> [tree.names[int(decide.Rule(name, tree).answer(probs).nodes)] for name in ("argmax", "crm", "fallback")]
        ['car', 'cat', 'animal']
    """

    name: RuleName = "crm"
    taxonomy: Taxonomy | None = None
    costs: Tensor | None = None
    threshold: float | None = None
    guarantee: GuaranteedFallback | None = None
    temperature: float = 1.0
    actions: tuple[str, ...] = ()
    share_ratios: Tensor | None = None

    def __post_init__(self) -> None:
        check_choice("name", self.name, RULES)
        if self.taxonomy is None and (self.name == "fallback" or (self.name == "crm" and self.costs is None)):
            raise InputError(f"taxonomy: the rule {self.name!r} needs a tree over the classes, got None; pass one.")
        if self.threshold is not None:
            check_number("threshold", self.threshold, low=0, high=1)
        self._check_actions()

    def _check_actions(self) -> None:
        extra = 0 if self.costs is None or self.costs.ndim != 2 else max(0, self.costs.shape[1] - len(self.costs))
        if len(self.actions) != extra:
            raise InputError(
                f"actions: expected {counted(extra, 'name')}, one for each column of `costs` after the classes, got "
                f"{len(self.actions)}."
            )
        if extra:
            check_names("actions", self.actions)
        nodes = () if self.taxonomy is None else self.taxonomy.names
        taken = [name for name in self.actions if name in nodes]
        if taken:
            raise InputError(f"actions: {taken[0]!r} is a node of the tree as well; give the action another name.")

    def adjusted(self, probs: Tensor) -> Tensor:
        """Return probabilities for the class shares of the samples to decide; see `adjust_shares`.

        Args:
            probs: (n, K) calibrated probabilities of the classes.

        Returns:
            (n, K) probabilities; those given if the rule has no share ratios.
        """
        return probs if self.share_ratios is None else reweighted(probs, self.share_ratios)

    def answer(self, probs: Tensor) -> Answers:
        """Decide samples.

        Args:
            probs: (n, K) calibrated probabilities of the classes, for the class shares of these samples.

        Returns:
            The answers with their probabilities.
        """
        check_probs("probs", probs, None if self.taxonomy is None else len(self.taxonomy.leaves))
        if self.name == "fallback":
            assert self.taxonomy is not None
            below = node_probs(probs, self.taxonomy)
            if self.guarantee is not None:
                nodes = self.guarantee.apply(below, self.taxonomy)
            else:
                nodes = fallback(below, self.taxonomy, THRESHOLD if self.threshold is None else self.threshold)
            return Answers(nodes, probs_of(below, nodes))
        best = argmax(probs) if self.name == "argmax" else least_cost(probs, self._paid())
        return Answers(class_nodes(best, self.taxonomy, len(self.actions)), probs_of(probs, best, len(self.actions)))

    def fitted(
        self,
        logits: Tensor,
        target: Tensor,
        *,
        coverage: float | None = None,
        confidence: float | None = None,
        temperature: float | None = None,
        by: GuaranteeKind = "all",
        shares: Tensor | None = None,
        prior: float | None = None,
        seed: int = 0,
        scaled: Callable[[float], Tensor] | None = None,
    ) -> "FittedRule":
        """Fit a temperature and a guarantee on labeled samples, each on its own random half.

        A given temperature leaves all samples for the guarantee. Without a guarantee, the temperature gets all.

        Args:
            logits: (n, K) logits of samples that the model was not trained on.
            target: (n,) true class positions.
            coverage: With `"fallback"`, the minimum probability that an answer is right or the root, such as 0.95. None for no
                guarantee.
            confidence: The least probability that these samples give that coverage; see `GuaranteedFallback`.
            temperature: A known temperature. None fits one.
            by: The scope of the guarantee; see `GuaranteedFallback`.
            shares: (K,) shares or counts of the classes in the samples to decide, if they differ from those of these samples.
                The mean probabilities of these samples are the shares that they are divided by.
            prior: The prior of the temperature; see `Temperature.fit`.
            seed: The seed of the random halves.
            scaled: Returns the (n, K) probabilities at a temperature, for scores that are not logits. By default the softmax of
                the logits divided by it.

        Returns:
            The rule with what was fitted, and the probabilities of the samples that were used last.
        """
        if coverage is not None and self.name != "fallback":
            raise InputError(f"coverage: applies to the rule 'fallback', got {self.name!r}; leave it out.")
        choose_rule(self.name, default="crm", coverage=coverage, threshold=None, confidence=confidence)
        new = None if shares is None else checked_shares("shares", shares, logits.shape[-1])
        first = second = torch.arange(len(target))
        if temperature is None and coverage is not None:
            check_enough(len(target) - len(target) // 2, coverage, confidence)
            first, second = split_halves(len(target), seed)
        elif coverage is not None:
            check_enough(len(target), coverage, confidence)
        value = temperature
        if value is None:
            value = Temperature().fit(logits[first], target[first], prior=prior).value
            assert value is not None
        every = (logits.double() / value).softmax(-1) if scaled is None else scaled(value)
        probs = every[second]
        ratios = None if new is None else share_ratios(new, every[first].double().mean(0), logits.shape[-1])
        ready = replace(self, temperature=value, share_ratios=ratios)
        if coverage is None:
            return FittedRule(ready, probs)
        assert self.taxonomy is not None
        guarantee = GuaranteedFallback(1 - coverage, by, confidence=confidence)
        below = node_probs(ready.adjusted(probs), self.taxonomy)
        guarantee.fit(below, target[second], self.taxonomy, share_ratios=ratios)
        return FittedRule(replace(ready, guarantee=guarantee), probs)

    def kinds(self, nodes: Tensor) -> list[str]:
        """Return the kind of each answer.

        Args:
            nodes: (n,) answers of this rule.

        Returns:
            "class", "ancestor" for an inner node below the root, "none" for the root, which means "no answer", or "action" for
            an answer that is not a class.
        """
        of_class, ancestor, none, action = range(len(ANSWER_KINDS))
        if self.taxonomy is not None:
            kinds = np.where(self.taxonomy.is_leaf, of_class, ancestor)
            kinds[0] = none
        elif self.actions:
            assert self.costs is not None
            kinds = np.full(len(self.costs), of_class)
        else:
            return ["class"] * len(nodes)
        kinds = np.append(kinds, np.full(len(self.actions), action))
        return [ANSWER_KINDS[at] for at in kinds[nodes.cpu().numpy()].tolist()]

    def names(self, nodes: Tensor, classes: Sequence[str] = ()) -> list[str]:
        """Return the name of each answer.

        Args:
            nodes: (n,) answers of this rule.
            classes: The names of the classes; not needed if the rule has a tree.

        Returns:
            Names of nodes of the tree, or of classes without one, and of actions.
        """
        known = [*(classes if self.taxonomy is None else self.taxonomy.names), *self.actions]
        return [known[at] for at in nodes.tolist()]

    def _paid(self) -> Tensor | Taxonomy:
        paid = self.taxonomy if self.costs is None else self.costs
        assert paid is not None
        return paid


ANSWER_KINDS = ("class", "ancestor", "none", "action")


class FittedRule(NamedTuple):
    """A rule with its temperature and guarantee, and the probabilities of the samples that they were last fitted on.

    Args:
        rule: The rule.
        probs: (m, K) probabilities before `Rule.adjusted`; compare those of new samples with them by `check_shift`.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> logits, target = torch.tensor([[2.0, 1.0, 0.0]]).repeat(40, 1), torch.arange(40) % 3 % 2
        >>> fitted = decide.Rule("fallback", tree).fitted(logits, target, coverage=0.9)
        >>> fitted.rule.answer(fitted.probs).nodes[0]
        tensor(1)
    """

    rule: Rule
    probs: Tensor


def class_nodes(positions: Tensor, taxonomy: Taxonomy | None, actions: int = 0) -> Tensor:
    """Return the nodes (n,) of class positions, and indices after the last node for actions; without a tree, the positions."""
    return positions if taxonomy is None else answer_nodes(taxonomy, actions).to(positions.device)[positions]


def answer_nodes(taxonomy: Taxonomy, actions: int) -> Tensor:
    """Return the indices (A,) of the classes among the nodes, and those of the actions after the last node."""
    return torch.cat([torch.from_numpy(taxonomy.leaves.copy()), len(taxonomy) + torch.arange(actions)])


def probs_of(probs: Tensor, places: Tensor, actions: int = 0) -> Tensor:
    """Return the probabilities (n,) of nodes or classes; NaN for the actions after them."""
    known = F.pad(probs, (0, actions), value=nan) if actions else probs
    return known.gather(-1, places.unsqueeze(-1)).squeeze(-1)
