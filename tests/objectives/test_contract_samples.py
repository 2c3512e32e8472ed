"""How samples, their weights, their order and their names bear on a loss: the same for each form of each objective."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from labelkin import InputError, Objective
from support.cases import CASES, Case, Sample, each
from support.steps import TIGHT, Step, snapshot, step, steps
from support.worlds import CLASSES, World, generator, world

every_case = pytest.mark.parametrize("case", CASES, ids=str)
taking_nodes = pytest.mark.parametrize("case", [case for case in CASES if case.make().takes_nodes], ids=str)
PADDED = [1, 6, 11]


def two_samples(case: Case, objective: Objective, n: int = 12) -> list[Sample]:
    """Two batches, so that adaptive labels are due in one of them at least."""
    return [case.sample(objective, seed=seed, n=n) for seed in (0, 1)]


def parts(outputs: Any) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def assert_alike(ours: list[Step], theirs: list[Step], **options: Any) -> None:
    for a, b in zip(ours, theirs, strict=True):
        a.assert_close(b, **options)


@pytest.mark.long
@every_case
def test_leading_shapes_are_flattened(case: Case):
    objective = case.settled(class_weight=True)
    other = copy.deepcopy(objective)
    weight = torch.rand(12, generator=generator(0), dtype=torch.float64)
    for sample in two_samples(case, objective):
        tall = Sample(*(each(part, lambda t: t.unflatten(0, (3, 4))) for part in vars(sample).values()))
        flat, folded = step(objective, sample, weight=weight), step(other, tall, weight=weight.view(3, 4))
        flat.assert_close(folded, outputs=False)
        torch.testing.assert_close(flat.outputs, each(folded.outputs, lambda t: t.flatten(0, 1)), **TIGHT)


@pytest.mark.long
@every_case
def test_weight_zero_is_not_there(case: Case):
    objective = case.settled(class_weight=True)
    other = copy.deepcopy(objective)
    weight = 0.5 + torch.rand(12, generator=generator(0), dtype=torch.float64)
    weight[PADDED] = 0
    kept = weight > 0
    for sample in two_samples(case, objective):
        sample.target[PADDED], sample.index[PADDED] = -100, -1
        padded = step(objective, sample, weight=weight)
        dropped = step(other, sample.take(kept), weight=weight[kept])
        padded.assert_close(dropped, outputs=False)
        torch.testing.assert_close(each(padded.outputs, lambda t: t[kept]), dropped.outputs, **TIGHT)
        each(padded.outputs, lambda t: t[~kept].any() and pytest.fail("padding has a gradient"))


@every_case
def test_a_batch_of_nothing_but_padding_teaches_nothing(case: Case):
    objective = case.settled()
    taken = step(objective, case.sample(objective), weight=torch.zeros(12, dtype=torch.float64))
    assert torch.isfinite(taken.loss)
    each(taken.outputs, lambda t: (t == 0).all() or pytest.fail("padding has a gradient"))


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case.repeats], ids=str)
def test_whole_weights_are_repetition(case: Case):
    objective = case.settled(class_weight=True)
    other = copy.deepcopy(objective)
    times = torch.tensor([1, 2, 3, 1] * 3)
    rows = torch.arange(12).repeat_interleave(times)
    for sample in two_samples(case, objective):
        weighted = step(objective, sample, weight=times)
        repeated = step(other, sample.take(rows))
        weighted.assert_close(repeated, outputs=False)
        gathered = each(repeated.outputs, lambda t: t.new_zeros(12, t.shape[-1]).index_add(0, rows, t))
        torch.testing.assert_close(weighted.outputs, gathered, **TIGHT)


@pytest.mark.long
@every_case
def test_the_order_of_samples_does_not_matter(case: Case):
    objective = case.settled(class_weight=True)
    other = copy.deepcopy(objective)
    order = torch.randperm(12, generator=generator(0))
    weight = torch.rand(12, generator=generator(1), dtype=torch.float64)
    for sample in two_samples(case, objective):
        ours, theirs = step(objective, sample, weight=weight), step(other, sample.take(order), weight=weight[order])
        ours.assert_close(theirs, outputs=False)
        torch.testing.assert_close(each(ours.outputs, lambda t: t[order]), theirs.outputs, **TIGHT)


@pytest.mark.long
@every_case
def test_class_weights_of_one_change_nothing_and_the_loss_is_linear_in_them(case: Case):
    plain, ones = case.settled(), case.settled(class_weight=True, class_weight_divisor="samples")
    ones.class_weight = torch.ones(CLASSES, dtype=torch.float64)
    sample = case.sample(plain)
    weight = torch.rand(12, generator=generator(0), dtype=torch.float64)

    def loss(class_weight: Tensor) -> Tensor:
        one = copy.deepcopy(ones)
        one.class_weight = class_weight
        return step(one, sample, weight=weight).loss

    first, second = torch.rand(2, CLASSES, generator=generator(1), dtype=torch.float64)
    torch.testing.assert_close(
        loss(torch.ones(CLASSES).double()), step(copy.deepcopy(plain), sample, weight=weight).loss
    )
    torch.testing.assert_close(loss((first + second) / 2), (loss(first) + loss(second)) / 2, **TIGHT)
    assert loss(first) != loss(second)


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case.by_sample], ids=str)
def test_the_loss_is_the_weighted_mean_of_each_sample_s_own(case: Case):
    plain = case.settled()
    sample = case.sample(plain)
    weight = torch.rand(12, generator=generator(0), dtype=torch.float64)
    # Label smoothing weighs each class's part of the target by that class, as torch does, so its losses are taken weighted.
    smoothed = case.objective == "label-smoothing"
    single = case.settled(class_weight=True, class_weight_divisor="samples") if smoothed else plain
    own = torch.stack([step(copy.deepcopy(single), sample.take([i])).loss for i in range(12)])
    factor = world().class_weight[sample.target]
    total = (weight * own * (1 if smoothed else factor)).sum()
    for divisor, count in {"weights": (weight * factor).sum(), "samples": weight.sum()}.items():
        weighted = case.settled(class_weight=True, class_weight_divisor=divisor)
        torch.testing.assert_close(step(weighted, sample, weight=weight).loss, total / count, **TIGHT)


@pytest.mark.long
@every_case
def test_a_loss_that_accumulates_is_the_mean_of_its_parts(case: Case):
    objective = case.settled(class_weight=True, class_weight_divisor="samples")
    weight = torch.rand(12, generator=generator(0), dtype=torch.float64)
    parts = [slice(0, 5), slice(5, 12)]
    same = []
    for sample in two_samples(case, objective):
        own = [step(copy.deepcopy(objective), sample.take(part), weight=weight[part]).loss for part in parts]
        mean = sum(weight[part].sum() * loss for part, loss in zip(parts, own, strict=True)) / weight.sum()
        same.append(bool(torch.isclose(step(objective, sample, weight=weight).loss, mean, rtol=1e-9, atol=0)))
    # The text preset of the label embedding has no term over a part of the samples, and could accumulate as well.
    # The loss of adaptive labels by cosines could too, but each part of a batch moves the labels for the next.
    assert all(same) == (objective.accumulates or case.by_sample or not getattr(objective, "divides_by_right", True))


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if case.renames], ids=str)
def test_classes_by_another_name(case: Case):
    """Relation, tree, state, head and targets renamed together: scores and gradients follow, the loss stays."""
    here, order = world(), torch.tensor([3, 0, 5, 1, 4, 2])
    there = here.renamed(order)
    objective = case.settled(here, class_weight=True, features=4)
    other = renamed(case, objective, here, there, order)
    columns = case.columns(here, objective)
    outputs = torch.tensor([columns.index(name) for name in case.columns(there, other)])
    place = order.argsort()
    draw = generator(5)
    for sample in two_samples(case, objective):
        moved = Sample(each(sample.outputs, lambda t: t[:, outputs]), place[sample.target], sample.index)
        ours, theirs = step(objective, sample), step(other, moved)
        torch.testing.assert_close(ours.loss, theirs.loss, **TIGHT)
        torch.testing.assert_close(each(ours.outputs, lambda t: t[:, outputs]), theirs.outputs, **TIGHT)
        gradients = {name: g for name, g in ours.parameters.items() if g is not None}
        expected = {name: permuted(name, g, order, outputs) for name, g in gradients.items()}
        torch.testing.assert_close({k: theirs.parameters[k] for k in expected}, expected, **TIGHT)
        features = torch.randn(5, 4, generator=draw, dtype=torch.float64)
        scores, moved_scores = objective.scores(objective(features)), other.scores(other(features))
        torch.testing.assert_close(scores[:, order], moved_scores, **TIGHT)


def renamed(case: Case, objective: Objective, here: World, there: World, order: Tensor) -> Objective:
    """What `objective` has learned, under the names of `there`."""
    other = case.make(there, class_weight=True, features=4)
    columns = case.columns(here, objective)
    outputs = torch.tensor([columns.index(name) for name in case.columns(there, other)])
    start, state = snapshot(case.make(here, class_weight=True, features=4)), other.state_dict()
    learned = dict(objective.named_parameters())
    for name, value in objective.state_dict().items():
        if isinstance(value, dict):
            state[name] = {**value, "soft": value["soft"][:, order], "signature": state[name]["signature"]}
        elif name in learned or not torch.equal(value, start[name]):
            state[name] = permuted(name, value.detach(), order, outputs)
    other.load_state_dict(state)
    return other


def permuted(name: str, value: Tensor, order: Tensor, outputs: Tensor) -> Tensor:
    """State or its gradient, its class axes in the new order."""
    if name.startswith(("head.", "similarity_head.")):
        return value[outputs]
    axes = [0] if name in ("labels", "epoch_labels") else range(value.dim())
    for axis in axes:
        value = value.index_select(axis, order) if value.shape[axis] == CLASSES else value
    return value


@pytest.mark.long
@every_case
def test_soft_targets_are_averages_or_refused(case: Case):
    objective = case.settled(class_weight=True, class_weight_divisor="samples")
    sample = case.sample(objective)
    first = torch.nn.functional.one_hot(sample.target, CLASSES).double()
    if not objective.linear_in_target:
        with pytest.raises(InputError, match=r"target: .* not linear in the target.* give class positions"):
            objective.loss(sample.outputs, first, index=sample.index)
        return

    def taken(target: Tensor) -> Step:
        weight = torch.rand(12, generator=generator(0), dtype=torch.float64)
        return step(copy.deepcopy(objective), Sample(sample.outputs, target, sample.index), weight=weight)

    second = torch.softmax(torch.randn(12, CLASSES, generator=generator(2), dtype=torch.float64), -1)
    hard, one_hot, other, mixed = map(taken, (sample.target, first, second, 0.3 * first + 0.7 * second))
    one_hot.assert_close(hard)
    if getattr(objective, "divides_by_right", False):  # what z2 gets right depends on the target; it moves E alone
        shared = set(hard.terms) - {"embedding"}
        for name in shared:
            torch.testing.assert_close(mixed.terms[name], 0.3 * hard.terms[name] + 0.7 * other.terms[name], **TIGHT)
    else:
        torch.testing.assert_close(mixed.loss, 0.3 * hard.loss + 0.7 * other.loss, **TIGHT)
    for ours, one, two in zip(*(parts(taken.outputs) for taken in (mixed, hard, other)), strict=True):
        torch.testing.assert_close(ours, 0.3 * one + 0.7 * two, **TIGHT)


@every_case
def test_nodes_are_refused_where_they_mean_nothing(case: Case):
    objective = case.settled()
    sample = case.sample(objective)
    if not objective.takes_nodes:
        with pytest.raises(InputError, match="node: does not apply"):
            objective.loss(sample.outputs, sample.target, node=torch.full((12,), -1), index=sample.index)


@taking_nodes
def test_a_leaf_as_node_is_its_class_and_minus_one_is_known(case: Case):
    objective = case.settled()
    sample = case.sample(objective)
    leaves = torch.from_numpy(objective.taxonomy.leaves.copy())
    known = step(copy.deepcopy(objective), sample)
    garbage = Sample(sample.outputs, torch.full((12,), -100), sample.index)
    step(copy.deepcopy(objective), garbage, node=leaves[sample.target]).assert_close(known)
    step(copy.deepcopy(objective), sample, node=torch.full((12,), -1)).assert_close(known)
    half = torch.arange(12) % 2 == 0
    node = torch.where(half, leaves[sample.target], -1)
    step(copy.deepcopy(objective), sample, node=node).assert_close(known)


@taking_nodes
def test_nothing_below_an_inner_node_contributes(case: Case):
    objective = case.settled(class_weight=True)
    tree = objective.taxonomy
    live = tree.node("live")
    sample = case.sample(objective)
    taken = step(objective, sample, node=torch.full((12,), live))
    assert torch.isfinite(taken.loss)
    if objective.width == CLASSES:  # a flat softmax: the classes below share one gradient, by their probability
        return
    below = [i - 1 for i in tree.subtree(live) if i != live]
    torch.testing.assert_close(taken.outputs[:, below], torch.zeros(12, len(below)).double(), rtol=0, atol=1e-15)
    assert taken.outputs[:, live - 1].all()


@taking_nodes
def test_the_root_as_node_knows_nothing(case: Case):
    objective = case.settled()
    taken = step(objective, case.sample(objective), node=torch.zeros(12, dtype=torch.int64))
    for part in parts(taken.outputs):
        torch.testing.assert_close(part, torch.zeros_like(part))


def test_steps_differ_where_something_differs():
    """The comparison itself can fail."""
    case = CASES[0]
    objective = case.settled()
    first, second = steps(objective, two_samples(case, objective))
    with pytest.raises(AssertionError, match="loss"):
        first.assert_close(second)
