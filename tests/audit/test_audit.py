"""The audit of real predictions: figures by scikit-learn, scipy and literal loops; four formats, one audit."""

import csv
import json
import math
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, kendalltau, norm
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, top_k_accuracy_score

from labelkin import Taxonomy, metrics
from labelkin.audit import Audit, Difference, audit
from labelkin.audit._confusion_tree import class_confusions
from labelkin.audit._measures import mean_interval, share_interval
from labelkin.audit._paired import Paired
from labelkin.audit._predictions import Predictions, check_predictions, read_raw
from labelkin.audit._schema import Fields
from labelkin.audit._text import verdict
from labelkin.decide import Temperature, split_halves

WAYS = {"0": "la", "6": "la", "9": "la", "8": "lb", "2": "oc", "3": "oc", "5": "oc", "1": "os", "4": "os", "7": "os"}
TREE = Taxonomy.from_paths([f"{WAYS[d][0]}/{WAYS[d]}/{d}" for d in "0123456789"])
HEIGHT = np.array(
    [[0 if a == b else 1 if WAYS[a] == WAYS[b] else 2 + (WAYS[a][0] != WAYS[b][0]) for b in WAYS] for a in WAYS]
)
ORDER = [list(WAYS).index(d) for d in "0123456789"]
HEIGHT = HEIGHT[ORDER][:, ORDER]  # (10, 10) by hand: 1 in one group, 2 in one half, 3 across


@cache
def real() -> tuple[np.ndarray, np.ndarray]:
    """Logits and digits of the 1,297 images that logistic regression did not see."""
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(x[:500] / 16, y[:500])
    return 3 * model.decision_function(x[500:] / 16), y[500:]  # sharpened, so that there is something to calibrate


@cache
def real_probs() -> np.ndarray:
    logits, _ = real()
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


@cache
def audited() -> Audit:
    logits, y = real()
    return audit({"target": y, "logits": logits}, taxonomy=TREE)


def ancestors(digit: int) -> set[str]:
    way = WAYS[str(digit)]
    return {way[0], way, str(digit)}


def literal_ece(probs: np.ndarray, y: np.ndarray) -> float:
    total, confidence = 0.0, probs.max(1)
    for k in range(15):
        inside = (confidence > k / 15) & (confidence <= (k + 1) / 15)
        if inside.any():
            total += abs((probs.argmax(1) == y)[inside].sum() - confidence[inside].sum())
    return total / len(y)


# Figures.


def test_figures_are_those_of_scikit_learn_and_of_loops():
    logits, y = real()
    found, predicted = audited(), logits.argmax(1)
    wrong = predicted != y
    assert found.samples == 1297
    assert found.basics.mistakes == wrong.sum() > 50
    assert found.basics.accuracy == pytest.approx(accuracy_score(y, predicted))
    assert found.basics.top5 == pytest.approx(top_k_accuracy_score(y, logits, k=5))
    tree = found.hierarchy
    assert tree is not None
    assert tree.height == 3
    assert tree.severity == pytest.approx(
        np.mean([HEIGHT[a, b] for a, b in zip(y[wrong], predicted[wrong], strict=True)])
    )
    chance = [np.mean([HEIGHT[a, b] for b in range(10) if b != a]) for a in y[wrong]]
    assert tree.severity_by_chance == pytest.approx(np.mean(chance))
    assert tree.distance_at_1 == pytest.approx(HEIGHT[y, predicted].mean())
    best = np.argsort(-logits, 1)[:, :5]
    assert tree.distance_at_5 == pytest.approx(np.mean([HEIGHT[a, row].mean() for a, row in zip(y, best, strict=True)]))
    sets = [(ancestors(a), ancestors(b)) for a, b in zip(y, predicted, strict=True)]
    shared = sum(len(a & b) for a, b in sets)
    assert (tree.precision, tree.recall) == pytest.approx(
        (shared / sum(len(b) for _, b in sets), shared / (3 * len(y)))
    )
    assert tree.f1 == pytest.approx(2 * tree.precision * tree.recall / (tree.precision + tree.recall))
    hits, weight = (~wrong).sum(), HEIGHT[y, predicted].sum()  # here the semantic distance is the height
    assert tree.weighted_accuracy == pytest.approx(hits / (hits + weight))
    recalls = [
        (~wrong)[y == k].sum() / ((~wrong)[y == k].sum() + HEIGHT[y, predicted][y == k].sum()) for k in range(10)
    ]
    assert tree.weighted_recall == pytest.approx(np.mean(recalls))


