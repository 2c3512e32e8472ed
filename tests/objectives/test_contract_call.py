"""PyTorch's conventions, for each form of each objective: calls, reductions, ignored targets, predictions."""

import copy
import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelkin import OBJECTIVES, InputError, LabelSmoothing, Model, Objective, OneHot, Taxonomy
from labelkin.objectives import TreeObjective, TwoHeads
from labelkin.objectives import _validation as objective_inputs
from support.cases import CASES, Case, Sample, each
from support.steps import TIGHT, snapshot, step
from support.worlds import CLASSES, default_dtype, generator, world

every_case = pytest.mark.parametrize("case", CASES, ids=str)
PER_SAMPLE = [case for case in CASES if case.by_sample]
WHOLE_BATCH = [case for case in CASES if not case.by_sample]
IGNORED = [1, 6, 11]
COMPILED = {
    "one-hot-plain",
    "conditional-softmax-plain",
    "label-embedding-paper",
    "adaptive-labels-all",
    "retrospection-plain",
}
HELPERS = {"mean", "rows", "only_term", "figures", "class_factor", "option_names"}


def weights() -> Tensor:
    return 0.5 + torch.rand(12, generator=generator(0), dtype=torch.float64)


def features() -> Tensor:
    return torch.randn(12, 4, generator=generator(9), dtype=torch.float64)


# Calls.


@every_case
def test_a_head_called_with_a_target_returns_the_loss_and_steps_once(case: Case):
    head = case.settled(features=4, class_weight=True)
    other = copy.deepcopy(head)
    sample, batch = case.sample(head), {"weight": weights()}
    loss = head(features(), sample.target, index=sample.index, **batch)
    expected = other.loss(other(features()), sample.target, index=sample.index, **batch)
    assert isinstance(loss, Tensor)
    assert loss.shape == ()
    torch.testing.assert_close(loss, expected, **TIGHT)
    torch.testing.assert_close(snapshot(head), snapshot(other), **TIGHT)
    loss.backward()
    assert head.head.weight.grad.any()


@every_case
def test_a_criterion_called_with_outputs_returns_the_loss_and_steps_once(case: Case):
    criterion = case.settled(class_weight=True)
    other = copy.deepcopy(criterion)
    sample = case.sample(criterion)
    loss = criterion(sample.outputs, sample.target, index=sample.index)
    assert loss == other.loss(sample.outputs, sample.target, index=sample.index)
    torch.testing.assert_close(snapshot(criterion), snapshot(other), rtol=0, atol=0)


