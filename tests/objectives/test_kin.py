"""Kin: the label embedding network with the ancestors term, for classes, class probabilities and inner nodes."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from labelkin import Context, InputError, Kin, LabelEmbedding, Taxonomy
from labelkin.objectives import TwoHeads
from support import reference
from support.numeric import check_gradient, close, positions, probabilities, values
from support.worlds import default_dtype

TREE = Taxonomy.from_paths(["live/pet/c0", "live/pet/c1", "live/c2", "made/road/c3", "made/c4", "c5"])
LIVE, PET, MADE = (TREE.node(name) for name in ("live", "pet", "made"))
K, N = 6, 10
PRESETS = ("paper", "released", "kin", "kin-mean")
FORM = {"tau": 3.0, "alpha": 0.4, "p": 2.0}
every_preset = pytest.mark.parametrize("preset", PRESETS)


def made(preset: str = "kin", **options: Any) -> Kin:
    with default_dtype(torch.float64):
        torch.manual_seed(0)
        objective = Kin(TREE, preset=preset, **{"ancestors": 0.3, "learning": "gradient", **FORM, **options})
    objective.embedding.data += values(1, K, K)
    return objective


def outputs(seed: int = 2, n: int = N) -> tuple[TwoHeads, Tensor]:
    target = positions(seed, K, n)
    z1, z2 = values(seed + 1, n, K), values(seed + 2, n, K)
    z2[torch.arange(0, n, 2), target[::2]] += 4
    return TwoHeads(z1, z2), target


def slow(objective: Kin, z: TwoHeads, target: list[Any]) -> float:
    tree = {"parents": TREE.parents.tolist(), "leaves": TREE.leaves.tolist()}
    parts = (z.z1.tolist(), z.z2.tolist(), objective.embedding.tolist())
    return reference.kin(*parts, target, **tree, preset=objective.preset, ancestor_weight=objective.ancestors, **FORM)


@every_preset
def test_classes_are_the_loop(preset: str):
    objective, (z, target) = made(preset), outputs()
    close(objective.loss(z, target).detach(), slow(objective, z, target.tolist()))


@every_preset
def test_class_probabilities_are_the_loop(preset: str):
    objective, (z, _) = made(preset), outputs()
    target = probabilities(7, N, K)
    close(objective.loss(z, target).detach(), slow(objective, z, target.tolist()))


@every_preset
def test_inner_nodes_are_the_loop(preset: str):
    objective, (z, target) = made(preset), outputs()
    node = torch.full((N,), -1)
    node[[0, 3, 4, 7]] = torch.tensor([LIVE, PET, MADE, 0])
    mixed = [("node", int(v)) if v >= 0 else int(y) for v, y in zip(node, target, strict=True)]
    close(objective.loss(z, target, node=node).detach(), slow(objective, z, mixed))
    close(
        made(preset).loss(z, torch.full((N,), -100), node=torch.full((N,), PET)).detach(),
        slow(objective, z, [("node", PET)] * N),
    )


def test_without_ancestors_it_is_the_label_embedding():
    kin, (z, target) = made(ancestors=0.0), outputs()
    with default_dtype(torch.float64):
        plain = LabelEmbedding(K, preset="kin", **FORM)
    plain.embedding.data.copy_(kin.embedding.data)
    assert kin.loss(z, target) == plain.loss(z, target)
    assert set(kin.loss_terms(z, target).terms) == set(plain.loss_terms(z, target).terms)


def test_any_label_embedding_takes_the_term():
    kin, (z, target) = made("released"), outputs()
    with default_dtype(torch.float64):
        plain = LabelEmbedding(TREE.classes, preset="released", taxonomy=TREE, ancestors=0.3, **FORM)
    plain.embedding.data.copy_(kin.embedding.data)
    close(kin.loss(z, target).detach(), plain.loss(z, target).detach())


def test_an_inner_node_teaches_nothing_about_the_classes_below_it():
    objective, (z, target) = made(), outputs()
    z = TwoHeads(*(part.clone().requires_grad_() for part in z))
    objective.loss(z, target, node=torch.full((N,), LIVE)).backward()
    assert not objective.embedding.grad.any()
    below = [TREE.classes.index(name) for name in ("c0", "c1", "c2")]
    for part in z:  # the classes below share one gradient, by their probability
        share = torch.softmax(part.detach(), -1)[:, below]
        ratio = part.grad[:, below] / share
        close(ratio, ratio[:, :1].expand_as(ratio))
        assert (part.grad[:, below] < 0).all()


def test_the_loss_of_a_batch_does_not_depend_on_its_size():
    (z, target), twice = outputs(), [*range(N), *range(N)]
    for preset in ("kin", "kin-mean"):
        close(
            made(preset).loss(TwoHeads(*(part[twice] for part in z)), target[twice]),
            made(preset).loss(z, target).detach(),
        )
    summed = [made("released").loss(TwoHeads(*(part[rows] for part in z)), target[rows]) for rows in (twice, range(N))]
    assert summed[0] > summed[1] + 1e-3


@pytest.mark.parametrize(
    "preset", [name if name == "kin" else pytest.param(name, marks=pytest.mark.long) for name in PRESETS]
)
def test_gradients(preset: str):
    samples = 5
    objective, (z, target) = made(preset), outputs(n=samples)
    node = torch.full((samples,), -1)
    node[[1, 4]] = torch.tensor([LIVE, MADE])
    for batch in ({"target": target}, {"target": target, "node": node}, {"target": probabilities(9, samples, K)}):
        check_gradient(lambda z1, batch=batch: objective.loss(TwoHeads(z1, z.z2), **batch), z.z1)
        check_gradient(
            lambda z2, batch=batch: objective.loss_terms(TwoHeads(z.z1, z2), **batch).terms["similarity"], z.z2
        )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["classes", "nodes", "probabilities"])
@every_preset
def test_chunks_are_the_whole(preset: str, kind: str, reduction: str, monkeypatch: pytest.MonkeyPatch):
    from labelkin.objectives import _label_embedding as label_embedding
    from labelkin.objectives import _label_embedding_chunked as chunks

    weight = torch.tensor([1.0, 2.0, 0.5, 1.5, 3.0, 1.0], dtype=torch.float64)
    whole = made(preset, features=4, reduction=reduction, expected_cost=0.2, class_weight=weight)
    chunked = copy.deepcopy(whole)
    features, (_, target) = values(20, N, 4), outputs()
    batch: dict[str, Tensor] = {"target": target, "weight": torch.arange(N) % 3}
    if kind == "nodes":
        batch["node"] = torch.where(torch.arange(N) % 4 == 0, MADE, -1)
    if kind == "probabilities":
        batch["target"] = probabilities(21, N, K)
    expected = whole.loss_from_features(features, **batch)
    for module in (chunks, label_embedding):
        monkeypatch.setattr(module, "CHUNK", 3 * K)  # three samples at a time
    found = chunked.loss_from_features(features, **batch)
    torch.testing.assert_close(found.terms, expected.terms)
    torch.testing.assert_close(found.total, expected.total)
    assert set(found.terms) >= {"ancestors", "expected_cost"}
    found.total.backward()
    expected.total.backward()
    for (name, ours), theirs in zip(chunked.named_parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, msg=name)


def test_it_needs_a_tree_and_says_what_to_give():
    with pytest.raises(InputError, match=r"taxonomy: Kin needs the tree of the classes.*Taxonomy\.from_nested"):
        Kin(classes=6)
    with pytest.raises(InputError, match=r"taxonomy: expected a labelkin\.Taxonomy, got int; give"):
        Kin(6)
    with pytest.raises(InputError, match="a tree of the classes needs a taxonomy or training data"):
        Kin.build(Context(classes=("a", "b"), features=2))


def test_a_tree_built_from_data_comes_from_the_context():
    inputs, targets = values(30, 12, 3).float(), torch.arange(12) % 4
    objective = Kin.build(Context(classes=tuple("abcd"), features=3, inputs=inputs, targets=targets))
    assert objective.taxonomy.classes == tuple("abcd")
    assert (objective.ancestors, objective.preset, objective.learning) == (0.1, "kin", "means")
    assert torch.isfinite(objective(inputs, targets))


def test_the_order_of_the_classes_is_the_callers():
    order = ("c5", "c0", "c3", "c1", "c4", "c2")
    place = [TREE.classes.index(name) for name in order]
    here, (z, target) = made(), outputs()
    with default_dtype(torch.float64):
        there = Kin(TREE, classes=order, ancestors=0.3, learning="gradient", **FORM)
    there.embedding.data.copy_(here.embedding.data[place][:, place])
    moved = TwoHeads(*(part[:, place] for part in z))
    where = torch.tensor(place).argsort()[target]
    close(there.loss(moved, where).detach(), here.loss(z, target).detach())
