"""Results of an audit that are about decisions, as named tuples; a number is NaN if it is undefined."""

from typing import NamedTuple

from labelkin.audit._findings import Difference


class Saving(NamedTuple):
    """The share of the cost that a decision rule saves, with a 95 % confidence interval; negative if it costs more.

    Attributes:
        share: Saved share of the cost of the most probable classes; NaN if they cost nothing.
        low: Lower end of the interval; NaN, as the upper one, if too few samples cost anything to give one.
        high: Upper end.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1], "probs": [[0.9, 0.1], [0.6, 0.4]]}, costs=[[0, 1], [9, 0]])
        >>> found.crm[0].saved.share
        1.0
    """

    share: float
    low: float
    high: float


class ActionCount(NamedTuple):
    """How often least-cost decisions choose an action, an answer that is not a class.

    Attributes:
        name: The action.
        samples: Number of samples that go to it.
        mistakes: Number of these whose most probable class is wrong.

    Example:
        >>> from labelkin.audit import audit
        >>> costs = {"cat": {"dog": 1, "ask": 0.2}, "dog": {"cat": 1, "ask": 0.2}}
        >>> scores = {"target": ["cat", "dog"], "probs": [[0.9, 0.1], [0.6, 0.4]]}
        >>> audit(scores, costs=costs, classes=["cat", "dog"]).crm[0].actions
        (ActionCount(name='ask', samples=1, mistakes=1),)
    """

    name: str
    samples: int
    mistakes: int


class Crm(NamedTuple):
    """Effect of choosing the answer of least expected cost (CRM) instead of the most probable class.

    An action is an answer that is not a class, and is never right. Distances are those of the classes that are answered.

    Attributes:
        costs: Source of the costs: "taxonomy" or "costs".
        temperature: Temperature of the probabilities; 1 if they were not scaled.
        samples: Number of samples.
        changed: Number of decisions that changed.
        became_right: Number of decisions that became correct.
        became_wrong: Number of decisions that became wrong; those that became an action do not count.
        accuracy: Change of the accuracy.
        severity: Change of the mistake severity; None without a taxonomy, as the next two.
        distance_at_1: Change of the mean distance over all samples; with actions, to that of the samples that get a class.
        distance_at_5: Change of the mean distance of the five best classes.
        cost: Change of the mean cost; None without costs.
        saved: Share of the mean cost, or of the mean distance if the costs are those of the taxonomy, that is saved.
        actions: How often each action is chosen; empty if the costs have none.
        accuracy_of_classes: Change of the accuracy from that of all samples to that of those that get a class; None without
            actions.
        cost_by_actions: Change of the mean cost if the actions are added to the classes; None without actions.

    Example:
        >>> from labelkin.audit import audit
        >>> found = audit({"target": [0, 1], "probs": [[0.9, 0.1], [0.6, 0.4]]}, costs=[[0, 1], [9, 0]])
        >>> found.crm[0].changed, found.crm[0].became_right
        (1, 1)
    """

    costs: str
    temperature: float
    samples: int
    changed: int
    became_right: int
    became_wrong: int
    accuracy: Difference
    severity: Difference | None
    distance_at_1: Difference | None
    distance_at_5: Difference | None
    cost: Difference | None
    saved: Saving
    actions: tuple[ActionCount, ...] = ()
    accuracy_of_classes: Difference | None = None
    cost_by_actions: Difference | None = None


