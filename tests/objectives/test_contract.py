"""What every objective promises whoever calls it, held for each form of each."""

import copy
import io

import pytest
import torch

from labelkin import OBJECTIVES, InputError, LabelSmoothing, MixedCrossEntropy, Objective, OneHot, SemanticSmoothing
from labelkin.objectives import Batch
from labelkin.objectives import _validation as objective_inputs
from labelkin.relations import GroupRows
from support.cases import CASES, Case
from support.real import build_on_digits, digits
from support.steps import snapshot, steps
from support.worlds import CLASSES

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_name = pytest.mark.parametrize("name", OBJECTIVES)

TERMS = {
    "confidence-penalty": {"confidence_penalty"},
    "hierarchical": {"hierarchical"},
    "convex-hierarchical": {"convex_hierarchical"},
    "conditional-softmax": {"conditional_softmax"},
    "hierarchical-cross-entropy": {"hierarchical_cross_entropy"},
    "kin": {"hard", "soft", "similarity", "confidence"},
    "label-embedding": {"hard", "soft", "similarity", "confidence", "embedding"},
    "compressed-label-embedding": {"hard", "soft", "similarity", "confidence", "embedding"},
    "pretrained-label-embedding": {"hard", "soft"},
    "retrospection": {"retrospection"},
    "static-labels": {"huber"},
    "online-label-smoothing": {"hard", "soft"},
    "unit-sphere": {"cosine"},
    "bilt": {"cross_entropy", "cost", "coarser"},
    "hierarchical-ensemble": {"cross_entropy", "parents"},
    "hier-cos": {"divergence", "levels"},
    "haframe": {"cross_entropy", "cosine"},
}
MORE_TERMS = {
    **{
        str(case): {"embedding"} for case in CASES if case.objective == "kin" and case.variant not in ("plain", "costs")
    },
    "unit-sphere-plain": {"cross_entropy"},
    "unit-sphere-plain-tree-terms": {"cross_entropy"},
    "adaptive-labels-repel": {"repel"},
    "adaptive-labels-all": {"repel"},
    **{str(case): {"force", "mean_eps"} for case in CASES if case.variant.endswith(("-exact", "-penalty"))},
}


def tree_terms(objective: Objective) -> set[str]:
    return {name for name in ("ancestors", "expected_cost") if getattr(objective, name)}


def head_names(objective: Objective) -> set[str]:
    return {
        name
        for name, _ in objective.named_parameters()
        if name.startswith(("head.", "similarity_head.", "classifier."))
    }


def test_every_objective_has_a_case():
    assert {case.objective for case in CASES} == set(OBJECTIVES)
    assert len({str(case) for case in CASES}) == len(CASES)


@every_case
def test_shapes(case: Case):
    objective = case.settled(features=4)
    features = torch.randn(3, 2, 4, dtype=torch.float64)
    outputs = objective(features)
    for part in outputs if case.pair else [outputs]:
        assert part.shape == (3, 2, objective.width)
    scores = objective.scores(outputs)
    assert scores.shape == (3, 2, CLASSES)
    assert objective.label_vectors().shape[0] == CLASSES
    assert objective.label_vectors().dim() == 2
    assert objective.has_probabilities == (case.objective != "static-labels")
    if not objective.has_probabilities:
        with pytest.raises(InputError, match="no probabilities"):
            objective.log_probs(outputs)
    else:
        log_probs = objective.log_probs(outputs)
        assert log_probs.shape == (3, 2, CLASSES)
        torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(3, 2, dtype=torch.float64))
        assert torch.equal(log_probs.argmax(-1), scores.argmax(-1))


@pytest.mark.long
@every_case
def test_loss_is_a_finite_scalar_with_named_terms_and_gradients(case: Case):
    objective = case.settled(class_weight=True)
    for taken in steps(objective, [case.sample(objective, seed=seed) for seed in (0, 1)]):
        assert taken.loss.shape == ()
        assert torch.isfinite(taken.loss)
        named = TERMS.get(case.objective, {"cross_entropy"}) | MORE_TERMS.get(str(case), set())
        assert set(taken.terms) == named | tree_terms(objective)
        for part in taken.outputs if case.pair else [taken.outputs]:
            assert torch.isfinite(part).all()
            assert part.any()


@every_case
def test_every_parameter_learns(case: Case):
    objective = case.settled(features=4)
    sample = case.sample(objective)
    features = torch.randn(12, 4, dtype=torch.float64)
    if case.pair:  # the embedding learns from samples whose z2 is right, so let some be right
        sample = sample.take(slice(None))
        sample.target[:6] = objective(features[:6]).z2.argmax(-1)
    objective.loss_from_features(features, sample.target, index=sample.index).total.backward()
    for name, parameter in objective.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


@pytest.mark.long
@every_case
def test_loss_is_the_total_of_its_terms_and_of_features(case: Case):
    objective = case.settled(features=4)
    sample = case.sample(objective)
    features = torch.randn(12, 4, dtype=torch.float64)
    batch = {"index": sample.index, "weight": torch.rand(12, dtype=torch.float64)}
    first, second, third = (copy.deepcopy(objective) for _ in range(3))
    loss = first.loss(first(features), sample.target, **batch)
    assert loss == second.loss_terms(second(features), sample.target, **batch).total
    torch.testing.assert_close(loss, third.loss_from_features(features, sample.target, **batch).total)
    torch.testing.assert_close(snapshot(first), snapshot(second), rtol=0, atol=0)
    torch.testing.assert_close(snapshot(first), snapshot(third))