@pytest.mark.long
@pytest.mark.parametrize("case", [case for case in CASES if str(case) in COMPILED], ids=str)
def test_a_compiled_call_equals_a_plain_one(case: Case):
    torch._dynamo.reset()
    plain = case.settled(features=4)
    other = copy.deepcopy(plain)
    compiled = torch.compile(other, fullgraph=True, backend="aot_eager")
    sample = case.sample(plain)
    sample.target[IGNORED] = -100
    for x in (features(), 2 * features()):
        ours = compiled(x, sample.target, index=sample.index)
        torch.testing.assert_close(ours, plain(x, sample.target, index=sample.index), rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(snapshot(other), snapshot(plain), rtol=1e-8, atol=1e-10)


@every_case
def test_a_model_returns_what_its_objective_does(case: Case):
    objective = case.settled(features=4)
    backbone, sample = nn.Linear(3, 4).double(), case.sample(objective)
    model = Model(backbone, objective)
    x = torch.randn(12, 3, generator=generator(3), dtype=torch.float64)
    first, second, third = (copy.deepcopy(model) for _ in range(3))
    expected = model.objective(backbone(x), sample.target, index=sample.index)
    for loss in (
        first(x, sample.target, index=sample.index),
        second.loss(x, sample.target, index=sample.index),
        third.loss_terms(x, sample.target, index=sample.index).total,
    ):
        torch.testing.assert_close(loss, expected, **TIGHT)
    each(first(x), lambda part: torch.testing.assert_close(part.shape, torch.Size([12, objective.width])))


@every_case
def test_classes_come_first_and_features_second(case: Case):
    given = case.options(world())
    kind = OBJECTIVES[case.objective]
    names = list(inspect.signature(kind).parameters)
    assert names[-4:] == ["class_weight", "class_weight_divisor", "reduction", "ignore_index"]
    if kind.takes_nodes or issubclass(kind, TreeObjective):
        assert names[:3] == ["taxonomy", "classes", "features"]
        assert kind(given.pop("taxonomy"), **given).num_classes == CLASSES
    else:
        assert names[:2] == ["classes", "features"]
        tree = given.get("taxonomy")  # its terms need to know which class is which
        assert kind(CLASSES if tree is None else tree.classes, **given).num_classes == CLASSES


# Reductions.


@pytest.mark.long
@pytest.mark.parametrize("divisor", ["weights", "samples"])
@pytest.mark.parametrize("case", PER_SAMPLE, ids=str)
def test_reductions_of_losses_of_samples(case: Case, divisor: str):
    def taken(reduction: str) -> tuple[Objective, Tensor, Sample]:
        objective = case.settled(class_weight=True, class_weight_divisor=divisor, reduction=reduction)
        sample = case.sample(objective)
        sample.target[IGNORED] = -100
        shaped = Sample(*(each(part, lambda t: t.unflatten(0, (3, 4))) for part in vars(sample).values()))
        loss = objective(shaped.outputs, shaped.target, index=shaped.index, weight=weights().view(3, 4))
        return objective, loss, sample

    (mean, of_mean, sample), (added, of_sum, _), (none, of_none, _) = map(taken, ("mean", "sum", "none"))
    assert of_none.shape == (3, 4)
    assert not of_none.flatten()[IGNORED].any()
    torch.testing.assert_close(of_none.sum(), of_sum, **TIGHT)
    kept = sample.target >= 0
    factor = world().class_weight[sample.target[kept]] if divisor == "weights" else 1.0
    torch.testing.assert_close(of_sum / (weights()[kept] * factor).sum(), of_mean, **TIGHT)
    for other in (added, none):
        torch.testing.assert_close(snapshot(other), snapshot(mean), rtol=0, atol=0)


@pytest.mark.long
@pytest.mark.parametrize("case", PER_SAMPLE, ids=str)
def test_each_loss_depends_on_its_own_sample(case: Case):
    whole, single = (case.settled(class_weight=True, reduction="none") for _ in range(2))
    sample = case.sample(whole)
    terms = whole.loss_terms(sample.outputs, sample.target, index=sample.index).terms
    assert all(term.shape == (12,) for term in terms.values())
    own = copy.deepcopy(single)(sample.outputs, sample.target, index=sample.index)
    for i in range(12):
        one = sample.take([i])
        found = copy.deepcopy(single)(one.outputs, one.target, index=one.index)
        torch.testing.assert_close(found, own[i : i + 1], **TIGHT)


@pytest.mark.parametrize("case", WHOLE_BATCH, ids=str)
def test_a_loss_of_the_whole_batch_is_summed_in_proportion_and_has_no_losses_of_samples(case: Case):
    with pytest.raises(InputError, match=r"reduction: \w+ has no loss for a single sample, because .*; use 'mean' or"):
        case.make(reduction="none")
    mean, added = (case.settled(class_weight=True, reduction=reduction) for reduction in ("mean", "sum"))
    for seed in (0, 1):
        sample = case.sample(mean, seed=seed)
        count = (weights() * world().class_weight[sample.target]).sum()
        ours, theirs = step(added, sample, weight=weights()), step(mean, sample, weight=weights())
        torch.testing.assert_close(ours.loss, theirs.loss * count, **TIGHT)
        torch.testing.assert_close(ours.state, theirs.state, **TIGHT)
        for name, gradient in theirs.parameters.items():
            torch.testing.assert_close(ours.parameters[name], gradient * count, **TIGHT)


@pytest.mark.parametrize("name", ["label-embedding", "compressed-label-embedding"])
def test_a_sum_in_chunks_is_the_sum_of_the_whole(name: str, monkeypatch):
    from labelkin.objectives import _label_embedding as label_embedding
    from labelkin.objectives import _label_embedding_chunked as chunks

    with default_dtype(torch.float64):
        torch.manual_seed(0)
        whole = OBJECTIVES[name](5, features=4, reduction="sum", class_weight=torch.rand(5))
    chunked, target = copy.deepcopy(whole), torch.arange(12) % 5
    target[3] = -100
    expected = whole(features(), target)
    for module in (chunks, label_embedding):
        monkeypatch.setattr(module, "CHUNK", 10)  # two samples at a time
    found = chunked(features(), target)
    torch.testing.assert_close(found, expected, **TIGHT)
    found.backward()
    expected.backward()
    for ours, theirs in zip(chunked.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, **TIGHT)


# Ignored targets.


@pytest.mark.long
@every_case
@pytest.mark.parametrize("ignore_index", [-100, 255, 4])
def test_an_ignored_target_is_not_there(case: Case, ignore_index: int):
    """4 is a class of which no sample is drawn."""
    objective = case.settled(class_weight=True, ignore_index=ignore_index)
    other = copy.deepcopy(objective)
    kept = torch.ones(12, dtype=torch.bool)
    kept[IGNORED] = False
    for seed in (0, 1):
        sample = case.sample(objective, seed=seed)
        sample.target[IGNORED], sample.index[IGNORED] = ignore_index, -1
        for part in sample.outputs if case.pair else [sample.outputs]:
            part[IGNORED] = torch.nan
        ignored, dropped = step(objective, sample), step(other, sample.take(kept))
        ignored.assert_close(dropped, outputs=False)
        torch.testing.assert_close(each(ignored.outputs, lambda t: t[kept]), dropped.outputs, **TIGHT)
        each(ignored.outputs, lambda t: t[~kept].any() and pytest.fail("an ignored sample has a gradient"))


@pytest.mark.long
@every_case
def test_an_ignored_target_is_not_there_where_values_may_not_be_read(case: Case, monkeypatch):
    """As on an accelerator: nothing looks at values, and nothing masks outputs, so outputs must be finite."""
    monkeypatch.setattr(objective_inputs, "reads_values", lambda values: False)
    monkeypatch.setattr(objective_inputs, "without_padding", lambda *_: pytest.fail("all outputs were masked"))
    objective = case.settled(class_weight=True)
    other = copy.deepcopy(objective)
    kept = torch.ones(12, dtype=torch.bool)
    kept[IGNORED] = False
    sample = case.sample(objective)
    sample.target[IGNORED] = -100
    step(objective, sample).assert_close(step(other, sample.take(kept)), outputs=False)


@every_case
def test_a_batch_of_ignored_targets_has_loss_zero_and_teaches_nothing(case: Case):
    learned = case.objective == "mixed-cross-entropy" and not case.by_sample  # its penalty is there without samples
    objective = case.settled()
    sample = case.sample(objective)
    sample.target[:] = -100
    taken = step(objective, sample)
    assert torch.isfinite(taken.loss)
    assert learned or taken.loss == 0
    each(taken.outputs, lambda t: t.any() and pytest.fail("an ignored sample has a gradient"))


def test_without_weight_no_outputs_are_masked(monkeypatch):
    monkeypatch.setattr(objective_inputs, "without_padding", lambda *_: pytest.fail("all outputs were masked"))
    assert OneHot(3)(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])) > 0


