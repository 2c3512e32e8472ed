"""A state is loaded only into an objective like the one that it came from."""

import io
from pathlib import Path

import pytest
import torch

from labelkin import (
    AdaptiveLabels,
    ConditionalSoftmax,
    HierarchicalCrossEntropy,
    InputError,
    LabelEmbedding,
    LabelSmoothing,
    MixedCrossEntropy,
    OneHot,
    Retrospection,
    SemanticSmoothing,
    Taxonomy,
)
from labelkin.training import load_packed, save_packed
from support.cases import CASES, Case

TREE = Taxonomy.from_paths(["a/x", "a/y", "b/z", "b/w"])
OTHER = Taxonomy.from_paths(["a/x", "a/z", "b/y", "b/w"])
RELATION = 1 - torch.eye(3)

DIFFERENT = {
    "smoothing": (
        LabelSmoothing(classes=3),
        LabelSmoothing(classes=3, smoothing=0.2),
        "smoothing: .* 0.2, .* with 0.1",
    ),
    "tau": (
        Retrospection(classes=3, samples=4),
        Retrospection(classes=3, samples=4, tau=2.0),
        r"tau: this Retrospection has 2.0, the saved state is from one with 5.0",
    ),
    "preset": (
        LabelEmbedding(classes=3),
        LabelEmbedding(classes=3, preset="released"),
        "preset: .*'released'.*'paper'",
    ),
    "memory": (
        AdaptiveLabels(classes=3, preset="memory"),
        AdaptiveLabels(classes=3, memory=0.0),
        r"memory: .*0.0.*30.0",
    ),
    "rule": (AdaptiveLabels(classes=3), AdaptiveLabels(classes=3, preset="paper"), r"preset: .*'paper'.*'cosine'"),
    "sigma": (
        SemanticSmoothing(classes=3, relation=RELATION / 2),
        SemanticSmoothing(classes=3, relation=RELATION / 2, sigma=0.3),
        "sigma",
    ),
    "prior": (
        MixedCrossEntropy(classes=3, relation=RELATION / 2, learn=True),
        MixedCrossEntropy(classes=3, relation=RELATION / 2, learn=True, prior=0.1),
        "prior",
    ),
    "tree": (
        ConditionalSoftmax(taxonomy=TREE),
        ConditionalSoftmax(taxonomy=OTHER.reorder(TREE.classes)),
        "taxonomy: the tree",
    ),
    "order": (
        HierarchicalCrossEntropy(taxonomy=TREE),
        HierarchicalCrossEntropy(taxonomy=TREE, classes=["y", "x", "z", "w"]),
        "classes: the class names",
    ),
    "class names": (OneHot(classes=["a", "b"]), OneHot(classes=["b", "a"]), "classes: the class names"),
    "objective": (OneHot(classes=3), LabelSmoothing(classes=3), "objective: expected the state of LabelSmoothing"),
}


@pytest.mark.parametrize(("saved", "other", "message"), DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a model"])
def test_a_state_of_another_objective_is_refused_before_anything_is_loaded(saved, other, message, inside):
    def model(head):
        return torch.nn.Sequential(head) if inside else head

    before = {name: value.clone() for name, value in other.named_parameters()}
    with pytest.raises(InputError, match=message):
        model(other).load_state_dict(model(saved).state_dict())
    for name, value in other.named_parameters():
        assert torch.equal(value, before[name])


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_state_of_the_same_objective_is_loaded_from_every_format(case: Case, tmp_path: Path):
    state = case.settled(features=4, class_weight=True).state_dict()
    stored = io.BytesIO()
    torch.save(state, stored)
    stored.seek(0)
    save_packed(tmp_path / "state", dict(state))
    earlier = {name: value for name, value in state.items() if name != "_extra_state"}
    if case.objective == "retrospection":
        earlier["_extra_state"] = {k: v for k, v in state["_extra_state"].items() if k != "signature"}
    for read in (torch.load(stored, weights_only=True), load_packed(tmp_path / "state"), earlier):
        loaded = case.make(features=4, class_weight=True)
        assert loaded.load_state_dict(read) == torch.nn.modules.module._IncompatibleKeys([], [])
        for name, parameter in loaded.named_parameters():
            assert torch.equal(parameter, state[name])


def test_a_count_of_classes_accepts_a_state_with_names():
    OneHot(classes=2, features=3).load_state_dict(OneHot(classes=["a", "b"], features=3).state_dict())


def test_a_missing_table_is_still_missed():
    objective = Retrospection(classes=3, samples=4)
    state = {name: value for name, value in objective.state_dict().items() if name != "_extra_state"}
    with pytest.raises(RuntimeError, match="_extra_state"):
        objective.load_state_dict(state)
