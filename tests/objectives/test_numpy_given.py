"""What users of numpy, pandas and scikit-learn hand over is understood, or refused in a sentence."""

from pathlib import Path

import numpy as np
import pytest
import torch

import labelkin
from labelkin import InputError, OneHot, Retrospection, Taxonomy, decide, metrics, relations
from labelkin.comparison import compare
from labelkin.training import Settings

TREE = Taxonomy.from_nested({"a": ["cat", "dog"], "b": ["car"]})
NAMES = np.array(["car", "cat", "dog"])


def test_names_may_be_an_array():
    assert OneHot(classes=NAMES).classes == ("car", "cat", "dog")
    assert labelkin.AdaptiveLabels(classes=NAMES).num_classes == 3
    assert labelkin.ConditionalSoftmax(taxonomy=TREE, classes=NAMES).classes == ("car", "cat", "dog")
    with pytest.raises(InputError, match="duplicate name 'cat'"):
        OneHot(classes=np.array(["cat", "cat"]))


def test_numbers_may_be_numpys():
    assert labelkin.LabelSmoothing(classes=3, smoothing=np.float32(0.25)).smoothing == 0.25
    settings = Settings(epochs=np.int64(3), lr=np.float32(0.5), batch_size=np.array(7))
    assert (settings.epochs, settings.lr, settings.batch_size) == (3, 0.5, 7)
    assert [type(value) for value in (settings.epochs, settings.lr)] == [int, float]
    with pytest.raises(InputError, match=r"smoothing: expected a number in \[0, 1\], got np.float32\(nan\)"):
        labelkin.LabelSmoothing(classes=3, smoothing=np.float32("nan"))


@pytest.mark.parametrize("given", [[0, 0, 1, 1], np.array([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1])])
def test_groups_may_be_an_array_or_a_tensor(given):
    assert torch.equal(relations.groups(given), relations.groups(["x", "x", "y", "y"]))
    members = {"x": torch.tensor([0, 1]), "y": np.array([2, 3])}
    assert torch.equal(relations.groups(members), relations.groups(["x", "x", "y", "y"]))


def compared(tmp_path: Path, **given):
    quick = {"objectives": ["one-hot"], "epochs": 1, "data_options": {"subset": 0.1}, "out": tmp_path}
    return compare("digits", **{**quick, **given})


@pytest.mark.long
def test_a_comparison_takes_numpys_numbers_and_one_name(tmp_path: Path):
    found = compared(tmp_path, seeds=np.arange(2), epochs=np.int64(1), objectives="one-hot")
    assert len(found.records["one-hot"]) == 2
    assert len(compared(tmp_path, seeds=[0, 1]).records["one-hot"]) == 2  # the same runs


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seeds": 1}, r"seeds: expected a list of whole numbers, such as \[0, 1, 2\], got 1"),
        ({"data_options": {"subste": 1}}, "there is no option 'subste'; .*Did you mean 'subset'"),
    ],
)
def test_a_comparison_refuses_in_a_sentence(tmp_path: Path, given: dict, sentence: str):
    with pytest.raises(InputError, match=sentence):
        compared(tmp_path, **given)
    assert not list(tmp_path.iterdir())


PROBS = torch.full((2, 3), 1 / 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.accuracy(np.array([0]), np.array([0])), "predicted: expected a tensor, got ndarray"),
        (lambda: metrics.accuracy(torch.tensor([0]), [0]), "target: expected a tensor, got list"),
        (
            lambda: metrics.top_k_accuracy([[0.1]], torch.tensor([0]), k=1),
            r"scores: expected a tensor \(n, K\), got list",
        ),
        (
            lambda: metrics.mistake_severity(torch.tensor([0]), torch.tensor([0]), None),
            "taxonomy: expected a labelkin.Taxonomy, got NoneType",
        ),
        (lambda: decide.Temperature().fit(PROBS, [0, 1]), "expected a tensor of class positions, got list"),
        (
            lambda: decide.least_cost(PROBS, "x"),
            r"costs: expected a labelkin.Taxonomy or costs of shape \(classes, answers\); got 'x'",
        ),
        (
            lambda: decide.least_cost(PROBS, {"cat": {"dog": 1}}),
            r"by position: put those of a table with names into the order of the columns of probs; got \{'cat': \{'dog': 1\}\}",
        ),
        (
            lambda: OneHot(classes=NAMES).label_vectors(["cat"]),
            r"classes: expected class positions from 0 to 2, got \['cat'\]",
        ),
        (
            lambda: OneHot(classes=3).scores(torch.tensor([[1, 2, 3]])),
            "outputs: expected floating-point tensors, got torch.int64",
        ),
        (
            lambda: labelkin.Context(classes=("a", "b"), inputs=np.ones((2, 3)), targets=np.array([0, 1])),
            "inputs: expected a tensor",
        ),
    ],
)
def test_what_is_no_tensor_is_refused_in_a_sentence(call, sentence: str):
    with pytest.raises(InputError, match=sentence):
        call()


def test_class_probabilities_in_double_precision_do_for_single_outputs():
    target = torch.tensor(np.eye(3)[[0, 1, 2, 1]])
    for name, kind in labelkin.OBJECTIVES.items():
        if kind.linear_in_target:
            objective = kind.build(labelkin.Context(classes=("car", "cat", "dog"), features=5, taxonomy=TREE))
            loss = objective.loss(objective(torch.randn(4, 5)), target)
            assert loss.dtype == torch.float32, name


def test_a_table_of_another_size_is_not_taken_over():
    with pytest.raises(InputError, match="the saved table is of 10 samples of 3 classes, this one of 20 of 3"):
        Retrospection(classes=3, samples=20).load_state_dict(Retrospection(classes=3, samples=10).state_dict())


@pytest.mark.parametrize("name", ["adaptive-labels", "retrospection"])
def test_a_refresh_takes_the_padding_that_a_loss_takes(name: str):
    context = labelkin.Context(
        classes=("a", "b", "c"), train_samples=4, taxonomy=Taxonomy.from_nested({"x": ["a", "b"], "y": ["c"]})
    )
    options = {"preset": "memory"} if name == "adaptive-labels" else {}
    padded, plain = (labelkin.OBJECTIVES[name].build(context, **options).eval() for _ in range(2))
    outputs, target = torch.randn(4, 3), torch.tensor([0, 1, 2, -100], dtype=torch.int16)
    outputs[3] = torch.nan
    padded.refresh([(outputs, target, torch.tensor([1.0, 1.0, 1.0, 0.0]))])
    plain.refresh([(outputs[:3], target[:3])])
    assert torch.equal(padded.label_vectors(), plain.label_vectors())
    with pytest.raises(InputError, match="target: expected class positions from 0 to 2, got -100"):
        padded.refresh([(outputs, target)])
