"""Kin with running means: the targets that z1 learns from, and how they move."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from labelkin import InputError, Kin, Taxonomy
from labelkin.functional import moved_rows
from labelkin.objectives import TwoHeads
from support import reference
from support.numeric import check_gradient, close, positions, probabilities, values
from support.worlds import default_dtype

TREE = Taxonomy.from_paths(["live/pet/c0", "live/pet/c1", "live/c2", "made/road/c3", "made/c4", "c5"])
LIVE, MADE = TREE.node("live"), TREE.node("made")
K, N = 6, 12
FORM = {"tau": 3.0, "alpha": 0.4, "p": 2.0}


def made(**options: Any) -> Kin:
    with default_dtype(torch.float64):
        torch.manual_seed(0)
        objective = Kin(TREE, **{"ancestors": 0.3, "momentum": 0.7, "start": 0.6, **FORM, **options})
    objective.means.copy_(torch.softmax(values(1, K, K) + 2 * torch.eye(K), -1))
    return objective


def outputs(seed: int = 2) -> tuple[TwoHeads, Tensor]:
    target = positions(seed, K, N)
    z1, z2 = values(seed + 1, N, K), values(seed + 2, N, K)
    z2[torch.arange(0, N, 2), target[::2]] += 4
    return TwoHeads(z1, z2), target


def slow_loss(objective: Kin, z: TwoHeads, target: list[Any]) -> float:
    """The loop of kin with the logarithms of the means as embedding, less the term that teaches the embedding."""
    tree = {"parents": TREE.parents.tolist(), "leaves": TREE.leaves.tolist()}
    parts = (z.z1.tolist(), z.z2.tolist(), objective.means.log().tolist())
    whole = reference.kin(*parts, target, **tree, preset="kin", ancestor_weight=objective.ancestors, **FORM)
    taught = Kin(TREE, learning="gradient", ancestors=objective.ancestors, **FORM).double()
    taught.embedding.data.copy_(objective.means.log())
    nodes = [v[1] if isinstance(v, tuple) else -1 for v in target]
    soft = isinstance(target[0], list)
    classes = target if soft else [0 if isinstance(v, tuple) else v for v in target]
    given = torch.tensor(classes, dtype=torch.float64 if soft else torch.int64)
    node = None if soft or max(nodes) < 0 else torch.tensor(nodes)
    return whole - taught.loss_terms(z, given, node=node).terms["embedding"].item()


def slow_means(objective: Kin, z2: Tensor, rows: list[int], weights: list[float]) -> list[list[float]]:
    """Move the mean of every class toward the softened predictions of its samples, one by one."""
    moved = objective.means.tolist()
    for k in range(K):
        own = [i for i in range(N) if rows[i] == k and weights[i] > 0]
        if not own:
            continue
        total = sum(weights[i] for i in own)
        for j in range(K):
            mean = 0.0
            for i in own:
                e = [2.718281828459045 ** (float(z2[i, m]) / objective.tau) for m in range(K)]
                mean += weights[i] * e[j] / sum(e) / total
            moved[k][j] = objective.momentum * moved[k][j] + (1 - objective.momentum) * mean
    return moved


def test_classes_are_the_loop():
    objective, (z, target) = made(), outputs()
    weight = torch.arange(N).double() % 3
    guess = z.z2.argmax(-1)
    expected = slow_loss(objective, z, target.tolist())
    close(copy.deepcopy(objective).loss(z, target).detach(), expected)
    means = slow_means(objective, z.z2, guess.tolist(), (weight * (guess == target)).tolist())
    objective.loss(z, target, weight=weight)
    close(objective.means, torch.tensor(means, dtype=torch.float64))
    assert (guess != target).any()
    assert not torch.equal(objective.means, made().means)


def test_class_probabilities_are_the_loop():
    objective, (z, _) = made(), outputs()
    target, guess = probabilities(7, N, K), z.z2.argmax(-1)
    expected = slow_loss(objective, z, target.tolist())
    means = slow_means(objective, z.z2, guess.tolist(), target[torch.arange(N), guess].tolist())
    close(objective.loss(z, target).detach(), expected)
    close(objective.means, torch.tensor(means, dtype=torch.float64))


def test_inner_nodes_are_the_loop_and_move_no_mean():
    objective, (z, target) = made(), outputs()
    node = torch.full((N,), -1)
    node[[0, 2, 5]] = torch.tensor([LIVE, MADE, 0])
    mixed = [("node", int(v)) if v >= 0 else int(y) for v, y in zip(node, target, strict=True)]
    expected, guess = slow_loss(objective, z, mixed), z.z2.argmax(-1)
    means = slow_means(objective, z.z2, guess.tolist(), ((guess == target) & (node < 0)).double().tolist())
    close(objective.loss(z, target, node=node).detach(), expected)
    close(objective.means, torch.tensor(means, dtype=torch.float64))


def test_means_that_are_one_hot_teach_the_class():
    objective, (z, target) = made(ancestors=0.0, start=1.0), outputs()
    objective.means.copy_(torch.eye(K))
    terms = objective.loss_terms(z, target).terms
    close(terms["soft"], terms["hard"].detach())


@pytest.mark.long
def test_means_stay_probabilities_and_reach_what_z2_says():
    objective, (z, target) = made(), outputs()
    z2 = torch.full_like(z.z2, -2.0)
    z2[torch.arange(N), target] = 3.0
    for _ in range(200):
        objective.loss(TwoHeads(z.z1, z2), target)
    seen = target.unique()
    said = torch.full((K, K), -2.0, dtype=torch.float64).fill_diagonal_(3.0)
    close(objective.means[seen], torch.softmax(said / objective.tau, -1)[seen])
    close(objective.means.sum(-1), torch.ones(K, dtype=torch.float64))


def test_the_start_gives_its_share_to_the_class():
    with default_dtype(torch.float64):
        fresh = Kin(TREE, start=0.75).means
    close(fresh.diagonal(), [0.75] * K)
    close(fresh.sum(-1), [1.0] * K)


def test_evaluation_moves_nothing_and_a_bad_sample_leaves_no_trace():
    objective, (z, target) = made(), outputs()
    before = objective.means.clone()
    objective.eval()
    objective.loss(z, target)
    assert torch.equal(objective.means, before)
    objective.train()
    bad = TwoHeads(z.z1, z.z2.clone())
    bad.z2[0] = torch.nan
    objective.loss(bad, target)
    assert torch.isfinite(objective.means).all()


@pytest.mark.long
def test_gradients_reach_both_heads_and_not_the_means():
    objective, (z, target) = made(), outputs()
    objective.eval()
    for batch in (target, probabilities(9, N, K)):
        check_gradient(lambda z1, batch=batch: objective.loss(TwoHeads(z1, z.z2), batch), z.z1)
        check_gradient(lambda z2, batch=batch: objective.loss(TwoHeads(z.z1, z2), batch), z.z2)
    assert not any(name == "embedding" for name, _ in objective.named_parameters())


def test_no_chunks_with_means(monkeypatch: pytest.MonkeyPatch):
    from labelkin.objectives import _label_embedding as label_embedding

    whole = made(features=4)
    small = copy.deepcopy(whole)
    features, (_, target) = values(20, N, 4), outputs()
    expected = whole.loss_from_features(features, target)
    monkeypatch.setattr(label_embedding, "CHUNK", 3 * K)
    close(small.loss_from_features(features, target).total, expected.total.detach())
    close(small.means, whole.means)


def test_rows_move_as_the_loop():
    rows, given = values(3, K, 4), values(4, N, 4)
    target, weight = positions(5, K - 1, N), torch.arange(N).double() % 4
    moved = moved_rows(rows, given, target, weight, 0.8)
    for k in range(K):
        own = (target == k) & (weight > 0)
        mean = (given[own] * weight[own, None]).sum(0) / weight[own].sum()
        close(moved[k], 0.8 * rows[k] + 0.2 * mean if own.any() else rows[k])


@pytest.mark.parametrize(
    ("option", "message"),
    [({"learning": "sgd"}, "learning"), ({"momentum": 1.5}, "momentum"), ({"start": 0.0}, "start")],
)
def test_bad_options_are_named(option: dict[str, Any], message: str):
    with pytest.raises(InputError, match=f"{message}: expected"):
        Kin(TREE, **option)