def test_costliest_confusions_are_counted_by_hand():
    logits, y = real()
    spent: dict[tuple[int, int], int] = {}
    for a, b in zip(y, logits.argmax(1), strict=True):
        spent[a, b] = spent.get((a, b), 0) + HEIGHT[a, b]
    worst = audited().worst
    assert worst.by == "taxonomy"
    assert worst.total == sum(spent.values())
    assert len(worst.confusions) == 10
    assert [c.cost for c in worst.confusions] == sorted(spent.values(), reverse=True)[:10]
    assert all(spent[int(c.true), int(c.predicted)] == c.cost == c.times * c.distance for c in worst.confusions)


def test_calibration_is_that_of_loops_and_fitted_on_one_half_alone():
    logits, y = real()
    probs, found, halves = real_probs(), audited().calibration, split_halves(len(y), 0)
    assert found is not None
    assert found.scaled is not None
    assert halves is not None
    assert sorted([*halves.fitted.tolist(), *halves.measured.tolist()]) == list(range(1297))
    assert found.ece == pytest.approx(literal_ece(probs, y))
    brier = ((probs - np.eye(10)[y]) ** 2).sum(1)
    assert found.brier == pytest.approx(brier.mean())
    assert found.confidence == pytest.approx(probs.max(1).mean())
    fit, rest = halves.fitted.numpy(), halves.measured.numpy()

    def loss(sharpness: float) -> float:
        z = logits[fit] * sharpness
        return float((np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1) - z[range(len(z)), y[fit]]).mean())

    sharpness = minimize_scalar(loss, bounds=(0.05, 5), method="bounded", options={"xatol": 1e-10}).x
    assert found.scaled.temperature == pytest.approx(1 / sharpness, rel=1e-5)
    scaled = torch.from_numpy(logits[rest] * sharpness).softmax(-1).numpy()
    assert found.scaled.ece_before == pytest.approx(literal_ece(probs[rest], y[rest]))
    assert found.scaled.ece_after == pytest.approx(literal_ece(scaled, y[rest]), abs=1e-5)
    assert found.scaled.ece_after < found.scaled.ece_before
    moved = ((scaled - np.eye(10)[y[rest]]) ** 2).sum(1) - brier[rest]
    assert found.scaled.brier.change == pytest.approx(moved.mean(), abs=1e-6)
    assert (found.scaled.brier.low, found.scaled.brier.high) == pytest.approx(
        norm.interval(0.95, moved.mean(), moved.std(ddof=1) / math.sqrt(len(moved))), abs=1e-6
    )


