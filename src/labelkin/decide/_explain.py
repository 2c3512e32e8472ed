"""Reasons for an answer: the probabilities along the path to it, or for an action its expected cost."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import check_choice
from labelkin.decide._answers import Rule
from labelkin.decide._least_cost import expected_costs, least_cost
from labelkin.decide._tree_sums import sums_below
from labelkin.decide._validation import check_probs
from labelkin.structure import Taxonomy

AnswerAs = Literal["nodes", "classes"]


class Step(NamedTuple):
    """A node on the path to an answer, and its probability.

    Example:
        >>> from labelkin.decide import Step
        >>> Step("animal", 0.93).name
        'animal'
    """

    name: str
    probability: float


class Explanation(NamedTuple):
    """The path from the root to an answer; `str` gives it as a line of text, without the root unless the answer is the root.

    Example:
        >>> from labelkin.decide import Explanation, Step
        >>> str(Explanation((Step("root", 1.0), Step("animal", 0.93), Step("dog", 0.71))))
        'animal 0.93 > dog 0.71'
    """

    path: tuple[Step, ...]

    def __str__(self) -> str:
        return " > ".join(f"{step.name} {step.probability:.2f}" for step in self.path[1:] or self.path)


def explain(probs: Tensor, taxonomy: Taxonomy, answer: Tensor, *, answer_as: AnswerAs = "nodes") -> list[Explanation]:
    """Return the probabilities along the path to each answer.

    Args:
        probs: (n, K) probabilities of the classes.
        taxonomy: The tree.
        answer: (n,) answers of any rule.
        answer_as: `"nodes"` for indices of nodes, as `fallback` returns, or `"classes"` for class positions, as `least_cost`.

    Returns:
        One `Explanation` per sample, with `path` as plain names and numbers.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, decide
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "vehicle": ["car"]})
        >>> probs = torch.tensor([[0.22, 0.71, 0.07]])
        >>> print(decide.explain(probs, tree, decide.least_cost(probs, tree), answer_as="classes")[0])
        animal 0.93 > dog 0.71
    """
    check_probs("probs", probs, len(taxonomy.leaves))
    check_choice("answer_as", answer_as, ("nodes", "classes"))
    positions, what = (
        (len(taxonomy), "indices of nodes") if answer_as == "nodes" else (len(taxonomy.leaves), "class positions")
    )
    check_class_positions("answer", answer, positions, shape=(len(probs),), what=what)
    given = answer.cpu().numpy()
    answers = given if answer_as == "nodes" else taxonomy.leaves[given]
    below = sums_below(probs.detach().double(), taxonomy).cpu().numpy()
    paths = {int(node): [int(step) for step in taxonomy.ancestors(int(node))] for node in set(answers.tolist())}
    return [
        Explanation(tuple(Step(taxonomy.names[step], float(below[step, sample])) for step in paths[node]))
        for sample, node in enumerate(answers.tolist())
    ]


def reasons(rule: Rule, probs: Tensor, nodes: Tensor, classes: Sequence[str]) -> list[str]:
    """Return a line for each answer of a rule: the path to it, or for an action its expected cost and that of the best class.

    Without a tree, the line of a class compares it with the best action, or with the next best class if there are no actions.

    Args:
        rule: The rule, with a tree or with costs.
        probs: (n, K) probabilities of the classes.
        nodes: (n,) answers of the rule.
        classes: The names of the classes.

    >>> import torch
    >>> costs = torch.tensor([[0.0, 1.0, 0.2], [1.0, 0.0, 0.2]])
    >>> rule, probs = Rule("crm", costs=costs, actions=("ask",)), torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> reasons(rule, probs, rule.answer(probs).nodes, ["cat", "dog"])
    ['expected cost: cat 0.1, ask 0.2', 'expected cost: ask 0.2, cat 0.4']
    """
    tree, lines = rule.taxonomy, [""] * len(nodes)
    first = len(classes) if tree is None else len(tree)  # action
    compared = nodes >= (0 if tree is None else first)
    if tree is not None:
        known = (~compared).nonzero().flatten()
        found = explain(probs[known], tree, nodes[known]) if len(known) else []
        for row, path in zip(known.tolist(), found, strict=True):
            lines[row] = str(path)
    rows = compared.nonzero().flatten()
    if len(rows):
        answers = nodes[rows] - first + len(classes)
        for row, line in zip(rows.tolist(), _compared(rule, probs[rows], answers, classes), strict=True):
            lines[row] = line
    return lines


def _compared(rule: Rule, probs: Tensor, answers: Tensor, classes: Sequence[str]) -> list[str]:
    """Return the expected cost of each answer by position, and that of the best of the other kind: class or action.

    Without actions, the other one is the best of the other classes.
    """
    assert rule.costs is not None
    names, size = [*classes, *rule.actions], len(classes)
    expected = expected_costs(probs, rule.costs)
    if rule.actions:
        of_class, action = (
            least_cost(probs, rule.costs, allowed=kind) for kind in (range(size), range(size, len(names)))
        )
        others = torch.where(answers < size, action, of_class)
    else:
        others = expected.scatter(1, answers.unsqueeze(1), torch.inf).argmin(1)
    return [
        "expected cost: " + ", ".join(f"{names[at]} {_amount(costs[at])}" for at in shown)
        for costs, *shown in zip(expected.tolist(), answers.tolist(), others.tolist(), strict=True)
    ]


def _amount(cost: float) -> str:
    return f"{cost:,.0f}" if abs(cost) >= 1000 else f"{cost:.4g}"
