"""Reasons for an answer: the probabilities along the path to it."""

from typing import Literal, NamedTuple

from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import check_choice
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