@pytest.mark.long
@pytest.mark.parametrize("by", ["taxonomy", "costs"])
def test_crm_is_the_literal_loop(by: str):
    logits, y = real()
    apart = np.subtract.outer(np.arange(10), np.arange(10))  # too low a digit costs half as much as too high a one
    costs = np.where(apart > 0, apart, -2 * apart) ** 2.0 if by == "costs" else HEIGHT
    given = {"costs": costs} if by == "costs" else {}
    found = audit({"target": y, "logits": logits}, taxonomy=TREE, **given).crm
    as_it_is, calibrated = (crm for crm in found if crm.costs == by)
    before, ranked = logits.argmax(1), np.argsort(real_probs() @ costs, axis=1, kind="stable")
    after = ranked[:, 0]
    assert (as_it_is.samples, as_it_is.temperature) == (1297, 1)
    assert as_it_is.changed == (before != after).sum() > 0
    assert as_it_is.became_right == ((before != y) & (after == y)).sum()
    assert as_it_is.became_wrong == ((before == y) & (after != y)).sum()
    assert as_it_is.accuracy.after == pytest.approx((after == y).mean())
    assert as_it_is.severity is not None
    assert as_it_is.severity.before == pytest.approx(HEIGHT[y, before][before != y].mean())
    assert as_it_is.severity.after == pytest.approx(HEIGHT[y, after][after != y].mean())
    assert as_it_is.distance_at_1 is not None
    assert as_it_is.distance_at_1.change == pytest.approx((HEIGHT[y, after] - HEIGHT[y, before]).mean())
    assert as_it_is.distance_at_5 is not None
    assert as_it_is.distance_at_5.after == pytest.approx(HEIGHT[y[:, None], ranked[:, :5]].mean())
    assert (as_it_is.cost is None) == (by == "taxonomy")
    if as_it_is.cost is not None:
        assert as_it_is.cost.after == pytest.approx(costs[y, after].mean())
        assert as_it_is.cost.before == pytest.approx(costs[y, before].mean())
    assert calibrated.samples == 649
    assert calibrated.temperature == pytest.approx(audited().calibration.scaled.temperature)
    assert calibrated.accuracy.before == pytest.approx((before == y)[split_halves(1297, 0).measured.numpy()].mean())


@pytest.mark.long
def test_warnings_of_others_do_not_end_the_calibration(monkeypatch: pytest.MonkeyPatch):
    """A file that another library did not close says nothing about the temperature."""
    expected, fit = str(audited()), Temperature.fit_blocks

    def noisy(self: Temperature, *args: Any) -> Temperature:
        warnings.warn("unclosed file", ResourceWarning, stacklevel=2)
        return fit(self, *args)

    monkeypatch.setattr(Temperature, "fit_blocks", noisy)
    logits, y = real()
    assert str(audit({"target": y, "logits": logits}, taxonomy=TREE)) == expected


def test_fallback_thresholds_are_chosen_on_one_half_and_measured_on_the_other():
    logits, y = real()
    found, halves = audited().fallback, split_halves(len(y), 0)
    probs = torch.from_numpy(logits / audited().calibration.scaled.temperature).softmax(-1).numpy()

    def inside(node: str, above: str) -> bool:
        """Whether classes of one are classes of the other."""
        return not above or all(above in ancestors(int(k)) for k in WAYS if node in ancestors(int(k)))

    def answers(threshold: float, half: Any) -> list[str]:
        """The node that answers each sample; empty for the root."""
        given = []
        for row in probs[half.numpy()]:
            named = ""
            for children in ({w[0] for w in WAYS.values()}, set(WAYS.values()), set(WAYS)):
                below = {
                    n: sum(p for k, p in enumerate(row) if n in ancestors(k)) for n in children if inside(n, named)
                }
                best = max(below, key=below.__getitem__)
                if below[best] < threshold:
                    break
                named = best
            given.append(named)
        return given

    def correctness(threshold: float, half: Any) -> float:
        named = zip(answers(threshold, half), y[half.numpy()], strict=True)
        return sum(not node or node in ancestors(int(true)) for node, true in named) / len(half)

    assert (found.tree, found.measured_on, found.unreachable) == ("taxonomy", 649, ())
    assert found.temperature == audited().calibration.scaled.temperature != 1
    always, *chosen = found.points
    assert (always.threshold, always.leaf_share, always.specificity) == (0, 1, 1)
    assert [point.goal for point in chosen] == [g for g in (0.9, 0.95, 0.99) if g > correctness(0, halves.fitted)] != []
    for point in chosen:
        assert point.correctness == pytest.approx(correctness(point.threshold, halves.measured))
        assert correctness(point.threshold, halves.fitted) >= point.goal
        named = answers(point.threshold, halves.measured)
        assert point.leaf_share == pytest.approx(sum(node in WAYS for node in named) / 649)
        assert point.unanswered == pytest.approx(sum(not node for node in named) / 649)
        assert point.leaf_share + point.above_share + point.unanswered == pytest.approx(1)
    tried = [point.threshold for point in found.curve]
    earlier = tried[tried.index(chosen[-1].threshold) - 1]
    assert correctness(earlier, halves.fitted) < chosen[-1].goal


