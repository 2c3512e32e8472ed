"""What deciding by least expected cost (CRM) would change, for free: the same model, the same probabilities."""

from torch import Tensor

from labelkin.audit.findings import Crm, Difference
from labelkin.audit.intervals import mean_difference, ratio_difference
from labelkin.audit.measures import BEST
from labelkin.decide import Rules, compare_rules
from labelkin.structure import Taxonomy


def crm(probs: Tensor, target: Tensor, tree: Taxonomy | None, costs: Tensor | None, *, temperature: float) -> Crm:
    """By the costs where they are given, else by heights in the tree."""
    found = compare_rules(probs, target, tree, costs=costs, k=min(BEST, probs.shape[1]))
    before, after = found.before, found.after
    return Crm(
        costs="taxonomy" if costs is None else "costs",
        temperature=temperature,
        samples=len(target),
        changed=int((before.answer != after.answer).sum()),
        became_right=int((after.right & ~before.right).sum()),
        became_wrong=int((before.right & ~after.right).sum()),
        accuracy=mean_difference(before.right, after.right),
        cost=None if before.costs is None or after.costs is None else mean_difference(before.costs, after.costs),
        **_on_tree(found),
    )


def _on_tree(found: Rules) -> dict[str, Difference | None]:
    before, after = found.before.distances, found.after.distances
    if before is None or after is None:
        return {"severity": None, "distance_at_1": None, "distance_at_5": None}
    wrong = [(far[:, 0], far[:, 0] > 0) for far in (before, after)]
    return {
        "severity": ratio_difference(*wrong),
        "distance_at_1": mean_difference(before[:, 0], after[:, 0]),
        "distance_at_5": mean_difference(before.mean(-1), after.mean(-1)) if before.shape[1] == BEST else None,
    }