# The same as torch.


def torch_loss(outputs: Tensor, target: Tensor, **options: Any) -> Tensor:
    channels = outputs.movedim(-1, 1)
    return nn.CrossEntropyLoss(**options)(channels, target.movedim(-1, 1) if target.is_floating_point() else target)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.3])
@pytest.mark.parametrize("soft", [False, True], ids=["positions", "probabilities"])
@pytest.mark.parametrize("lead", [(7,), (3, 4), (2, 3, 4)])
def test_cross_entropy_and_label_smoothing_are_torch_s(reduction, weighted, smoothing, soft, lead):
    draw = generator(0)
    outputs = torch.randn(*lead, 5, generator=draw, dtype=torch.float64)
    class_weight = torch.rand(5, generator=draw, dtype=torch.float64) if weighted else None
    if soft:
        target = torch.softmax(torch.randn(*lead, 5, generator=draw, dtype=torch.float64), -1)
    else:
        target = torch.randint(5, lead, generator=draw)
        target.view(-1)[[0, 3]] = -100
    with default_dtype(torch.float64):
        given = {"reduction": reduction, "class_weight": class_weight}
        ours = OneHot(5, **given) if smoothing is None else LabelSmoothing(5, smoothing=smoothing, **given)
    expected = torch_loss(outputs, target, weight=class_weight, reduction=reduction, label_smoothing=smoothing or 0.0)
    torch.testing.assert_close(ours(outputs, target), expected, **TIGHT)