@pytest.mark.long
def test_without_a_taxonomy_the_fallback_tree_is_learned_on_the_half_that_is_not_measured():
    _, y = real()
    probs, halves = real_probs(), split_halves(len(y), 0)
    trees = []
    for half in (part.numpy() for part in halves):
        trees.append(audit({"target": y[half], "probs": probs[half]}).structure.tree)
    found = audit({"target": y, "probs": probs}).fallback
    by_fitted, by_measured = (audit({"target": y, "probs": probs}, taxonomy=tree).fallback for tree in trees)
    assert found.points[1:] == by_fitted.points[1:] != by_measured.points[1:]  # the first has no goal: NaN


# The structure that confusions suggest.


def planted(mixed: list[tuple[int, int]], times: int = 8) -> dict[str, np.ndarray]:
    """Twenty samples of each of eight classes, `times` of which are taken for their partner's."""
    target = np.repeat(np.arange(8), 20)
    predicted = target.copy()
    for a, b in mixed:
        predicted[20 * a : 20 * a + times], predicted[20 * b : 20 * b + times] = b, a
    return {"target": target, "predicted": predicted}


PARTNERS = [(0, 1), (2, 3), (4, 5), (6, 7)]


def test_planted_confusions_become_siblings():
    tree = audit(planted(PARTNERS)).structure.tree
    for a, b in PARTNERS:
        assert tree.parents[tree.node(str(a))] == tree.parents[tree.node(str(b))]


def test_agreement_tells_the_right_tree_from_a_wrong_one():
    right = Taxonomy.from_groups({f"g{a}": [str(a), str(b)] for a, b in PARTNERS})
    wrong = Taxonomy.from_groups({"a": list("02"), "b": list("46"), "c": list("13"), "d": list("57")}).reorder(
        list("01234567")
    )
    agreed = audit(planted(PARTNERS), taxonomy=right).structure.agreement
    assert (agreed.confusions, agreed.tree) == (pytest.approx(1), pytest.approx(1))
    assert (agreed.far_but_confused, agreed.near_but_distinct) == ((), ())
    denied = audit(planted(PARTNERS), taxonomy=wrong).structure.agreement
    assert denied.confusions == pytest.approx(-1 / 6)  # of six others one is confused and another is kin
    assert {(p.a, p.b, p.confused, p.distance) for p in denied.far_but_confused} == {
        (str(a), str(b), 16, 2) for a, b in PARTNERS
    }
    assert {(p.a, p.b) for p in denied.near_but_distinct} == {("0", "2"), ("4", "6"), ("1", "3"), ("5", "7")}
    flat = Taxonomy.from_nested(list("01234567"))
    silent = audit(planted(PARTNERS), taxonomy=flat).structure.agreement
    assert math.isnan(silent.confusions)
    assert (silent.far_but_confused, silent.near_but_distinct) == ((), ())