@every_case
def test_compute_is_pure(case: Case):
    objective = case.settled(class_weight=True)
    sample = case.sample(objective)
    before = snapshot(objective)
    flat, batch = objective_inputs.flatten(objective, sample.outputs, sample.target, index=sample.index)
    first, second = objective.compute(flat, batch), objective.compute(flat, batch)
    assert first.total == second.total
    torch.testing.assert_close(snapshot(objective), before, rtol=0, atol=0)


@every_case
def test_evaluation_changes_no_state(case: Case):
    objective = case.settled(features=4).eval()
    sample, before = case.sample(objective), snapshot(objective)
    outputs = objective(torch.randn(12, 4, dtype=torch.float64))
    first = objective.loss(outputs, sample.target)
    objective.scores(outputs)
    objective.label_vectors()
    assert torch.isfinite(first)
    assert objective.loss(outputs, sample.target) == first
    torch.testing.assert_close(snapshot(objective), before, rtol=0, atol=0)


@pytest.mark.long
@every_case
def test_saved_and_copied_objectives_go_on_alike(case: Case):
    objective = case.settled(class_weight=True, features=4)
    stored = io.BytesIO()
    torch.save(objective.state_dict(), stored)
    stored.seek(0)
    loaded = case.make(class_weight=True, features=4)
    loaded.load_state_dict(torch.load(stored, weights_only=True))
    copied = copy.deepcopy(objective)
    samples = [case.sample(objective, seed=seed) for seed in (0, 1, 2)]
    wanted = steps(objective, samples)
    for other in (loaded, copied):
        for ours, theirs in zip(steps(other, samples), wanted, strict=True):
            ours.assert_close(theirs, rtol=0, atol=0)


@every_case
def test_only_heads_decay(case: Case):
    objective = case.make(features=4)
    own = set(dict(objective.named_parameters())) - head_names(objective)
    assert objective.no_weight_decay() == own


@every_case
def test_label_vectors_come_by_row(case: Case):
    objective = case.settled()
    vectors = objective.label_vectors()
    assert torch.isfinite(vectors).all()
    assert not vectors.requires_grad
    for rows in ([4, 1, 1], torch.tensor([4, 1, 1])):
        torch.testing.assert_close(objective.label_vectors(rows), vectors[[4, 1, 1]], rtol=0, atol=0)


def test_label_vectors_of_many_classes_are_refused_unless_rows_are_named():
    groups = GroupRows(torch.arange(20_000) // 5)
    for objective in (
        OneHot(classes=20_000),
        LabelSmoothing(classes=20_000),
        SemanticSmoothing(classes=20_000, relation=groups),
        MixedCrossEntropy(classes=20_000, relation=groups),
    ):
        with pytest.raises(InputError, match=r"label_vectors: all 20,000 rows .* request rows"):
            objective.label_vectors()
        assert objective.label_vectors([3, 7]).shape == (2, 20_000)


def test_what_a_constructor_is_given_stays_as_it_was():
    relation = GroupRows([0, 0, 1, 1], dtype=torch.float64)
    SemanticSmoothing(classes=4, relation=relation)
    MixedCrossEntropy(classes=4, relation=relation)
    assert relation.share.dtype == torch.float64


@every_name
def test_build_on_real_digits(name: str):
    objective = build_on_digits(name, 256)
    features, target = (part[:256] for part in digits())
    objective.begin_epoch(0, 3)
    outputs = objective(features)
    loss = objective.loss(outputs, target, index=torch.arange(256))
    loss.backward()
    assert torch.isfinite(loss)
    assert objective.scores(outputs).shape == (256, 10)
    assert objective.classes == tuple("0123456789")
    for parameter_name, parameter in objective.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.any(), parameter_name


@pytest.mark.long
@every_name
def test_training_lowers_the_loss_and_finds_the_digits(name: str):
    objective = build_on_digits(name, 256)
    features, target = (part[:256] for part in digits())
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.02)
    losses = []
    objective.begin_epoch(0, 3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = objective.loss_from_features(features, target, index=torch.arange(256)).total
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    objective.eval()
    with torch.no_grad():
        outputs = objective(features)
        if "refresh" in objective.needs:
            objective.refresh([(outputs[:100], target[:100]), (outputs[100:], target[100:])])
        right = (objective.scores(outputs).argmax(-1) == target).float().mean()
    assert right > 0.9


def test_compute_maps_over_models():
    objective = OneHot(classes=CLASSES)
    outputs, target = torch.randn(5, 8, CLASSES), torch.randint(CLASSES, (5, 8))

    def loss(outputs, target):
        return objective.compute(outputs, Batch(target, outputs.new_ones(8))).total

    mapped = torch.func.vmap(loss)(outputs, target)
    torch.testing.assert_close(mapped, torch.stack([loss(o, t) for o, t in zip(outputs, target, strict=True)]))
    gradients = torch.func.vmap(torch.func.grad(loss))(outputs, target)
    assert gradients.shape == outputs.shape
