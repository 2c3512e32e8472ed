"""Memory by what is made: tree losses hold batch x nodes, nothing is K x K, a chunked loss holds no more than a plain one."""

import copy
import itertools
import tracemalloc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin import (
    CompressedLabelEmbedding,
    ConditionalSoftmax,
    ConvexHierarchical,
    Hierarchical,
    HierarchicalCrossEntropy,
    LabelEmbedding,
    MixedCrossEntropy,
    Objective,
    SemanticSmoothing,
    Taxonomy,
)
from labelkin.objectives import _label_embedding as label_embedding
from labelkin.objectives import _label_embedding_chunked as chunks
from labelkin.relations import GroupRows, TreeRows
from support.memory import LargestTensor
from support.steps import TIGHT

LEVELS = (1, 3, 13, 51, 273, 1103, 4899, 10_000)  # a tree of life: kingdoms to species
NODES, SPECIES = sum(LEVELS), LEVELS[-1]
BATCH = 8
MIB = 2**20

TREE_LOSSES = [
    (Hierarchical, {"targets": "path"}),
    (Hierarchical, {"targets": "leaf"}),
    (ConvexHierarchical, {}),
    (ConvexHierarchical, {"soft_off_path": True}),
    (ConditionalSoftmax, {}),
    (HierarchicalCrossEntropy, {"alpha": 0.3}),
]
every_tree_loss = pytest.mark.parametrize(
    ("kind", "options"), TREE_LOSSES, ids=[f"{kind.__name__}{options or ''}" for kind, options in TREE_LOSSES]
)


@pytest.fixture(scope="module")
def tree() -> Taxonomy:
    """16,343 nodes; every inner node has a child and the other children fall at random."""
    rng = np.random.default_rng(0)
    parents, start = [-1], 0
    for above, size in itertools.pairwise(LEVELS):
        chosen = np.concatenate([np.arange(above), rng.integers(above, size=size - above)])
        parents += (start + np.sort(chosen)).tolist()
        start += above
    assert len(parents) == NODES == 16_343
    return Taxonomy(parents, [f"n{i}" for i in range(NODES)])


def largest(objective: Objective, target: Tensor, **batch: Tensor) -> LargestTensor:
    outputs = torch.randn(len(target), objective.width, requires_grad=True)
    with LargestTensor() as made:
        objective.loss(outputs, target, **batch).backward()
        objective.scores(outputs.detach())
        objective.label_vectors([0, 1])
    assert outputs.grad is not None
    assert outputs.grad.any()
    return made


@pytest.mark.long
@every_tree_loss
def test_tree_losses_hold_batch_by_nodes(kind, options, tree: Taxonomy):
    objective = kind(taxonomy=tree, **options)
    target = torch.arange(BATCH) * 1000
    node = torch.where(torch.arange(BATCH) % 2 == 0, torch.arange(BATCH) * 100 + 4, -1)
    soft = torch.zeros(BATCH, SPECIES).scatter_(1, torch.stack([target, target + 1], 1), 0.5)
    for made in (largest(objective, target), largest(objective, target, node=node), largest(objective, soft)):
        assert made.numel <= 2 * BATCH * NODES, made.shape


@pytest.mark.long
def test_a_large_tree_is_indexed_without_a_square(tree: Taxonomy):
    tracemalloc.start()
    with LargestTensor() as made:
        ConditionalSoftmax(taxonomy=tree)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.numel <= 10 * NODES
    assert peak < 100 * MIB  # N x N of one byte is 255 MiB