def test_far_and_close_are_those_of_the_tree_and_often_and_rarely_those_of_the_confusions():
    groups = {"a": list("012"), "b": list("345"), "c": list("678")}
    rng = np.random.default_rng(0)
    kin = np.array([[i // 3 == j // 3 for j in range(9)] for i in range(9)])
    target = np.repeat(np.arange(9), 200)
    logits = rng.standard_normal((len(target), 9)) + 3.0 * kin[target]
    found = audit({"target": target, "logits": logits}, taxonomy=Taxonomy.from_groups(groups)).structure.agreement
    assert found.confusions < 1  # the ranks differ, by noise among pairs that are all far apart or all close
    assert (found.far_but_confused, found.near_but_distinct) == ((), ())
    logits[:, 0] += 6.0 * (target == 8)
    logits[:, 1] -= 6.0 * (target == 2)
    logits[:, 2] -= 6.0 * (target == 1)
    found = audit({"target": target, "logits": logits}, taxonomy=Taxonomy.from_groups(groups)).structure.agreement
    assert [(pair.a, pair.b) for pair in found.far_but_confused] == [("0", "8")]
    assert [(pair.a, pair.b) for pair in found.near_but_distinct] == [("1", "2")]


def test_with_scores_the_structure_is_that_of_the_probabilities():
    """By hand: nobody is ever mistaken, and the second-best class is the partner's."""
    probs = np.full((8, 8), 0.01)
    for a, b in PARTNERS:
        probs[[a, b], [a, b]], probs[[a, b], [b, a]] = 0.74, 0.2
    found = audit({"target": np.arange(8), "probs": probs})
    tree = found.structure.tree
    assert found.basics.accuracy == 1
    assert all(tree.parents[tree.node(str(a))] == tree.parents[tree.node(str(b))] for a, b in PARTNERS)
    assert {(p.a, p.b) for p in found.structure.closest[:4]} == {(str(a), str(b)) for a, b in PARTNERS}
    assert found.structure.closest[0].confused == pytest.approx(0.4)


@pytest.mark.long
def test_few_samples_say_more_by_their_probabilities_than_by_their_mistakes():
    """Of 100 samples, about ten mistakes: which of the two foretells better whom the other 1,197 are taken for?"""
    logits, y = real()
    probs = torch.from_numpy(logits / 3).softmax(-1).numpy()  # as the model gave them
    taus = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(y))
        few, rest = order[:100], order[100:]
        counted = {"target": y, "predicted": probs.argmax(1)}
        given = [
            predictions(**{name: array[part] for name, array in of.items()})
            for of, part in ((counted, rest), (counted, few), ({"target": y, "probs": probs}, few))
        ]
        truth, hard, soft = (class_confusions(part).distances for part in given)
        taus.append([metrics.structure_correlation(d, truth, given="distances").mean for d in (hard, soft)])
    by_mistakes, by_probs = np.mean(taus, axis=0)
    assert by_probs > by_mistakes + 0.03


def predictions(**arrays: np.ndarray) -> Predictions:
    return check_predictions(read_raw(arrays, None, Fields()), tuple("0123456789"), "arrays")


def test_stability_and_agreement_are_taus_of_the_confusions():
    _, y = real()
    halves, probs = split_halves(len(y), 0), real_probs()

    def distances(samples: np.ndarray) -> np.ndarray:
        counts = np.array([probs[samples][y[samples] == k].sum(0) for k in range(10)]) + 1
        np.fill_diagonal(counts, 0)
        rows = counts / counts.sum(1, keepdims=True)
        return 1 - (rows + rows.T) / 2

    def tau(a: np.ndarray, b: np.ndarray) -> float:
        others = [np.delete(np.arange(10), k) for k in range(10)]
        return float(np.mean([kendalltau(a[k, o], b[k, o]).statistic for k, o in enumerate(others)]))

    found = audited().structure
    assert found.stability == pytest.approx(tau(*(distances(half.numpy()) for half in halves)))
    assert found.agreement.confusions == pytest.approx(tau(distances(np.arange(len(y))), HEIGHT))


# Intervals.


def test_intervals_are_scipys():
    found = binomtest(37, 50).proportion_ci(method="wilson")
    assert share_interval(37, 50) == pytest.approx((found.low, found.high))
    assert share_interval(50, 50).high == 1
    values = np.random.default_rng(0).normal(size=40)
    expected = norm.interval(0.95, values.mean(), values.std(ddof=1) / math.sqrt(40))
    assert mean_interval(torch.from_numpy(values), torch.ones(40, dtype=torch.int64)) == pytest.approx(expected)
    assert mean_interval(*torch.from_numpy(values.round()).unique(return_counts=True)) == pytest.approx(
        norm.interval(0.95, values.round().mean(), values.round().std(ddof=1) / math.sqrt(40))
    )


@pytest.mark.long
def test_the_interval_of_severity_is_that_of_a_bootstrap():
    logits, y = real()
    before, after = logits.argmax(1), (real_probs() @ (np.arange(10)[:, None] - np.arange(10)) ** 2.0).argmin(1)
    far = [torch.from_numpy(HEIGHT[y, p]) for p in (before, after)]
    found = Paired().add(*far, *(f > 0 for f in far)).difference()
    rng, drawn = np.random.default_rng(0), []
    for _ in range(2000):
        picked = rng.integers(len(y), size=len(y))
        a, b = (f.numpy()[picked] for f in far)
        drawn.append(b[b > 0].mean() - a[a > 0].mean())
    low, high = np.quantile(drawn, [0.025, 0.975])
    width = high - low
    assert found.low == pytest.approx(low, abs=0.1 * width)
    assert found.high == pytest.approx(high, abs=0.1 * width)
    assert found.differ == (HEIGHT[y, before] != HEIGHT[y, after]).sum()


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Difference(0.5, 0.5, 0, 0.0, 0.0, 0.0), "no change"),
        (Difference(0.5, 0.6, 9, 0.1, 0.05, 0.15), "too few changes to tell"),
        (Difference(0.5, 0.6, 10, 0.1, 0.05, 0.15), "significant"),
        (Difference(0.6, 0.5, 10, -0.1, -0.15, -0.05), "significant"),
        (Difference(0.5, 0.6, 10, 0.1, -0.05, 0.25), "not significant"),
        (Difference(2.0, math.nan, 10), "undefined"),
    ],
)
def test_a_verdict_needs_an_interval_without_0_and_samples_enough(difference: Difference, said: str):
    assert verdict(difference) == said


