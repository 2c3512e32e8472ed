"""Deep trees in memory that grows with the nodes, not with nodes times depth."""

import tracemalloc

import numpy as np
import pytest
import torch

from labelkin import ConditionalSoftmax, Hierarchical, decide, metrics, relations
from labelkin.functional import tree_index
from labelkin.structure import Taxonomy

LEVELS = 5_000
MIB = 2**20
MOST = 24 * MIB  # one int64 array of nodes x depth takes 381 MiB


def chain(levels: int) -> Taxonomy:
    """A spine of inner nodes, each with one leaf beside the next inner node: 2 x levels nodes."""
    parents = [-1]
    for level in range(levels):
        parents += [2 * level, 2 * level]
    return Taxonomy(parents, [f"n{i}" for i in range(len(parents))])


def ask_everything(tree: Taxonomy) -> None:
    classes = np.arange(len(tree.leaves))
    tree.distance("height", classes, classes[::-1])
    tree.distance("edges", classes, classes[::-1])
    tree.lca(tree.leaves, tree.leaves[::-1])
    tree.level(LEVELS // 2)
    tree.ancestors(len(tree) - 1)
    tree.subtree(LEVELS)
    tree.restrict(tree.classes[-3:])
    predicted, target = torch.from_numpy(classes), torch.from_numpy(classes[::-1].copy())
    metrics.mistake_severity(predicted, target, tree)
    metrics.hierarchical_f1(predicted, target, tree)
    rows = relations.tree(tree, structured=True)
    rows(torch.tensor([0, LEVELS]))
    index = tree_index(tree)
    assert max(part.numel() for part in index if isinstance(part, torch.Tensor)) <= 2 * len(tree)


@pytest.mark.long
def test_a_tree_of_5000_levels_takes_little_memory() -> None:
    tree = chain(LEVELS)
    tracemalloc.start()
    try:
        ask_everything(tree)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST, f"{peak / MIB:.0f} MiB"


def test_buffers_of_tree_rows_grow_with_the_classes() -> None:
    rows = relations.tree(chain(LEVELS), structured=True)
    assert sum(buffer.numel() * buffer.element_size() for buffer in rows.buffers()) < 4 * MIB


def test_tree_rows_load_what_earlier_versions_saved() -> None:
    tree = chain(5)
    rows = relations.tree(tree, structured=True)
    levels = 4
    saved = {
        "ancestors": torch.zeros(levels, 6, dtype=torch.int32),
        "height": torch.zeros(6, levels + 1, dtype=torch.float64),
        "depth": rows.depth.clone(),
    }
    expected = rows.dense()
    rows.load_state_dict(saved)
    assert torch.equal(rows.dense(), expected)


@pytest.mark.parametrize("kind", [ConditionalSoftmax, Hierarchical])
def test_losses_on_a_deep_tree(kind: type) -> None:
    tree = chain(1_000)
    objective = kind(taxonomy=tree)
    held = sum(buffer.numel() * buffer.element_size() for buffer in objective.buffers())
    assert held < 4 * MIB
    outputs = torch.zeros(2, objective.width, dtype=torch.float64, requires_grad=True)
    loss = objective.loss(outputs, torch.tensor([0, 1_000]))
    loss.backward()
    assert torch.isfinite(loss)


def test_expected_costs_of_a_deep_tree() -> None:
    tree = chain(200)
    probs = torch.rand(3, len(tree.leaves), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    probs /= probs.sum(-1, keepdim=True)
    matrix = torch.from_numpy(tree.distance("height"))
    torch.testing.assert_close(decide.expected_costs(probs, tree), probs @ matrix)
