"""An audit by costs with answers that are not classes: figures recomputed with numpy, and what is said of them."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from labelkin import InputError, Taxonomy
from labelkin.audit import ActionCount, Audit, Crm, Difference, Saving, _scores, audit
from labelkin.audit._advice import acted, advise
from labelkin.decide import split_halves
from labelkin.report import write_audit_page
from support.commands import call

TREE = Taxonomy.from_nested(
    {"loop": {"one": ["0", "6", "9"], "two": ["8"]}, "open": {"curved": ["2", "3", "5"], "straight": ["1", "4", "7"]}}
).reorder([str(k) for k in range(10)])
DISTANCES = TREE.distance("height")
NAMES = [str(k) for k in range(10)]


@cache
def real() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and digits of the 1,697 images that logistic regression did not see."""
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(x[:100] / 16, y[:100])
    logits = 3 * model.decision_function(x[100:] / 16)
    probs = np.exp(logits - logits.max(1, keepdims=True))
    return probs / probs.sum(1, keepdims=True), y[100:]


@cache
def matrix() -> np.ndarray:
    """To miss an 8 costs 3, any other mistake 1; to ask costs .3, and to wait .05 for an 8 and .5 for others."""
    costs = np.where(np.arange(10)[:, None] == 8, 3.0, 1.0) * (1 - np.eye(10))
    return np.column_stack([costs, np.full(10, 0.3), np.where(np.arange(10) == 8, 0.05, 0.5)])


def by_name() -> dict[str, dict[str, float]]:
    return {
        true: dict(zip([*NAMES, "ask", "wait"], row, strict=True)) for true, row in zip(NAMES, matrix(), strict=True)
    }


@cache
def audited(*, tree: bool = True) -> Audit:
    probs, y = real()
    return audit({"target": y, "probs": probs}, costs=by_name(), taxonomy=TREE if tree else None, classes=NAMES)


def interval(moved: np.ndarray) -> Any:
    return pytest.approx(norm.interval(0.95, moved.mean(), moved.std(ddof=1) / math.sqrt(len(moved))), abs=1e-9)


@pytest.mark.parametrize("scaled", [False, True])
def test_figures_are_those_of_numpy(scaled: bool):
    (probs, y), costs = real(), matrix()
    as_it_is, calibrated = (part for part in audited().crm if part.costs == "costs")
    found = calibrated if scaled else as_it_is
    if scaled:
        rest = split_halves(len(y), 0).measured.numpy()
        powers = probs[rest] ** (1 / found.temperature)
        probs, y = powers / powers.sum(1, keepdims=True), y[rest]
    before, expected = probs.argmax(1), probs @ costs
    after, alone = expected.argmin(1), expected[:, :10].argmin(1)
    named = after < 10
    assert (found.samples, found.changed) == (len(y), (before != after).sum())
    assert found.became_right == ((before != y) & (after == y)).sum()
    assert found.became_wrong == ((before == y) & (after != y) & named).sum()
    assert found.actions == tuple(
        ActionCount(name, (after == at).sum(), ((after == at) & (before != y)).sum())
        for name, at in (("ask", 10), ("wait", 11))
    )
    assert all(action.mistakes > 2 for action in found.actions)
    assert found.accuracy.after == pytest.approx((after == y).mean())
    assert found.accuracy_of_classes is not None
    assert found.accuracy_of_classes.before == pytest.approx((before == y).mean())
    assert found.accuracy_of_classes.after == pytest.approx((after == y)[named].mean())
    assert found.cost is not None
    paid, paid_after = costs[y, before], costs[y, after]
    assert (found.cost.before, found.cost.after) == pytest.approx((paid.mean(), paid_after.mean()))
    assert (found.cost.low, found.cost.high) == interval(paid_after - paid)
    assert found.saved.share == pytest.approx(1 - paid_after.sum() / paid.sum())
    assert found.cost_by_actions is not None
    assert found.cost_by_actions.before == pytest.approx(costs[y, alone].mean())
    assert (found.cost_by_actions.low, found.cost_by_actions.high) == interval(paid_after - costs[y, alone])
    wrong = named & (after != y)
    assert found.severity is not None
    assert found.severity.after == pytest.approx(DISTANCES[y[wrong], after[wrong]].mean())
    assert found.distance_at_1 is not None
    assert found.distance_at_1.before == pytest.approx(DISTANCES[y, before].mean())
    assert found.distance_at_1.after == pytest.approx(DISTANCES[y[named], after[named]].mean())
    assert found.distance_at_5 is None


def test_all_else_is_that_of_the_classes_alone():
    probs, y = real()
    square = audit({"target": y, "probs": probs}, costs=matrix()[:, :10], taxonomy=TREE, classes=NAMES)
    assert (audited().cost, audited().worst) == (square.cost, square.worst)
    assert audited().crm[:2] == square.crm[:2]  # by the tree
    assert square.crm[0].actions == ()
    assert (square.crm[2].accuracy_of_classes, square.crm[2].cost_by_actions) == (None, None)
    assert audited().fallback == square.fallback
    assert str(square).count("go to") == 0


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch):
    expected = audited(tree=False)
    monkeypatch.setattr(_scores, "BLOCK", 500)
    probs, y = real()
    found = audit({"target": y, "probs": probs}, costs=by_name(), classes=NAMES)
    assert [part.actions for part in found.crm] == [part.actions for part in expected.crm]
    for part, other in zip(found.crm, expected.crm, strict=True):
        assert part.accuracy_of_classes == pytest.approx(other.accuracy_of_classes)
        assert part.cost_by_actions == pytest.approx(other.cost_by_actions)