# Formats.


def write(path: Any, kind: str, style: str = "columns") -> Any:
    """The real predictions with names d0 to d9 in the format of the suffix, scores as a column a class or as lists."""
    logits, y = real()
    scores = real_probs() if kind == "probs" else logits
    names = [f"d{k}" for k in range(10)]
    target, best = [names[k] for k in y], [names[k] for k in logits.argmax(1)]
    if path.suffix == ".npz":
        held = {"predicted": best} if kind == "labels" else {kind: scores}
        np.savez(path, target=target, classes=names, **held)
        return path
    columns: dict[str, list[Any]] = {"target": target}
    if kind == "labels":
        columns["predicted"] = best
    elif style == "lists":
        columns[kind] = scores.tolist()
    else:
        columns |= {name: scores[:, k].tolist() for k, name in enumerate(names)}
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([list(columns), *rows])
    else:
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    return path


def without_source(found: Audit) -> str:
    return json.dumps({**found.as_dict(), "source": None})


@pytest.mark.long
@pytest.mark.parametrize("kind", ["logits", "probs", "labels"])
def test_four_formats_give_one_audit(kind: str, tmp_path: Any):
    tree = Taxonomy.from_paths([f"{WAYS[d][0]}/{WAYS[d]}/d{d}" for d in "0123456789"])
    files = [write(tmp_path / f"p{suffix}", kind) for suffix in (".npz", ".csv", ".jsonl", ".parquet")]
    given: dict[str, Any] = {"kind": kind, "taxonomy": tree}
    first, *others = (without_source(audit(file, **given)) for file in files)
    assert others == [first] * 3
    if kind != "labels":
        for suffix in (".jsonl", ".parquet"):
            listed = write(tmp_path / f"lists{suffix}", kind, "lists")
            found = audit(listed, classes=tree.classes, taxonomy=tree)
            assert found.notes[-1].startswith("Classes are in the order given (0 = 'd0', 1 = 'd1'")
            assert without_source(found._replace(notes=found.notes[:-1])) == first
    assert json.loads(first)["basics"]["mistakes"] == audited().basics.mistakes


def test_columns_by_their_beginning_and_by_name(tmp_path: Any):
    file = tmp_path / "p.csv"
    file.write_text("id,truth,p_cat,p_dog,p_cow\n7,cat,.7,.2,.1\n8,dog,.3,.3,.4\n9,cow,.1,.1,.8\n")
    begun = audit(file, kind="probs", target="truth", columns="p_*")
    assert (begun.classes, begun.basics.mistakes) == (("cat", "dog", "cow"), 1)
    assert begun.worst.confusions[0][:3] == ("dog", "cow", 1)
    named = audit(
        file, kind="probs", target="truth", columns=["p_cow", "p_cat", "p_dog"], classes=["cow", "cat", "dog"]
    )
    assert named.basics == begun.basics
    assert named.classes == ("cow", "cat", "dog")


