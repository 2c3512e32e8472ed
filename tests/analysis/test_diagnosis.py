"""Why a structured loss does nothing: planted causes on digits, and each figure against a slow or hand-worked form."""

import json
import sys
from math import exp, isnan
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from labelkin import InputError, Taxonomy, relations
from labelkin.analysis import CAUSES, diagnose
from labelkin.analysis._gradient_structure import measure_gradient
from labelkin.analysis._headroom import measure_mistakes, measure_spread
from labelkin.objectives import (
    AdaptiveLabels,
    ConditionalSoftmax,
    ConfidencePenalty,
    ConvexHierarchical,
    Hierarchical,
    HierarchicalCrossEntropy,
    LabelEmbedding,
    LabelSmoothing,
    MixedCrossEntropy,
    Objective,
    OneHot,
    SemanticSmoothing,
    StaticLabels,
)
from labelkin.runs import RunSpec
from labelkin.runs import train_run as train
from labelkin.structure import _catalogue as catalogue
from labelkin.training import Settings
from support.commands import FOUND, PIXELS, call, refused

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from planted import diagnosed

NAMES = tuple("abcdefghij")
PAIRS = Taxonomy.from_groups({str(i): NAMES[2 * i : 2 * i + 2] for i in range(5)})
STAR = Taxonomy.from_nested(list(NAMES))
ONLY_CHILDREN = Taxonomy.from_groups({f"only {name}": [name] for name in NAMES})
ONE_PAIR = Taxonomy.from_nested([["a", "b"], *NAMES[2:]])
UNEVEN = Taxonomy.from_nested(["a", ["b", "c"], [["d", "e"], ["f", "g", "h"]], [["i"], "j"]])
TREE_LOSSES = (Hierarchical, ConvexHierarchical, ConditionalSoftmax, HierarchicalCrossEntropy)


@pytest.mark.long
@pytest.mark.parametrize("seed", [200, 201, 202])  # of neither table
@pytest.mark.parametrize("cause", [*CAUSES, "healthy"])
def test_what_is_planted_is_found(cause: str, seed: int):
    beside, alone = diagnosed(cause, seed)
    assert (beside.cause, alone.cause) == (cause, cause)
    for found in (beside, alone):
        for finding in found.findings:
            assert found.figures()[finding.figure] == finding.value < finding.threshold
        assert (str(found) == "\n".join(f.sentence for f in found.findings)) == (cause != "healthy")


def slow_kin_share(objective: Objective, width: int) -> float:
    """By loops and differences: step by step what `measure_gradient` says it does."""
    objective, shares = objective.double(), []
    for true in range(10):
        zero, target = torch.zeros(1, width, dtype=torch.float64), torch.tensor([true])
        step = torch.zeros_like(zero)
        for i in range(width):
            nudge = torch.zeros_like(zero)
            nudge[0, i] = 1e-5
            step[0, i] = (objective.loss(zero - nudge, target) - objective.loss(zero + nudge, target)) / 2e-5
        probs = objective.log_probs(zero)[0].exp().tolist()
        after, before = (objective.log_probs(zero + sign * 1e-4 * step)[0] for sign in (1, -1))
        asked = ((after - before) / 2e-4).tolist()
        plain = [(j == true) - p for j, p in enumerate(probs)]
        others = [j for j in range(10) if j != true]
        mean, plain_mean = (sum(values[j] for j in others) / 9 for values in (asked, plain))
        scale = (asked[true] - mean) / (plain[true] - plain_mean)
        apart = sum(abs(asked[j] - mean - scale * (plain[j] - plain_mean)) for j in others)
        shares.append(apart / sum(map(abs, asked)))
    return sum(shares) / 10


@pytest.mark.long
@pytest.mark.parametrize(
    ("objective", "width"),
    [
        (Hierarchical(taxonomy=UNEVEN), 16),
        (ConvexHierarchical(taxonomy=UNEVEN), 16),
        (ConditionalSoftmax(taxonomy=UNEVEN), 16),
        (HierarchicalCrossEntropy(taxonomy=UNEVEN, alpha=0.3), 10),
        (SemanticSmoothing(classes=NAMES, relation=relations.tree(UNEVEN), sigma=0.3), 10),
        (MixedCrossEntropy(classes=NAMES, relation=relations.ordinal(10), eps=0.2, learn=True), 10),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Objective) else "",
)
def test_kin_share_by_loops(objective: Objective, width: int):
    share = measure_gradient(objective).kin_share
    assert share > 0.05
    assert share == pytest.approx(slow_kin_share(objective, width), rel=1e-5)


