"""Tree terms on any objective: their values, their reductions, what they need and how a run asks for them."""

import pytest
import torch

from labelkin import OBJECTIVES, Context, InputError, LabelSmoothing, OneHot, StaticLabels, Taxonomy
from labelkin import functional as lf
from support.cases import CASES, Case
from support.numeric import close, positions, probabilities, values
from support.worlds import CLASSES, default_dtype, world

TREE = world().taxonomy
INDEX = lf.tree_index(TREE)
with_terms = pytest.mark.parametrize("case", [case for case in CASES if case.variant.endswith("-tree-terms")], ids=str)


def one_hot(**options):
    tree = options.get("taxonomy")
    with default_dtype(torch.float64):
        return OneHot(CLASSES if tree is None else tree.classes, **options)


@with_terms
def test_the_total_is_the_plain_loss_plus_weighted_terms(case: Case):
    objective = case.settled(class_weight=True)
    sample = case.sample(objective)
    index = {"index": sample.index} if "index" in objective.needs else {}
    log_probs = objective.log_probs(sample.outputs)
    found = objective.loss_terms(sample.outputs, sample.target, **index)
    factor = world().class_weight[sample.target]
    ancestors = lf.ancestors(log_probs, INDEX.leaves[sample.target], INDEX, weight=1.0)
    distance = lf.expected_distance(log_probs, INDEX.leaves[sample.target], INDEX)
    for name, losses in (("ancestors", ancestors), ("expected_cost", distance)):
        close(found.terms[name].detach(), (factor * losses).sum().detach() / factor.sum())
    plain = case.settled(class_weight=True, ancestors=0.0, expected_cost=0.0)
    expected = plain.loss_terms(sample.outputs, sample.target, **index)
    close(
        found.total.detach(),
        (expected.total + 0.3 * found.terms["ancestors"] + 0.2 * found.terms["expected_cost"]).detach(),
    )
    assert not {"ancestors", "expected_cost"} & set(expected.terms)


def test_every_objective_with_probabilities_is_among_the_cases():
    named = {case.objective for case in CASES if case.variant.endswith("-tree-terms")}
    assert named == {name for name, kind in OBJECTIVES.items() if kind.has_probabilities} - {"kin"}


def test_with_cross_entropy_ancestors_is_a_known_loss():
    """Weights 1 + w (inner nodes at or below on the path) on `-log p(node | parent)`: at w = 0, cross entropy."""
    logits, target = values(0, 5, CLASSES), positions(1, CLASSES, 5)
    close(one_hot(taxonomy=TREE, ancestors=0.0)(logits, target), one_hot()(logits, target))
    flat = Taxonomy.from_paths([f"c{i}" for i in range(CLASSES)])
    close(one_hot(taxonomy=flat, ancestors=2.0)(logits, target), one_hot()(logits, target))
    mistake = 1 - torch.softmax(logits, -1).gather(-1, target[:, None]).mean()
    close(one_hot(taxonomy=flat, expected_cost=2.0)(logits, target), one_hot()(logits, target) + 2 * mistake)


def test_the_tree_and_the_matrix_of_its_distances_agree():
    logits, target, soft = values(2, 5, CLASSES), positions(3, CLASSES, 5), probabilities(4, 5, CLASSES)
    tree = one_hot(taxonomy=TREE, expected_cost=0.7)
    matrix = one_hot(costs=TREE.distance("height"), expected_cost=0.7)
    for given in (target, soft):
        close(matrix(logits, given), tree(logits, given))


def test_costs_of_an_inner_node_are_the_mean_outside_and_0_inside():
    costs = world().embedding
    with default_dtype(torch.float64):
        objective = OBJECTIVES["hierarchical-cross-entropy"](TREE, costs=costs, expected_cost=1.0)
    logits, live = values(5, 1, CLASSES), TREE.node("live")
    found = objective.loss_terms(logits, torch.tensor([0]), node=torch.tensor([live])).terms["expected_cost"]
    probs = torch.softmax(logits, -1)[0]
    inside = [i for i, name in enumerate(TREE.classes) if name in ("c0", "c1", "c2")]
    outside = [i for i in range(CLASSES) if i not in inside]
    close(found, sum(probs[j] * costs[inside, j].mean() for j in outside))


