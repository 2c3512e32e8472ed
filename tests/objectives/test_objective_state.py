"""State of objectives: where it is loaded, what a snapshot holds, and how it recovers from a bad batch."""

import copy

import pytest
import torch

from labelkin import AdaptiveLabels, MixedCrossEntropy, Retrospection
from labelkin.relations import GroupRows
from labelkin.training._packing import state_of
from support.cases import CASES, Case
from support.worlds import default_dtype

every_case = pytest.mark.parametrize("case", CASES, ids=str)
WITH_LEARNED_STATE = [case for case in CASES if case.objective in ("adaptive-labels", "retrospection")]
every_stateful_case = pytest.mark.parametrize("case", WITH_LEARNED_STATE, ids=str)


def recorded() -> Retrospection:
    objective = Retrospection(classes=5, samples=8, every=1)
    objective.begin_epoch(0, 3)
    objective.loss(torch.randn(4, 5), torch.tensor([0, 3, 1, 4]), index=torch.arange(4))
    return objective


@pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter")
def test_loading_moves_the_table_to_the_device_of_the_objective():
    """The meta device stands in for a GPU: a checkpoint is always read on the CPU."""
    state = recorded().state_dict()
    elsewhere = Retrospection(classes=5, samples=8, every=1).to("meta")
    elsewhere.load_state_dict(state)
    for name in ("soft", "recorded", "fresh"):
        assert elsewhere.get_extra_state()[name].device.type == "meta", name


def test_loading_keeps_the_precision_of_the_objective():
    loaded = Retrospection(classes=5, samples=8, every=1).double()
    loaded.load_state_dict(recorded().state_dict())
    assert loaded.get_extra_state()["soft"].dtype == torch.float64


@pytest.mark.long
@every_case
def test_a_snapshot_does_not_change_when_training_goes_on(case: Case):
    objective = case.settled(features=4)
    kept = state_of(objective)
    before = copy.deepcopy(kept)
    sample = case.sample(objective, seed=7)
    objective.begin_epoch(4, 6)
    objective.loss(sample.outputs, sample.target, index=sample.index)
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter += 1
    torch.testing.assert_close(_flat(kept), _flat(before), rtol=0, atol=0)


def _flat(state):
    """The tensors of a state, with those of nested mappings beside them."""
    found = {}
    for name, value in state.items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        found |= {f"{name}.{key}": part for key, part in parts if isinstance(part, torch.Tensor)}
    return found


# A batch with a value that is not finite.


def bad(sample, value):
    outputs = sample.outputs.clone()
    outputs[1] = value
    return outputs


@pytest.mark.long
@every_stateful_case
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf], ids=str)
def test_a_loop_that_skips_bad_steps_recovers(case: Case, value: float):
    objective = case.settled(features=None)
    objective.begin_epoch(3, 6)
    for seed in range(4):
        sample = case.sample(objective, seed=seed)
        outputs = bad(sample, value) if seed == 1 else sample.outputs
        loss = objective.loss(outputs, sample.target, index=sample.index)
        assert bool(torch.isfinite(loss)) == (seed != 1)
        for name, tensor in _flat(objective.state_dict()).items():
            assert torch.isfinite(tensor).all(), (seed, name)
    objective.refresh([(bad(sample, value), sample.target)])
    assert torch.isfinite(objective.eval().label_vectors()).all()
    good = sample.outputs.clone().requires_grad_()
    objective.train()
    objective.loss(good, sample.target, index=sample.index).backward()
    assert torch.isfinite(good.grad).all()


@every_stateful_case
def test_a_state_that_was_spoiled_earlier_heals(case: Case):
    """Checkpoints of earlier versions may hold such a row."""
    objective = case.settled()
    if case.objective == "adaptive-labels":
        learned = objective.means if objective.preset == "cosine" else objective.labels
        learned[:2] = torch.nan
        learned[4] = torch.nan  # no sample is of class 4
    else:
        objective._soft.fill_(torch.nan)
    objective.begin_epoch(3, 6)
    sample = case.sample(objective, seed=2)
    outputs = sample.outputs.clone().requires_grad_()
    loss = objective.loss(outputs, sample.target, index=sample.index)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()
    assert torch.isfinite(objective.label_vectors()).all()


def test_a_bad_batch_leaves_the_labels_of_other_classes_as_they_would_be():
    with default_dtype(torch.float64):
        objective = AdaptiveLabels(classes=4, memory=0.0, leave_one_out=False, scale=1.0)
    z, target = torch.randn(6, 4, dtype=torch.float64), torch.tensor([0, 0, 1, 1, 2, 2])
    z[0] = torch.nan
    objective.loss(z, target)
    expected = torch.eye(4, dtype=torch.float64)
    expected[1], expected[2] = z[2:4].mean(0), z[4:].mean(0)
    torch.testing.assert_close(objective.labels, expected)


@pytest.mark.long
@pytest.mark.parametrize("case", [WITH_LEARNED_STATE[0], WITH_LEARNED_STATE[-1]], ids=str)
def test_a_bad_batch_is_survived_without_a_branch_on_values(case: Case):
    """One graph serves good and bad batches, so compiled code recovers as eager code does."""
    objective = case.settled()
    objective.begin_epoch(3, 6)
    compiled = torch.compile(objective.loss, backend="aot_eager", fullgraph=True)
    for seed in range(3):
        sample = case.sample(objective, seed=seed)
        outputs = bad(sample, torch.nan) if seed == 1 else sample.outputs
        loss = compiled(outputs, sample.target, index=sample.index)
        assert bool(torch.isfinite(loss)) == (seed != 1)


# One copy of each matrix.


@pytest.mark.parametrize("mixing", ["shared", "class"])
def test_mixed_cross_entropy_saves_its_relation_once_and_loads_earlier_states(mixing: str):
    relation = torch.tensor([[0.0, 1, 0], [0.5, 0, 0.5], [0, 0, 0]])
    objective = MixedCrossEntropy(classes=3, relation=relation, mixing=mixing, learn=True)
    with torch.no_grad():
        objective.targets.value += 0.3
    state = objective.state_dict()
    squares = [name for name, value in state.items() if isinstance(value, torch.Tensor) and value.shape == (3, 3)]
    assert squares == ["relation.matrix"]
    earlier = {name: value for name, value in state.items() if not name.endswith("_extra_state")}
    earlier["targets.relation.matrix"] = earlier["relation.matrix"]
    loaded = MixedCrossEntropy(classes=3, relation=relation, mixing=mixing, learn=True)
    loaded.load_state_dict(earlier)
    assert torch.equal(loaded.label_vectors(), objective.label_vectors())
    other = torch.nn.ModuleDict({"head": loaded})
    other.load_state_dict({f"head.{name}": value for name, value in earlier.items()})


def test_a_copy_of_mixed_cross_entropy_uses_its_own_relation():
    objective = MixedCrossEntropy(classes=4, relation=GroupRows([0, 0, 1, 1]), eps=0.4)
    copied = copy.deepcopy(objective).double()
    assert copied.targets(torch.tensor([0]), torch.float64).dtype == torch.float64
    assert objective.relation.share.dtype == torch.float32
    assert copied.relation is not objective.relation
    with torch.no_grad():
        copied.relation.share.zero_()
    assert float(copied.label_vectors([0])[0, 1]) == 0
    assert float(objective.label_vectors([0])[0, 1]) > 0
