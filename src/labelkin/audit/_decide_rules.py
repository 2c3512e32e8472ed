"""The decision rule for a file of scores: its temperature and guarantee from labeled samples, and its answers."""

import warnings
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from labelkin import decide
from labelkin._checks import InputError
from labelkin.audit._predictions import Predictions
from labelkin.structure import Taxonomy

RuleName = Literal["crm", "argmax", "fallback"]
RULES: tuple[RuleName, ...] = ("crm", "argmax", "fallback")
By = Literal["all", "predicted", "true"]


class Answers(NamedTuple):
    """The answers for some samples.

    Attributes:
        nodes: (n,) indices of nodes; class positions without a taxonomy.
        names: Their names.
        probs: Their probabilities.
    """

    nodes: Tensor
    names: list[str]
    probs: list[float]


class Rule(NamedTuple):
    """A decision rule that is ready for new samples.

    Attributes:
        name: The rule.
        classes: The class names.
        tree: The taxonomy over the classes, if there is one.
        costs: (K, K) costs, if there are any; then they and not the taxonomy decide with "crm".
        temperature: What logits are divided by.
        threshold: The threshold of "fallback" without a guarantee.
        safe: The guarantee of "fallback", if there is one.
        calibration: (m, K) probabilities of the samples that the guarantee or the temperature was fitted on.
    """

    name: RuleName
    classes: tuple[str, ...]
    tree: Taxonomy | None
    costs: Tensor | None
    temperature: float = 1.0
    threshold: float | None = None
    safe: decide.GuaranteedFallback | None = None
    calibration: Tensor | None = None

    def fitted(
        self, labeled: Predictions, *, temperature: float | None, coverage: float | None, by: By, seed: int
    ) -> "Rule":
        """Return the rule with temperature and guarantee from labeled samples, each from its own random half.

        A given temperature leaves all samples for the guarantee; without a guarantee, the temperature gets all.
        """
        assert labeled.logits is not None
        everything = torch.arange(len(labeled.target))
        first, second = everything, everything
        if temperature is None and coverage is not None:
            first, second = decide.split_halves(len(everything), seed)
        value = temperature
        if value is None:
            value = decide.Temperature().fit(labeled.logits[first], labeled.target[first]).value
            assert value is not None
        probs = scaled(labeled, value)[second]
        ready = self._replace(temperature=value, calibration=probs)
        if coverage is None:
            return ready
        assert self.tree is not None
        safe = decide.GuaranteedFallback(1 - coverage, by)
        safe.fit(decide.node_probs(probs, self.tree), labeled.target[second], self.tree)
        return ready._replace(safe=safe)

    def answer(self, probs: Tensor) -> Answers:
        """Return the answers for (n, K) calibrated probabilities."""
        if self.name == "fallback":
            assert self.tree is not None
            below = decide.node_probs(probs, self.tree)
            if self.safe is not None:
                nodes = self.safe.apply(below, self.tree)
            else:
                assert self.threshold is not None
                nodes = decide.fallback(below, self.tree, self.threshold)
            return self._answers(nodes, below, self.tree.names)
        if self.name == "argmax":
            found = decide.argmax(probs)
        else:
            costs = self.tree if self.costs is None else self.costs
            assert costs is not None
            found = decide.least_cost(probs, costs)
        answers = self._answers(found, probs, self.classes)
        if self.tree is None:
            return answers
        return answers._replace(nodes=torch.from_numpy(self.tree.leaves.copy())[found])

    @staticmethod
    def _answers(positions: Tensor, probs: Tensor, names: tuple[str, ...]) -> Answers:
        chosen = probs.gather(1, positions.unsqueeze(1)).squeeze(1)
        return Answers(positions, [names[at] for at in positions.tolist()], chosen.tolist())


def scaled(given: Predictions, temperature: float) -> Tensor:
    """Return (n, K) probabilities of labeled samples at a temperature."""
    scores = given.logits if given.kind == "logits" else given.probs
    assert scores is not None
    return scaled_scores(scores, is_logits=given.kind == "logits", temperature=temperature)


def scaled_scores(scores: Tensor, *, is_logits: bool, temperature: float) -> Tensor:
    """Return (n, K) probabilities at a temperature; a probability of 0 stays 0, so rows do not depend on each other."""
    if not is_logits and temperature == 1:
        return scores
    return ((scores if is_logits else scores.log()) / temperature).softmax(-1)


def warn_of_shift(rule: Rule, sample: Tensor) -> bool:
    """Warn if a sample of the new probabilities differs from the calibration samples; return whether it does."""
    least = 10
    if rule.calibration is None or min(len(sample), len(rule.calibration)) < least:
        return False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = decide.check_shift(rule.calibration, sample, classes=rule.classes)
    for warning in caught:
        warnings.warn(str(warning.message), stacklevel=3)
    return found.shifted


def choose_rule(
    chosen: str | None, *, tree: bool, costs: bool, coverage: float | None, threshold: float | None, labeled: bool
) -> RuleName:
    """Return the rule, and refuse options that contradict it or each other."""
    fallback = coverage is not None or threshold is not None
    rule = chosen if chosen is not None else "fallback" if fallback else "crm"
    if rule not in RULES:
        raise InputError(f"rule: expected one of {', '.join(repr(name) for name in RULES)}, got {rule!r}.")
    if rule != "fallback" and fallback:
        given = "coverage" if coverage is not None else "threshold"
        raise InputError(f"{given}: only the rule 'fallback' has a {given}, not {rule!r}; pass --rule fallback.")
    if rule == "fallback" and not tree:
        raise InputError("taxonomy: the rule 'fallback' answers with nodes of a tree; pass --taxonomy.")
    if rule == "fallback" and (coverage is None) == (threshold is None):
        raise InputError(
            "coverage: the rule 'fallback' needs either a coverage, such as --coverage 0.95 with --labeled FILE, or a "
            "--threshold."
        )
    if coverage is not None and not labeled:
        raise InputError(
            "labeled: a coverage needs samples with true classes that the model was not trained on; pass --labeled FILE."
        )
    if rule == "crm" and not (tree or costs):
        raise InputError("taxonomy: the rule 'crm' needs costs; pass --taxonomy or --costs, or --rule argmax.")
    return next(name for name in RULES if name == rule)