@pytest.mark.parametrize("kind", [SemanticSmoothing, MixedCrossEntropy])
@pytest.mark.parametrize("structure", ["groups", "tree"])
def test_smoothing_many_classes_makes_rows_for_the_batch_alone(kind, structure: str, tree: Taxonomy):
    relation = TreeRows(tree, beta=5) if structure == "tree" else GroupRows(torch.arange(SPECIES) // 7)
    with LargestTensor() as made:
        objective = kind(classes=SPECIES, relation=relation)
    assert made.numel <= 100 * NODES  # the copied table of ancestors, counted in bytes; K x K is 6,000 a node
    assert largest(objective, torch.arange(BATCH)).numel <= BATCH * (SPECIES + 1)


def test_a_learned_share_a_class_makes_rows_for_the_batch_alone():
    groups = GroupRows(torch.arange(SPECIES) // 7)
    objective = MixedCrossEntropy(classes=SPECIES, relation=groups, mixing="class", learn=True)
    assert largest(objective, torch.arange(BATCH)).numel <= BATCH * (SPECIES + 1)


@pytest.mark.long
def test_fifty_thousand_classes_cost_no_more_than_plain_cross_entropy():
    """1,024 samples of 512 features, forward and backward, gradients of the parameters included."""
    classes, features, samples = 50_000, 512, 1024
    objective = CompressedLabelEmbedding(classes=classes, rank=100, features=features)
    target = torch.arange(samples) * 40
    hidden = torch.randn(samples, features, requires_grad=True)

    with LargestTensor() as plain:
        F.cross_entropy(objective.head(hidden), target).backward()
    objective.zero_grad(set_to_none=True)
    hidden.grad = None
    with LargestTensor() as ours:
        objective.loss_from_features(hidden, target).total.backward()

    for name, parameter in objective.named_parameters():
        assert parameter.grad is not None, name
    assert ours.peak_bytes <= 0.75 * plain.peak_bytes, (ours.peak_bytes / MIB, plain.peak_bytes / MIB)
    assert ours.numel <= plain.numel  # the outputs of the plain head, samples x classes; K x K is 48 times as many


def test_compressed_sizes_are_those_of_the_paper():
    dense, compressed = 50_000**2 * 4 / MIB, 2 * 50_000 * 100 * 4 / MIB
    objective = CompressedLabelEmbedding(classes=50_000, rank=100)
    held = sum(p.numel() * p.element_size() for p in (objective.a, objective.b)) / MIB
    assert held == compressed
    assert (round(held, 2), round(dense, 1)) == (38.15, 9536.7)


@pytest.mark.parametrize("kind", [LabelEmbedding, CompressedLabelEmbedding])
@pytest.mark.parametrize("entries", [1, 12, 30])
def test_chunks_change_neither_loss_nor_gradients(kind, entries: int, monkeypatch: pytest.MonkeyPatch):
    """Chunks of 1, 2 and 5 of the 11 samples."""
    torch.manual_seed(0)
    whole = kind(classes=6, features=5, alpha=0.3, class_weight=torch.rand(6)).double()
    chunked = copy.deepcopy(whole)
    x, y = (torch.randn(11, 5, dtype=torch.float64).requires_grad_() for _ in range(2))
    y.data.copy_(x.data)
    target, weight = torch.arange(11) % 6, torch.rand(11, dtype=torch.float64)
    target[:4] = whole(x).z2.argmax(-1)[:4]  # the embedding learns where z2 is right

    expected = whole.loss_terms(whole(x), target, weight=weight)
    for module in (chunks, label_embedding):
        monkeypatch.setattr(module, "CHUNK", entries)
    found = chunked.loss_from_features(y, target, weight=weight)

    assert torch.equal(found.predicted, whole(x).z1.argmax(-1))
    torch.testing.assert_close(found.total, expected.total, **TIGHT)
    torch.testing.assert_close(found.terms, expected.terms, **TIGHT)
    for loss in (expected, found):
        loss.total.backward()
    torch.testing.assert_close(y.grad, x.grad, **TIGHT)
    for (name, ours), wanted in zip(chunked.named_parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, wanted.grad, **TIGHT, msg=name)
    assert int(whole.updates) == int(chunked.updates) == 1


@pytest.fixture
def chunked(monkeypatch: pytest.MonkeyPatch) -> CompressedLabelEmbedding:
    """Two samples at a time."""
    for module in (chunks, label_embedding):
        monkeypatch.setattr(module, "CHUNK", 12)
    torch.manual_seed(0)
    return CompressedLabelEmbedding(classes=6, features=5, rank=3)


def test_gradients_of_chunks_follow_what_the_loss_is_multiplied_by(chunked: CompressedLabelEmbedding):
    x, target = torch.randn(7, 5, requires_grad=True), torch.arange(7) % 6
    found = []
    for factor in (1.0, 3.0):
        x.grad = None
        chunked.zero_grad(set_to_none=True)
        (chunked.loss_from_features(x, target).total * factor).backward()
        found.append([x.grad, *(parameter.grad for parameter in chunked.parameters())])
    for once, thrice in zip(*found, strict=True):
        torch.testing.assert_close(thrice, 3 * once)


def test_chunks_give_no_gradients_where_none_are_wanted(chunked: CompressedLabelEmbedding):
    x, target = torch.randn(7, 5), torch.arange(7) % 6
    chunked.similarity_head.requires_grad_(False)
    chunked.loss_from_features(x, target).total.backward()  # the features want none either
    assert chunked.head.weight.grad is not None
    assert chunked.similarity_head.weight.grad is None
    with torch.no_grad():
        assert not chunked.loss_from_features(x, target).total.requires_grad


def test_gradients_of_chunks_are_handed_out_once(chunked: CompressedLabelEmbedding):
    total = chunked.loss_from_features(torch.randn(7, 5), torch.arange(7) % 6).total
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="can be used once"):
        total.backward()


def test_chunks_in_bf16_are_near_those_in_float32(chunked: CompressedLabelEmbedding):
    x, target = torch.randn(7, 5), torch.arange(7) % 6
    whole = chunked.loss_from_features(x, target).total
    with torch.autocast("cpu", torch.bfloat16):
        half = chunked.loss_from_features(x, target).total
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole, rtol=0.02, atol=0.0)
    half.backward()
    assert all(parameter.grad is not None for parameter in chunked.parameters())
