"""Turn the scores of a run into answers: a class, by probability or by expected cost, or a node that is sure enough."""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from labelkin import decide
from labelkin._checks import InputError, check_choice
from labelkin.structure import Taxonomy

Rule = Literal["argmax", "crm", "fallback"]
RULES: tuple[Rule, ...] = get_args(Rule)
THRESHOLD = 0.5  # of a fallback: the answer is more probable than not


class Answers(NamedTuple):
    """Answers for n samples: (n,) nodes of the tree, and (n,) their probabilities, if there are any."""

    nodes: Tensor
    probabilities: Tensor | None


def check_rule(rule: str, *, threshold: float | None, costs: Tensor | None, named: bool) -> None:
    """Refuse an unknown rule, options of another rule, and a fallback to nodes without names.

    Args:
        rule: The rule.
        threshold: The threshold of the fallback, if one was given.
        costs: The costs of decisions, if they were given.
        named: Whether the inner nodes of the tree have names.
    """
    check_choice("decide", rule, RULES)
    if threshold is not None and rule != "fallback":
        raise InputError(
            f"threshold: applies to the rule 'fallback', got {rule!r}; leave it out, or choose 'fallback'."
        )
    if costs is not None and rule != "crm":
        raise InputError(f"costs: apply to the rule 'crm', got {rule!r}; leave them out, or choose 'crm'.")
    if rule == "fallback" and not named:
        raise InputError(
            "decide: 'fallback' answers with nodes of a taxonomy, but the tree of this run was built from its data and has no "
            "names; train with a taxonomy, or choose 'argmax' or 'crm'."
        )


def answers(
    scores: Tensor,
    probs: Tensor | None,
    taxonomy: Taxonomy,
    rule: Rule = "argmax",
    *,
    threshold: float | None = None,
    costs: Tensor | None = None,
) -> Answers:
    """Decide by a rule.

    Args:
        scores: (n, K) scores.
        probs: (n, K) calibrated probabilities. None if the scores are no probabilities; then only "argmax" applies.
        taxonomy: The tree over the classes.
        rule: "argmax", "crm" (least expected cost) or "fallback" (the deepest node that reaches the threshold).
        threshold: The least probability of an answer of "fallback"; 0.5 by default.
        costs: (K, K) costs by true class and answer, for "crm"; by default the distances in the tree.

    >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
    >>> probs = torch.tensor([[0.30, 0.28, 0.42]])
    >>> [tree.names[int(answers(probs.log(), probs, tree, rule).nodes)] for rule in RULES]
    ['car', 'cat', 'animal']
    """
    leaves = torch.from_numpy(taxonomy.leaves.copy())
    if probs is None and rule != "argmax":
        raise InputError(
            f"decide: {rule!r} needs probabilities, but the objective of this run defines none and too few samples were held "
            "out to calibrate its scores; choose 'argmax'."
        )
    if probs is None or not len(scores):
        return Answers(leaves[scores.argmax(-1)], None if probs is None else scores.new_zeros(0))
    if rule == "fallback":
        nodes_probs = decide.node_probs(probs, taxonomy)
        nodes = decide.fallback(nodes_probs, taxonomy, THRESHOLD if threshold is None else threshold)
        return Answers(nodes, nodes_probs.gather(-1, nodes.unsqueeze(-1)).squeeze(-1))
    best = scores.argmax(-1) if rule == "argmax" else decide.least_cost(probs, taxonomy if costs is None else costs)
    return Answers(leaves[best], probs.gather(-1, best.unsqueeze(-1)).squeeze(-1))