class Advice(NamedTuple):
    """The decision rule to use, what it saves, and on what evidence.

    Attributes:
        rule: "crm" (the answer of least expected cost) if it saves significantly, otherwise "argmax".
        by: What the saving is measured in: "costs" or "taxonomy"; None if there was nothing to compare.
        change: Change of the mean cost, or of the mean height, if "crm" replaces "argmax".
        samples: Number of samples that it was measured on.
        temperature: Temperature of the probabilities; 1 if they were not scaled.
        sentence: The advice and its evidence in one sentence.
        headline: What to do and what it is worth, in a few words without a period; an interval is in brackets.
        evidence: A description of the headline's interval and of the samples behind it; empty if the headline has no interval.
        saved: Saved share of the cost; None if there was nothing to compare.
        fallback: A sentence on the effect of answering with an ancestor; empty if it was not measured.
        threshold: The threshold that this sentence names; None if it names none.

    Example:
        >>> from labelkin.audit import audit
        >>> scores = {"target": [0, 1, 1] * 30, "probs": [[0.95, 0.05], [0.6, 0.4], [0.1, 0.9]] * 30}
        >>> audit(scores, costs=[[0, 1], [9, 0]]).advice.rule
        'crm'
    """

    rule: str
    by: str | None
    change: Difference | None
    samples: int
    temperature: float
    sentence: str
    headline: str
    evidence: str = ""
    saved: Saving | None = None
    fallback: str = ""
    threshold: float | None = None


class FallbackPoint(NamedTuple):
    """One threshold of the fallback, chosen on one half of the samples and measured on the other half.

    Attributes:
        goal: Required correctness; NaN for threshold 0, which always returns a class.
        threshold: Probability that an answer must reach.
        correctness: Share of correct answers.
        specificity: Mean information of the answers; 1 if all are classes.
        leaf_share: Share of answers that are classes.
        unanswered: Share of answers that are the root, which says nothing.

    Example:
        >>> from labelkin.audit import FallbackPoint
        >>> point = FallbackPoint(0.95, threshold=0.6, correctness=0.96, specificity=0.8, leaf_share=0.7, unanswered=0.1)
        >>> round(point.above_share, 2)
        0.2
    """

    goal: float
    threshold: float
    correctness: float
    specificity: float
    leaf_share: float
    unanswered: float

    @property
    def above_share(self) -> float:
        """Share of answers that are nodes between the root and the classes."""
        return max(0.0, 1 - self.leaf_share - self.unanswered)


class LevelRisk(NamedTuple):
    """Risk and coverage at one level of a tree: the most confident samples are answered with a node of this level.

    Attributes:
        depth: Depth of the level; the root has depth 0.
        groups: Number of nodes of the level. A class that ends above the level counts as a node of it.
        is_classes: Whether the nodes of the level are the classes.
        coverage: Shares of the samples that are answered, in ascending order, up to 1.
        risk: Share of wrong answers at each coverage.
        mean_risk: Mean of the risk over all coverages (the area under the curve); lower is better.

    Example:
        >>> from labelkin.audit import audit
        >>> scores = {"target": [0, 1] * 15 + [1, 0] * 5, "logits": [[9.0, 0.0], [0.0, 9.0]] * 20}
        >>> [(level.groups, level.coverage[-1]) for level in audit(scores).fallback.levels]
        [(2, 1.0)]
    """

    depth: int
    groups: int
    is_classes: bool
    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    mean_risk: float


class Fallback(NamedTuple):
    """Effect of answering with an ancestor when the model is unsure.

    Attributes:
        tree: "taxonomy", or "learned" from the confusions of the half that thresholds are chosen on.
        measured_on: Number of samples in the other half.
        points: Threshold 0, and the lowest threshold for each goal that needs one.
        curve: All thresholds, without goals.
        unreachable: Goals that no threshold reached.
        temperature: Temperature of the probabilities that thresholds apply to.
        levels: Risk and coverage of the levels of the tree, the classes first; at most four levels.

    Example:
        >>> from labelkin.audit import audit
        >>> scores = {"target": [0, 1] * 15 + [1, 0] * 5, "logits": [[9.0, 0.0], [0.0, 9.0]] * 20}
        >>> audit(scores).fallback.points[0].leaf_share
        1.0
    """

    tree: str
    measured_on: int
    points: tuple[FallbackPoint, ...]
    curve: tuple[FallbackPoint, ...]
    unreachable: tuple[float, ...]
    temperature: float
    levels: tuple[LevelRisk, ...]
