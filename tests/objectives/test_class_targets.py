"""Objectives whose target is a row of a class matrix: by the kernels they have the losses and gradients of whole targets."""

import copy
import math

import pytest
import torch

from labelkin import (
    LabelSmoothing,
    MixedCrossEntropy,
    OnlineLabelSmoothing,
    PretrainedLabelEmbedding,
    SemanticSmoothing,
    Taxonomy,
    TreeSoftLabels,
)
from labelkin.functional import _kernels as kernels
from labelkin.objectives import _class_targets as class_targets
from labelkin.relations import GroupRows, TreeRows
from labelkin.relations import _structured as structured
from support.numeric import probabilities, relation, values

K, N = 6, 9
TREE = Taxonomy.from_paths(["a/b/u", "a/b/v", "a/w", "c/x", "c/y", "z"])
TARGET = torch.arange(N) * 5 % K


def made(name):
    """An objective in float64, with one isolated class where a matrix is given."""
    matrix = relation(0, K, isolated=[2])
    groups = GroupRows([0, 0, 1, 2, 2, 2])
    return {
        "smoothing": lambda: LabelSmoothing(K, smoothing=0.3),
        "semantic, dense": lambda: SemanticSmoothing(K, relation=matrix, sigma=0.3),
        "semantic, groups": lambda: SemanticSmoothing(K, relation=groups, sigma=0.3),
        "semantic, tree": lambda: SemanticSmoothing(K, relation=TreeRows(TREE, beta=3.0), sigma=0.3),
        "semantic, targets": lambda: SemanticSmoothing(K, targets=probabilities(1, K, K)),
        "mixed, shared": lambda: MixedCrossEntropy(K, relation=matrix, eps=0.3),
        "mixed, class": lambda: MixedCrossEntropy(K, relation=groups, eps=torch.linspace(0, 0.5, K), mixing="class"),
        "mixed, matrix": lambda: MixedCrossEntropy(K, relation=matrix, eps=0.3, mixing="matrix"),
        "online": lambda: online(),
        "tree": lambda: TreeSoftLabels(TREE, beta=4.0),
        "embedding": lambda: PretrainedLabelEmbedding(K, embedding=values(3, K, K)),
    }[name]().double()


def online():
    objective = OnlineLabelSmoothing(K)
    objective.begin_epoch(0, 3)
    objective.loss(values(5, 30, K).float(), torch.arange(30) % K)
    objective.begin_epoch(1, 3)
    return objective


NAMES = [
    "smoothing", "semantic, dense", "semantic, groups", "semantic, tree", "semantic, targets", "mixed, shared", "mixed, class",
    "mixed, matrix", "online", "tree", "embedding",
]  # fmt: skip
every_objective = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def calls(monkeypatch):
    """The kinds of kernels that ran; they do on the CPU too, as torch operations."""
    ran = []
    original = kernels.classes.fused

    def fused(kind, *given):
        ran.append(kind)
        return original(kind, *given)

    monkeypatch.setattr(kernels.classes, "uses_triton", lambda logits: True)
    monkeypatch.setattr(kernels.classes, "fused", fused)
    return ran


def with_gradient(objective, logits, target=TARGET):
    logits = logits.detach().clone().requires_grad_()
    weight = torch.linspace(0.5, 1.5, len(logits), dtype=logits.dtype)
    loss = copy.deepcopy(objective).loss(logits, target, weight=weight)
    return loss.detach(), torch.autograd.grad(loss, logits)[0]


@every_objective
@pytest.mark.parametrize("masked", [False, True])
def test_kernels_and_whole_targets_agree(name, masked, calls, monkeypatch):
    objective, logits = made(name), values(2, N, K)
    target = TARGET
    if masked:
        logits[:, 4] = -math.inf
        target = torch.where(target == 4, 0, target)
    calls.clear()
    found = with_gradient(objective, logits, target)
    assert calls == ["classes"]
    monkeypatch.setattr(kernels.classes, "uses_triton", lambda logits: False)
    torch.testing.assert_close(found, with_gradient(objective, logits, target), atol=1e-6, rtol=1e-6)
    assert calls == ["classes"]


@every_objective
def test_class_probabilities_and_transforms_take_whole_targets(name, calls):
    objective, logits = made(name).eval(), values(2, N, K)
    if objective.linear_in_target:
        objective.loss(logits, probabilities(7, N, K))
    calls.clear()
    expected = [objective.loss(logits[i : i + 1], TARGET[i : i + 1]) for i in range(N)]
    direct = len(calls)
    found = torch.func.vmap(lambda x, y: objective.compute(x, objective_batch(y)).total)(
        logits[:, None], TARGET[:, None]
    )
    torch.testing.assert_close(found, torch.stack(expected))
    assert direct == N
    assert len(calls) == direct


def objective_batch(target):
    from labelkin.objectives import Batch

    return Batch(target, torch.ones_like(target, dtype=torch.float64))


def test_learned_targets_get_gradients(calls):
    objective = MixedCrossEntropy(K, relation=relation(0, K), eps=0.3, mixing="class", learn=True).double()
    objective.loss(values(2, N, K), TARGET).backward()
    assert objective.targets.value.grad.any()
    assert not calls


def test_the_cpu_takes_whole_targets(monkeypatch):
    monkeypatch.setattr(class_targets, "class_target_cross_entropy", None)
    made("semantic, dense").loss(values(2, N, K), TARGET)


def test_the_rows_of_a_tree_are_kept_where_they_are_few(monkeypatch):
    rows = TreeRows(TREE, beta=3.0)
    kept = rows.class_targets().matrix
    torch.testing.assert_close(kept, rows.dense())
    assert rows.class_targets().matrix is kept
    assert rows.float().class_targets().matrix.dtype == torch.float32
    other = TreeRows(TREE, beta=3.0).float()
    other.load_state_dict(rows.state_dict())
    assert other.class_targets().matrix is not kept
    monkeypatch.setattr(structured, "LARGEST_KEPT", K * K - 1)
    assert rows.class_targets() is None