def test_the_advice_says_how_much_goes_to_each_action():
    advice, found = audited().advice, audited().crm[-1]
    ask, wait = found.actions
    assert ask.samples > wait.samples
    assert ask.samples / found.samples > 0.1 > wait.samples / found.samples
    told = f"; {100 * ask.samples / found.samples:.0f} % of the samples go to 'ask', "
    told += f"{100 * wait.samples / found.samples:.2g} % to 'wait'"
    assert advice.headline.startswith(
        f"Fit temperature {found.temperature:.2f} and decide by least cost: a decision costs"
    )
    assert advice.headline.endswith(f"]{told}")
    assert advice.sentence.endswith(f"that did not choose the temperature{told}.")


def effect(change: float, *actions: ActionCount) -> Crm:
    nothing = Difference(0.9, 0.9, 0, 0.0, 0.0, 0.0)
    cost = Difference(1.0, 1 + change, 50, change, change - 0.05, change + 0.05)
    saved = Saving(-change, -change - 0.05, -change + 0.05)
    return Crm("costs", 1.0, 400, 9, 3, 2, nothing, None, None, None, cost, saved, actions)


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ({}, ""),
        ({"review": 0}, ""),
        ({"review": 48}, "; 12 % of the samples go to 'review'"),
        ({"review": 400}, "; 100 % of the samples go to 'review'"),
        ({"a % to b": 2, "ask": 13}, "; 3.2 % of the samples go to 'ask', 0.5 % to 'a % to b'"),
        ({"a": 40, "b": 80, "c": 4}, "; 20 % of the samples go to 'b', 10 % to 'a', 1 % to 'c'"),
        (
            {"a": 40, "b": 80, "c": 4, "d": 8, "e": 0},
            "; 20 % of the samples go to 'b', 10 % to 'a', 3 % to 2 other actions",
        ),
    ],
)
def test_shares_of_actions_in_words(actions: dict[str, int], told: str):
    found = effect(-0.31, *(ActionCount(name, samples, 0) for name, samples in actions.items()))
    assert acted(found) == told
    headline = advise([found], None, has_probs=True, has_costs=True).headline
    assert headline == f"Decide by least cost: a decision costs 31 % less [26, 36]{told}"
    worse = advise([effect(0.31, *found.actions)], None, has_probs=True, has_costs=True)
    assert worse.headline == "Keep the most probable class: deciding by least cost costs 31 % more [26, 36]"


def test_text_page_and_json_have_the_actions(tmp_path: Path):
    probs, y = real()
    np.savez(tmp_path / "p.npz", target=y, probs=probs, classes=NAMES)
    np.savez(tmp_path / "costs.npz", costs=matrix(), classes=NAMES, actions=["ask", "wait"])
    given = ("audit", tmp_path / "p.npz", "--costs", tmp_path / "costs.npz")
    text = call(*given, "--html", tmp_path / "page.html").stdout
    found = json.loads(call(*given, "--json").stdout)
    for part in found["crm"]:
        for action in part["actions"]:
            share = f"{action['samples']:,} samples ({100 * action['samples'] / part['samples']:.2f} %) go to"
            assert (
                f"  {share} '{action['name']}'; the most probable class is wrong for {action['mistakes']} of them\n"
                in text
            )
    assert text.count("Choosing the answer of least expected cost (CRM)") == 2
    last = found["crm"][-1]
    acted_on = sum(action["samples"] for action in last["actions"])
    assert (
        f"{last['became_wrong']} {'becomes' if last['became_wrong'] == 1 else 'become'} wrong, {acted_on} become an action"
        in text
    )
    accuracy = found["crm"][-1]["accuracy_of_classes"]
    assert f"accuracy of classes  {accuracy['before']:.4f} to {accuracy['after']:.4f} (+" in text
    assert found["advice"]["headline"] == audited(tree=False).advice.headline
    page = (tmp_path / "page.html").read_text()
    ask = found["crm"][-1]["actions"][0]
    for shown in (
        found["advice"]["headline"].replace("'", "&#39;"),
        f">{100 * ask['samples'] / found['crm'][-1]['samples']:.1f} %<",
        "accuracy, an action is no right answer",
        "the most probable class is wrong.",
        f"and {acted_on} become an action. Intervals",
    ):
        assert shown in page
    assert (
        "Actions"
        not in write_audit_page(
            audit({"target": y, "probs": probs}, costs=matrix()[:, :10]), tmp_path / "b.html"
        ).read_text()
    )


def test_distances_are_said_to_be_those_of_classes(tmp_path: Path):
    """An action has no distance, so the mean distance falls as hard samples go to it; it was called that of all decisions."""
    note = "severity and distance@1: from all samples to those that get a class"
    for tree in (True, False):
        found = audited(tree=tree)
        assert (note in str(found)) is tree
        page = write_audit_page(found, tmp_path / "page.html").read_text()
        assert ("distance, samples that get a class" in page) is tree
        assert "distance, all decisions" not in page


def test_labels_alone_and_names_that_do_not_fit():
    labels = audit({"target": ["1", "2", "2"], "predicted": ["1", "2", "1"]}, costs=by_name(), classes=NAMES)
    assert labels.cost is not None
    assert labels.cost.mean == pytest.approx(1 / 3)
    probs, y = real()
    with pytest.raises(InputError, match="costs: expected names for the columns after the 10 classes"):
        audit({"target": y, "probs": probs}, costs=matrix())