def test_predicted_labels_beside_scores_are_no_class(tmp_path: Any):
    file = tmp_path / "p.csv"
    file.write_text("label,predicted,cat,dog\ncat,cat,.7,.3\ndog,cat,.6,.4\n")
    assert audit(file, kind="probs").classes == ("cat", "dog")


def test_labels_are_names_and_else_positions():
    names = {"classes": np.array(["5", "6", "7"]), "predicted": np.array([5, 6, 6, 7])}
    assert audit({"target": np.array([5, 6, 7, 7]), **names}).basics.accuracy == 0.75
    positions = {"classes": np.array(["cat", "dog", "cow"]), "predicted": np.array([0, 1, 1, 2])}
    found = audit({"target": torch.tensor([0, 1, 2, 2]), **positions})
    assert found.worst.confusions[0][:3] == ("cow", "dog", 1)


def test_predicted_labels_are_measured_on_the_whole_tree():
    """Frog is never true nor predicted, and yet makes the tree as high as it is."""
    tree = Taxonomy.from_nested({"pet": ["cat", "dog"], "wild": {"wet": ["frog", "newt"]}})
    found = audit({"target": np.array(["cat", "newt"]), "predicted": np.array(["newt", "newt"])}, taxonomy=tree)
    assert found.classes == ("cat", "dog", "frog", "newt")
    assert found.hierarchy.severity == 3
    assert any("2 of 4 classes have no samples: 'dog', 'frog'" in note for note in found.notes)