def test_another_index_is_ignored_as_torch_does():
    outputs, target = torch.randn(6, 3, generator=generator(0)), torch.tensor([0, 1, 2, 2, 1, 0])
    expected = nn.CrossEntropyLoss(ignore_index=2, weight=torch.tensor([1.0, 2.0, 3.0]))(outputs, target)
    torch.testing.assert_close(OneHot(3, ignore_index=2, class_weight=[1.0, 2.0, 3.0])(outputs, target), expected)


# Predictions, repr and names.


@every_case
def test_predictions_and_probabilities(case: Case):
    objective = case.settled(features=4).eval()
    outputs = objective(features().view(3, 4, 4))
    predicted = objective.predict(outputs)
    assert predicted.shape == (3, 4)
    assert torch.equal(predicted, objective.scores(outputs).argmax(-1))
    if objective.has_probabilities:
        torch.testing.assert_close(objective.probs(outputs), objective.log_probs(outputs).exp(), rtol=0, atol=0)
    else:
        with pytest.raises(InputError, match="no probabilities"):
            objective.probs(outputs)


@every_case
def test_repr_shows_hyperparameters(case: Case):
    shown = repr(case.make(features=4, reduction="sum", class_weight=True))
    assert f"classes={CLASSES}, features=4" in shown
    for name, value in case.options(world()).items():
        if isinstance(value, int | float | str):
            assert f"{name}={value!r}" in shown
    assert "reduction='sum'" in shown
    assert f"class_weight=({CLASSES},)" in shown
    assert "ignore_index" not in shown  # as torch's modules leave out what is not set


@pytest.mark.long
@every_case
def test_helpers_are_not_public(case: Case):
    assert not [name for name in HELPERS if hasattr(case.make(), name)]


# What is refused.


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 4), (2, 3, 4, 3)], ids=str)
def test_classes_on_axis_one_are_refused_with_what_to_do(shape):
    outputs, target = torch.zeros(shape), torch.zeros(shape[0], *shape[2:], dtype=torch.int64)
    axes = ", ".join(map(str, (0, *range(2, len(shape)), 1)))
    with pytest.raises(InputError) as caught:
        OneHot(3)(outputs, target)
    assert f"use outputs.permute({axes})" in str(caught.value)
    assert OneHot(3)(eval(f"outputs.permute({axes})"), target) > 0
    with pytest.raises(InputError, match=r"classes on axis 1; use outputs\.permute"):
        OBJECTIVES["label-embedding"](3)(TwoHeads(outputs, outputs), target)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reduction": "avg"}, "reduction: expected one of 'mean', 'sum', 'none', got 'avg'"),
        ({"class_weight_divisor": "n"}, "class_weight_divisor: expected one of 'weights', 'samples', got 'n'"),
        ({"ignore_index": 1.5}, "ignore_index: expected a whole number, got 1.5"),
        ({"ignore_index": None}, "ignore_index: expected a whole number, got None"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], sentence: str):
    with pytest.raises(InputError) as caught:
        OneHot(3, **options)
    assert sentence in str(caught.value)


def test_a_number_in_place_of_a_tree_is_refused():
    with pytest.raises(InputError, match=r"taxonomy: expected a labelkin.Taxonomy, got int"):
        OBJECTIVES["conditional-softmax"](3)
    assert OBJECTIVES["conditional-softmax"](Taxonomy.from_nested({"a": ["b", "c"], "d": ["e"]}))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_probabilities_of_any_precision_are_targets(dtype: torch.dtype):
    for seed in range(20):
        target = torch.softmax(torch.randn(32, 10, generator=generator(seed)).to(dtype), -1)
        assert torch.isfinite(OneHot(10)(torch.zeros(32, 10), target))
    with pytest.raises(InputError, match="target: expected rows that sum to 1"):
        OneHot(10)(torch.zeros(32, 10), 0.95 * target)