@pytest.mark.parametrize(("size", "sigma"), [(2, 0.1), (5, 0.3)])
def test_smoothing_over_groups_has_a_closed_form(size: int, sigma: float):
    relation = relations.groups([i // size for i in range(10)])
    gradient = measure_gradient(SemanticSmoothing(classes=NAMES, relation=relation, sigma=sigma))
    kin, strangers, mean = size - 1, 10 - size, sigma / 9
    apart = kin * abs(sigma / kin - mean) + strangers * mean
    whole = (1 - sigma - 0.1) + kin * abs(sigma / kin - 0.1) + strangers * 0.1
    assert gradient.kin_share == pytest.approx(apart / whole, rel=1e-6)
    assert gradient.rows == pytest.approx((sigma, 1 - kin / 9, 0))
    assert gradient.weakest_level is None


@pytest.mark.parametrize(
    ("objective", "rows"),
    [
        (OneHot(classes=NAMES), (0, 0, 1)),
        (LabelSmoothing(classes=NAMES, smoothing=0.3), (0.27, 0, 0)),
        (ConfidencePenalty(classes=NAMES), None),
        (LabelEmbedding(classes=NAMES), None),  # before it has learned anything
        (HierarchicalCrossEntropy(taxonomy=PAIRS, alpha=0.0), None),
        *((kind(taxonomy=tree), None) for kind in TREE_LOSSES for tree in (STAR, ONLY_CHILDREN)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Objective) else "",
)
def test_what_knows_no_kin_pulls_as_cross_entropy_does(objective: Objective, rows: tuple[float, ...] | None):
    gradient = measure_gradient(objective)
    assert gradient.kin_share < 1e-12
    assert gradient.rows == (None if rows is None else pytest.approx(rows))


def test_rows_of_some_classes_are_one_hot():
    relation = relations.groups([0, 0, 1, 1, 2, 3, 4, 5, 6, 7])
    gradient = measure_gradient(SemanticSmoothing(classes=NAMES, relation=relation, sigma=0.2))
    assert gradient.rows == pytest.approx((0.4 * 0.2, 8 / 9, 0.6))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 12.0])
def test_the_weakest_level_of_hxe_worked_by_hand(alpha: float):
    """Of 2 x 2 classes the true one rises by w1/4 + w2/2, its sibling by w1/4 - w2/2, the others by -w1/4."""
    tree = Taxonomy.from_groups({"x": ["a", "b"], "y": ["c", "d"]})
    level = measure_gradient(HierarchicalCrossEntropy(taxonomy=tree, alpha=alpha)).weakest_level
    assert level == pytest.approx(2 / (exp(alpha) + 1))


def test_the_objective_is_left_as_it_was():
    weighted = HierarchicalCrossEntropy(taxonomy=PAIRS, features=3, class_weight=torch.arange(10.0))
    before = {name: value.clone() for name, value in weighted.state_dict().items()}
    assert measure_gradient(weighted) == measure_gradient(HierarchicalCrossEntropy(taxonomy=PAIRS))
    assert weighted.training
    assert all(value.grad is None for value in weighted.parameters())
    assert all(torch.equal(value, before[name]) for name, value in weighted.state_dict().items())


@pytest.mark.parametrize(
    ("tree", "possible", "with_kin"),
    [
        (STAR, 0, 0),
        (ONLY_CHILDREN, 0, 0),
        (PAIRS, 1 - 1 / ((1 + 8 * 2) / 9), 1),
        (ONE_PAIR, 1 - 1.8 / (0.2 * 17 / 9 + 0.8 * 2), 0.2),
    ],
)
def test_what_a_tree_allows_worked_by_hand(tree: Taxonomy, possible: float, with_kin: float):
    assert measure_spread(tree) == pytest.approx((possible, with_kin))


@pytest.mark.parametrize("name", [name for name in catalogue.names() if name != "digits"])  # that one is an order
def test_no_shipped_tree_is_flat_and_every_loss_has_weight_on_it(name: str):
    tree = catalogue.taxonomy(name)
    assert measure_spread(tree).possible > 0.35
    for kind in TREE_LOSSES:
        gradient = measure_gradient(kind(taxonomy=tree))
        assert gradient.kin_share > 0.04
        assert gradient.weakest_level > 0.1


def slow_mistakes(probs: Tensor, target: Tensor, tree: Taxonomy) -> tuple[float, ...]:
    distance, classes = tree.distance("height"), range(probs.shape[1])
    found, best, random, before, after = [], [], [], 0.0, 0.0
    for row, true in zip(probs.tolist(), target.tolist(), strict=True):
        named = max(classes, key=lambda j: row[j])
        decided = min(classes, key=lambda j: sum(row[i] * distance[i, j] for i in classes))
        before, after = before + distance[true, named], after + distance[true, decided]
        if named != true:
            others = [distance[true, j] for j in classes if j != true]
            found, best, random = (
                [*found, distance[true, named]],
                [*best, min(others)],
                [*random, sum(others) / 9],
            )
    mean = [sum(values) / len(values) for values in (found, best, random)]
    one_more = mean[2] - mean[1]
    room = (sum(found) - sum(best) + one_more) / (sum(random) - sum(best) + one_more)
    return (len(target), len(found), *mean, room, after / before - 1)


@pytest.mark.parametrize("tree", [PAIRS, UNEVEN])
def test_mistakes_by_loops(tree: Taxonomy):
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(10, (200,), generator=draw)
    logits = torch.randn(200, 10, generator=draw, dtype=torch.float64)
    logits[torch.arange(200), target] += 1
    found = measure_mistakes(logits.log_softmax(-1), target, tree)
    assert found == pytest.approx(slow_mistakes(logits.softmax(-1), target, tree))


def named(positions: list[int]) -> Tensor:
    """Log-probabilities of a model that names these classes."""
    return (5 * torch.nn.functional.one_hot(torch.tensor(positions), 10).double()).log_softmax(-1)


KIN, FAR = named([1] * 10 + [0] * 90), named([9] * 10 + [0] * 90)  # ten mistakes on the sibling, or elsewhere
TARGET = torch.zeros(100, dtype=torch.int64)


def test_ten_mistakes_on_the_nearest_class_are_enough_and_eight_are_not():
    objective = Hierarchical(taxonomy=PAIRS)
    ten, eight = (diagnose(objective, named([1] * n + [0] * (100 - n)), TARGET) for n in (10, 8))
    assert (ten.mistakes.headroom, eight.mistakes.headroom) == pytest.approx((1 / 11, 1 / 9))
    assert (ten.cause, eight.cause) == ("tree respected already", "healthy")


def test_a_reference_is_what_is_judged():
    objective = Hierarchical(taxonomy=PAIRS)
    assert diagnose(objective, KIN, TARGET, reference=FAR).cause == "healthy"
    assert "plain: 2.000" in str(diagnose(objective, KIN, TARGET, reference=FAR))
    found = diagnose(objective, FAR, TARGET, reference=KIN)
    assert (found.cause, found.findings[0].figure) == ("tree respected already", "reference.headroom")
    assert diagnose(objective, FAR, TARGET).cause == "healthy"


def test_no_mistakes_leave_nothing_to_better():
    found = diagnose(Hierarchical(taxonomy=PAIRS), named([0] * 100), TARGET)
    assert (found.cause, found.findings[0].figure) == ("tree respected already", "mistakes.mistakes")
    assert isnan(found.mistakes.severity)
    assert isnan(found.mistakes.headroom)


def test_the_flatter_of_two_trees_counts():
    assert diagnose(Hierarchical(taxonomy=STAR), FAR, TARGET, taxonomy=PAIRS).cause == "flat tree"
    assert diagnose(Hierarchical(taxonomy=PAIRS), FAR, TARGET, taxonomy=STAR).cause == "flat tree"


def test_several_causes_come_in_order():
    smoothed = SemanticSmoothing(classes=NAMES, relation=relations.tree(STAR), sigma=0.2)
    found = diagnose(smoothed, FAR, TARGET, taxonomy=STAR)
    assert [finding.cause for finding in found.findings] == ["flat tree", "targets without structure"]
    assert found.as_dict()["cause"] == "flat tree"
    plain = diagnose(OneHot(classes=NAMES), KIN, TARGET, taxonomy=PAIRS)
    assert [finding.cause for finding in plain.findings] == ["targets without structure", "tree respected already"]


LEVELS = Taxonomy.from_nested([["a", "b"], ["c", "d"], *NAMES[4:]])  # most classes have all others at one distance
CHAIN = Taxonomy.from_nested([{"1": {"2": {"3": {"4": {"5": {"6": list(NAMES[:5])}}}}}}, list(NAMES[5:])])


def smoothed(sigma: float, relation: Tensor) -> SemanticSmoothing:
    return SemanticSmoothing(classes=NAMES, relation=relation, sigma=sigma)


@pytest.mark.parametrize(
    ("objective", "cause", "says"),
    [
        (smoothed(0.0, relations.tree(PAIRS)), "targets without structure", "100% of the classes are one-hot"),
        (smoothed(0.1, relations.groups(NAMES)), "targets without structure", "100% of the classes are one-hot"),
        (smoothed(0.1, relations.ordinal(10, power=0)), "targets without structure", "uniform over the wrong classes"),
        (smoothed(0.03, relations.tree(PAIRS)), "healthy", "Healthy"),
        (smoothed(0.001, relations.tree(PAIRS)), "weights vanish", "0.0010 of the target"),
        (
            ConfidencePenalty(classes=NAMES),
            "targets without structure",
            "ConfidencePenalty currently treats all wrong classes the same",
        ),
        (HierarchicalCrossEntropy(taxonomy=PAIRS, alpha=0.0), "weights vanish", "The tree has no weight"),
        (HierarchicalCrossEntropy(taxonomy=LEVELS, alpha=20.0), "weights vanish", "A level of the tree has no weight"),
        (HierarchicalCrossEntropy(taxonomy=PAIRS, alpha=1e4), "weights vanish", "The tree has no weight"),  # all are 0
        (
            Hierarchical(taxonomy=CHAIN, targets="leaf"),
            "healthy",
            "Healthy",
        ),  # pulls deep classes down, which is weight too
        (Hierarchical(taxonomy=ONE_PAIR), "flat tree", "20% of the classes are nearer to some"),
        (Hierarchical(taxonomy=STAR), "flat tree", "0.00% differs from cross entropy"),
    ],
)
def test_the_sentence_names_what_to_change(objective: Objective, cause: str, says: str):
    found = diagnose(objective, FAR, TARGET, taxonomy=objective.taxonomy or PAIRS)
    assert [finding.cause for finding in found.findings] == ([] if cause == "healthy" else [cause])
    assert says in str(found)


@pytest.mark.parametrize(
    ("objective", "changed", "message"),
    [
        ("hierarchical", {}, "objective: expected a labelkin objective, got str"),
        (StaticLabels(classes=NAMES, vectors=torch.eye(10)), {}, "StaticLabels defines no probabilities"),
        (AdaptiveLabels(classes=NAMES, preset="paper"), {}, "AdaptiveLabels has no logits"),
        (OneHot(classes=NAMES), {"taxonomy": None}, "taxonomy: expected the tree .* OneHot has none"),
        (OneHot(classes=10), {"taxonomy": Taxonomy.from_nested(["a", "b"])}, "the taxonomy has 2 classes, got 10"),
        (OneHot(classes=(*NAMES[:9], "jj")), {}, "the taxonomy has no class 'jj'"),
        (OneHot(classes=NAMES), {"log_probs": KIN + 1}, "log_probs: expected log-probabilities.* 100 of 100"),
        (OneHot(classes=NAMES), {"log_probs": KIN[:, :9]}, "expected one column for each of 10 classes, got 9"),
        (OneHot(classes=NAMES), {"log_probs": KIN * float("nan")}, "1000 NaN in 100 of 100 rows"),
        (OneHot(classes=NAMES), {"log_probs": KIN.tolist()}, "expected a tensor of log-probabilities, got list"),
        (OneHot(classes=NAMES), {"log_probs": KIN[:0], "target": TARGET[:0]}, "expected at least one sample"),
        (OneHot(classes=NAMES), {"target": TARGET[:50]}, r"target: expected shape \(100,\)"),
        (OneHot(classes=NAMES), {"target": TARGET + 10}, "target: expected class positions from 0 to 9, got 10"),
        (OneHot(classes=NAMES), {"reference": KIN.exp()}, "reference: expected log-probabilities"),
    ],
)
def test_what_cannot_be_diagnosed(objective: Objective, changed: dict, message: str):
    given = {"log_probs": KIN, "target": TARGET, "taxonomy": PAIRS, **changed}
    with pytest.raises(InputError, match=message):
        diagnose(objective, given.pop("log_probs"), given.pop("target"), **given)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs on the same samples, and one on others."""
    folder = tmp_path_factory.mktemp("runs")
    hxe = "hierarchical-cross-entropy"
    asked = {
        "plain": ("one-hot", {}, "digits"),
        "tree": (hxe, {}, "digits"),
        "light": (hxe, {"alpha": 0.001}, "digits"),
        "other": ("one-hot", {}, str(folder / "some.npz")),
    }
    np.savez(folder / "some.npz", x=PIXELS[:200], y=FOUND.target[:200])
    for name, (objective, options, data) in asked.items():
        settings = Settings(epochs=2, lr=0.01, batch_size=256)
        train(RunSpec(data=data, objective=objective, settings=settings, options=options), folder / name)
    return folder


@pytest.mark.long
def test_the_command_says_it_in_words_and_in_json(runs: Path):
    assert call("diagnose", runs / "tree", "--reference", runs / "plain").stdout.startswith("healthy\n\nHealthy: ")
    said = call("diagnose", runs / "light").stdout
    assert said.startswith("weights vanish\n\nThe tree has no weight in the loss: 0.")
    assert "gradient.kin_share" in said
    found = json.loads(call("diagnose", runs / "light", "--reference", runs / "plain", "--json").stdout)
    assert found["cause"] == found["findings"][0]["cause"] == "weights vanish"
    assert found["figures"]["reference.mistakes"] > 0


def test_the_command_refuses_runs_that_do_not_fit(runs: Path):
    assert "no such folder" in refused("diagnose", runs / "tree", "--reference", runs / "absent")
    assert "tested on other samples" in refused("diagnose", runs / "tree", "--reference", runs / "other")