@pytest.mark.long
def test_costs_come_as_csv_npz_or_matrix_in_any_order(tmp_path: Any):
    logits, y = real()
    costs = np.random.default_rng(0).uniform(0, 5, (10, 10))
    order = np.random.default_rng(1).permutation(10)
    np.savez(tmp_path / "c.npz", costs=costs[order][:, order], classes=[str(k) for k in order])
    with (tmp_path / "c.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["", *order], *([k, *costs[k, order].tolist()] for k in order)])
    found = [audit({"target": y, "logits": logits}, costs=c) for c in (costs, tmp_path / "c.npz", tmp_path / "c.csv")]
    assert found[0].cost.mean == pytest.approx(costs[y, logits.argmax(1)].mean())
    assert found[0].worst.by == "costs"
    assert without_source(found[0]) == without_source(found[1]) == without_source(found[2])
    by_labels = audit({"target": y, "predicted": logits.argmax(1)}, costs=tmp_path / "c.npz")
    assert by_labels.cost.mean == pytest.approx(found[0].cost.mean)


# What is left out, and said.


def test_without_a_taxonomy_it_says_what_is_left_out():
    logits, y = real()
    found = audit({"target": y, "logits": logits})
    assert found.hierarchy is None
    assert found.crm == ()
    assert found.worst.by == "times"
    assert found.structure.agreement is None
    assert found.fallback.tree == "learned"
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith("Severity, ")
    assert "severity" not in str(found).split("Parts left out")[0]
    labels = audit({"target": y, "predicted": logits.argmax(1)})
    assert (labels.calibration, labels.fallback, labels.crm) == (None, None, ())
    assert len(labels.left_out) == 2


def test_few_samples_no_mistakes_and_two_classes():
    few = audit({"target": np.array([0, 1, 2, 1]), "probs": np.eye(3)[[0, 1, 2, 2]]})
    assert few.calibration.scaled is None
    assert few.fallback is None
    assert any("need at least 20 samples" in sentence for sentence in few.left_out)
    perfect = audit({"target": np.arange(10).repeat(3), "probs": np.eye(10).repeat(3, 0)}, taxonomy=TREE)
    assert perfect.basics.accuracy == 1
    assert math.isnan(perfect.hierarchy.severity)
    assert perfect.structure is None
    assert "undefined" in str(perfect)
    assert any("Temperature: the best value is beyond the limit" in note for note in perfect.notes)
    two = audit({"target": np.array([0, 1] * 20), "probs": np.array([[0.6, 0.4]] * 40)})
    assert two.structure is None
    assert any("needs at least 3 classes" in sentence for sentence in two.left_out)


def test_a_surely_wrong_model_reaches_no_correctness():
    tree = Taxonomy.from_groups({"a": ["0", "1"], "b": ["2", "3"]})
    found = audit({"target": np.tile(np.arange(4), 10), "probs": np.eye(4)[np.tile([2, 3, 0, 1], 10)]}, taxonomy=tree)
    assert found.fallback.unreachable == (0.9, 0.95, 0.99)
    assert "no threshold reached 90 %, 95 %, 99 %" in str(found)


def test_rounded_probabilities_are_divided_by_their_sums_and_it_is_said():
    _, y = real()
    found = audit({"target": y, "probs": real_probs().round(3)})
    assert found.basics.accuracy == pytest.approx(audited().basics.accuracy, abs=0.005)
    assert found.calibration.brier == pytest.approx(audited().calibration.brier, abs=0.005)
    assert found.calibration.scaled.temperature == pytest.approx(audited().calibration.scaled.temperature, rel=0.25)
    assert any("have probability 0 for the true class" in note for note in found.notes)
    assert any("divided by its sum" in note for note in found.notes)


def test_text_holds_the_figures():
    text, found = str(audited()), audited()
    for shown in (
        f"{100 * found.basics.accuracy:.2f} %",
        f"{found.hierarchy.severity:.3f}",
        f"temperature  {found.calibration.scaled.temperature:.3f}",
        f"{found.crm[0].changed} of 1,297 decisions change",
        f"tau {found.structure.stability:.2f}",
    ):
        assert shown in text
    many = Taxonomy.from_nested([f"c{k}" for k in range(60)])
    target = np.arange(60).repeat(2)
    wide = str(audit({"target": target, "predicted": (target + 1) % 60}, taxonomy=many, classes=many.classes))
    assert "a tree of 119 nodes" in wide
    assert "c0 and c1" in wide


def test_text_counts_in_the_singular_and_the_plural():
    tree = Taxonomy.from_nested({"a": ["0", "1"], "b": ["2", "3"]})
    probs = np.full((4, 4), 0.01) + 0.96 * np.eye(4)
    probs[3] = [0.4, 0.0, 0.3, 0.3]  # the most probable class is 0, of least expected height 2 or 3
    none = str(audit({"target": np.arange(4), "probs": np.eye(4)}, taxonomy=tree))
    assert "4 samples, 4 classes" in none
    assert "; 0 mistakes" in none
    assert "0 of 4 decisions change: 0 become right, 0 become wrong" in none
    assert "Costliest confusions\n  none" in none
    one = str(audit({"target": np.array([0, 1, 2, 2]), "probs": probs}, taxonomy=tree))
    assert "; 1 mistake\n" in one
    assert "1 of 4 decisions changes: 1 becomes right, 0 become wrong" in one
    assert "1 of 4 classes has no samples: '3'." in one
    two = str(audit({"target": np.array([0, 1, 2, 1]), "predicted": np.array([0, 1, 1, 2])}, taxonomy=tree))
    assert "; 2 mistakes" in two
    assert "1 and 2  2 confusions" in two
    single = str(audit({"target": np.array([1]), "predicted": np.array([2])}, classes=list("0123"), taxonomy=tree))
    assert "1 sample, 4 classes" in single
    assert "1 and 2 1 confusion distance 2" in " ".join(single.split())
    assert "3 of 4 classes have no samples: '0', '2', '3'." in single


def test_an_audit_warns_of_nothing_else():
    logits, y = real()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit({"target": y, "logits": logits}, taxonomy=TREE)


def test_the_range_of_severities_ends_with_the_largest_distance():
    tree = Taxonomy.from_nested({"all": {"a": ["0", "1"], "b": ["2", "3"]}})  # the root has a single child
    found = audit({"target": np.arange(4), "predicted": np.array([1, 0, 3, 1])}, taxonomy=tree)
    assert found.hierarchy.height == 2
    assert "mean tree distance of the mistakes, 1 to 2" in str(found)
