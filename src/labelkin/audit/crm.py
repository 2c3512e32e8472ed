"""What deciding by least expected cost (CRM) would change, for free: the same model, the same probabilities."""

from torch import Tensor

from labelkin import decide
from labelkin.audit.findings import Crm, Difference
from labelkin.audit.intervals import mean_difference, ratio_difference
from labelkin.audit.measures import BEST, heights
from labelkin.structure import Taxonomy


def crm(probs: Tensor, target: Tensor, tree: Taxonomy | None, costs: Tensor | None, *, temperature: float) -> Crm:
    """By the costs where they are given, else by heights in the tree."""
    by: Tensor | Taxonomy | None = tree if costs is None else costs
    assert by is not None
    best = min(BEST, probs.shape[1])
    usual, ours = probs.topk(best).indices, decide.least_cost_top_k(probs, by, best)
    usual[:, 0] = probs.argmax(-1)  # topk breaks ties in its own way
    before, after = usual[:, 0] == target, ours[:, 0] == target
    return Crm(
        costs="taxonomy" if costs is None else "costs",
        temperature=temperature,
        samples=len(target),
        changed=int((usual[:, 0] != ours[:, 0]).sum()),
        became_right=int((after & ~before).sum()),
        became_wrong=int((before & ~after).sum()),
        accuracy=mean_difference(before, after),
        cost=None if costs is None else _cost(usual[:, 0], ours[:, 0], target, costs),
        **_on_tree(usual, ours, target, tree),
    )


def _cost(usual: Tensor, ours: Tensor, target: Tensor, costs: Tensor) -> Difference:
    return mean_difference(costs[target, usual], costs[target, ours])


def _on_tree(usual: Tensor, ours: Tensor, target: Tensor, tree: Taxonomy | None) -> dict[str, Difference | None]:
    if tree is None:
        return {"severity": None, "distance_at_1": None, "distance_at_5": None}
    before, after = (heights(tree, target, classes) for classes in (usual, ours))
    wrong = [(far[:, 0], far[:, 0] > 0) for far in (before, after)]
    return {
        "severity": ratio_difference(*wrong),
        "distance_at_1": mean_difference(before[:, 0], after[:, 0]),
        "distance_at_5": mean_difference(before.mean(-1), after.mean(-1)) if before.shape[1] == BEST else None,
    }