def test_classes_in_another_order():
    order = ("c5", "c0", "c3", "c1", "c4", "c2")
    place = [TREE.classes.index(name) for name in order]
    logits, target = values(6, 5, CLASSES), positions(7, CLASSES, 5)
    with default_dtype(torch.float64):
        here = OneHot(TREE.classes, taxonomy=TREE, ancestors=0.5, expected_cost=0.5)
        there = OneHot(order, taxonomy=TREE, ancestors=0.5, expected_cost=0.5)
    close(there(logits[:, place], torch.tensor(place).argsort()[target]), here(logits, target))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: OneHot(6, ancestors=0.1),
            r"ancestors: a weight of 0\.1 needs the tree of the classes.*; pass a .* taxonomy=\.",
        ),
        (
            lambda: OneHot(6, expected_cost=0.1),
            r"expected_cost: a weight of 0\.1 needs the tree .*taxonomy=, or a K x K matrix as costs=",
        ),
        (lambda: OneHot(6, ancestors=0.1, costs=torch.eye(6)), r"ancestors: a weight of 0\.1 needs the tree"),
        (lambda: OneHot(6, taxonomy=TREE, ancestors=-1.0), r"ancestors: expected .* got -1\.0"),
        (lambda: OneHot(6, taxonomy=3, ancestors=0.1), r"taxonomy: expected a labelkin\.Taxonomy, got int"),
        (lambda: OneHot(4, taxonomy=TREE, ancestors=0.1), r"classes: the taxonomy has 6 classes, got 4"),
        (
            lambda: OneHot(6, taxonomy=TREE, ancestors=0.1),
            r"classes: expected the names .* got their number, which does not tell that target 0 is",
        ),
        (lambda: OneHot(6, costs=torch.eye(5), expected_cost=1.0), r"costs: expected 6 x 6"),
        (
            lambda: StaticLabels(6, vectors=torch.eye(6), taxonomy=TREE, ancestors=0.1),
            r"ancestors: expected 0, because StaticLabels defines no class probabilities, got 0\.1; use",
        ),
    ],
)
def test_what_is_refused(make, sentence: str):
    with pytest.raises(InputError, match=sentence):
        make()


def test_a_run_gets_the_tree_from_its_context_only_if_a_term_asks_for_it():
    context = Context(classes=TREE.classes, features=4, taxonomy=TREE)
    assert LabelSmoothing.build(context).taxonomy is None
    assert LabelSmoothing.build(context, ancestors=0.1).taxonomy == TREE
    assert LabelSmoothing.build(context, expected_cost=0.1).taxonomy == TREE
    assert LabelSmoothing.build(context, expected_cost=0.1, costs=torch.ones(6, 6)).taxonomy is None
    built = Context(classes=("a", "b", "c"), features=2, inputs=torch.randn(6, 2), targets=torch.arange(6) % 3)
    assert OneHot.build(built, ancestors=0.1).taxonomy.classes == ("a", "b", "c")
    with pytest.raises(InputError, match="needs a taxonomy or training data"):
        OneHot.build(Context(classes=("a", "b"), features=2), ancestors=0.1)


def test_a_state_of_other_weights_is_refused():
    saved = OneHot(TREE.classes, taxonomy=TREE, ancestors=0.1, features=3).state_dict()
    with pytest.raises(InputError, match=r"ancestors: this OneHot has 0\.2, the saved state is from one with 0\.1"):
        OneHot(TREE.classes, taxonomy=TREE, ancestors=0.2, features=3).load_state_dict(saved)
    OneHot(TREE.classes, taxonomy=TREE, ancestors=0.1, features=3).load_state_dict(saved)
    assert set(saved) == {"head.weight", "head.bias", "_extra_state"}
