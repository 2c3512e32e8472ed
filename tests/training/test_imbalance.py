"""Classes of different sizes: weights, sampling, logit adjustment, and metrics that count all classes the same."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.utils import compute_class_weight
from torch.nn.functional import cross_entropy, log_softmax

import labelkin
from labelkin import OBJECTIVES, Context, InputError, Model, OneHot, Taxonomy, metrics, relations
from labelkin.data import ArraySplit, Batches
from labelkin.data._order import evened
from labelkin.functional import adjusted_logits
from labelkin.report._class_sizes import size_groups
from labelkin.runs import RunFolder, RunSpec, run_id
from labelkin.training import Settings, class_weights
from support.commands import FOUND, call, refused
from support.numeric import positions, values

COUNTS = torch.tensor([90, 9, 1])
QUICK = ("--epochs", 1, "--batch-size", 64)


# Weights from counts


def test_weights_are_those_of_their_formulas():
    target = np.repeat([0, 1, 2], COUNTS)
    balanced = compute_class_weight("balanced", classes=np.arange(3), y=target)
    assert relations.balanced_weights(COUNTS).tolist() == pytest.approx(balanced.tolist())
    slow = [(1 - 0.99) / (1 - 0.99**n) for n in COUNTS.tolist()]
    slow = [3 * weight / sum(slow) for weight in slow]
    assert relations.effective_weights(COUNTS, beta=0.99).tolist() == pytest.approx(slow)
    assert relations.effective_weights(COUNTS, beta=0.0).tolist() == pytest.approx([1, 1, 1])
    near_one = relations.effective_weights(COUNTS, beta=1 - 1e-9)
    assert (near_one / near_one[0]).tolist() == pytest.approx([1, 10, 90], rel=1e-4)
    assert relations.log_priors(COUNTS).exp().tolist() == pytest.approx([0.9, 0.09, 0.01])


def test_a_class_without_samples_does_not_change_the_others():
    for weigh in (relations.balanced_weights, relations.effective_weights):
        first, *others = weigh([90, 9, 1]).tolist()
        assert weigh([90, 0, 9, 1]).tolist() == pytest.approx([first, 1.0, *others])
    assert torch.isfinite(relations.log_priors([5, 0])).all()
    with pytest.raises(InputError, match="only zeros"):
        relations.balanced_weights([0, 0])
    with pytest.raises(InputError, match="beta: expected a number below 1"):
        relations.effective_weights([1, 2], beta=1.0)


def test_weights_from_files_go_by_class_name(tmp_path):
    (tmp_path / "w.csv").write_text("class,weight\nb,2\na,1.5\n")
    (tmp_path / "bare.csv").write_text("b,2\na,1.5\n")
    (tmp_path / "w.json").write_text('{"b": 2, "a": 1.5}')
    for name in ("w.csv", "bare.csv", "w.json"):
        assert class_weights(str(tmp_path / name), COUNTS[:2], ("a", "b")).tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,1\n", "has no weight of 'b'; add one for every class"),
        ("a,1\nb,2\nc,3\n", "has a weight of 'c', which is not a class of the data"),
        ("a,1\nb,-2\n", "the weight of 'b'"),
        ("a,0\nb,0\n", "got only zeros"),
        ("a,1\nb,2\nb,3\n", "a class occurs twice"),
        ("a,1,2\n", "expected a class and a weight in each line"),
        ("a,1\nb,x\n", "could not convert"),
    ],
)
def test_bad_files_of_weights_are_refused(tmp_path, content, sentence):
    (tmp_path / "w.csv").write_text(content)
    with pytest.raises(InputError, match=sentence):
        class_weights(str(tmp_path / "w.csv"), COUNTS[:2], ("a", "b"))


# Logit adjustment


def test_adjusted_logits_are_those_of_a_slow_loop():
    logits, priors = values(0, 4, 3), (COUNTS / COUNTS.sum()).log().double()
    slow = [[z + 1.5 * p for z, p in zip(row, priors.tolist(), strict=True)] for row in logits.tolist()]
    assert adjusted_logits(logits, priors, tau=1.5).tolist() == [pytest.approx(row) for row in slow]
    assert torch.equal(adjusted_logits(logits, priors, tau=0.0), logits)


def test_the_adjusted_loss_is_that_of_menon_et_al():
    """Eq. 11: log(1 + sum_{k != y} (pi_k / pi_y)^tau exp(z_k - z_y))."""
    logits, target, tau = values(1, 6, 3), positions(2, 3, 6), 1.0
    prior = (COUNTS / COUNTS.sum()).tolist()
    slow = [
        math.log(1 + sum((prior[k] / prior[y]) ** tau * math.exp(row[k] - row[y]) for k in range(3) if k != y))
        for row, y in zip(logits.tolist(), target.tolist(), strict=True)
    ]
    model = Model(torch.nn.Identity(), OneHot(3), logit_offset=tau * relations.log_priors(COUNTS))
    assert float(model(logits, target)) == pytest.approx(sum(slow) / 6)
    assert float(model.loss_terms(logits, target).total) == pytest.approx(sum(slow) / 6)
    assert torch.equal(model(logits), logits)  # predictions are not adjusted
    uniform = Model(torch.nn.Identity(), OneHot(3), logit_offset=relations.log_priors([7, 7, 7]))
    assert float(uniform(logits, target)) == pytest.approx(float(cross_entropy(logits, target)))
    assert "logit_offset" not in model.state_dict()


def test_gradients_of_the_adjusted_loss():
    model = Model(torch.nn.Identity(), OneHot(3), logit_offset=relations.log_priors(COUNTS))
    target = positions(3, 3, 4)
    assert torch.autograd.gradcheck(lambda z: model(z, target), (values(4, 4, 3).requires_grad_(),))


TREE = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d", "e"]})


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_objectives_say_whether_their_outputs_are_softmax_logits(name):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(40, 6, generator=generator)
    context = Context(classes=TREE.classes, taxonomy=TREE, features=6, inputs=inputs, targets=torch.arange(40) % 5)
    objective = OBJECTIVES[name].build(context)
    outputs = objective.make_outputs(inputs)
    first = outputs if objective.outputs_type is None else outputs[0]
    if not objective.has_probabilities or first.shape[-1] != 5:
        assert not objective.softmax_logits
        return
    is_softmax = torch.allclose(objective.log_probs(outputs), log_softmax(first, -1), atol=1e-6)
    assert objective.softmax_logits == is_softmax


def test_only_the_head_that_predicts_is_adjusted():
    objective = OBJECTIVES["kin"].build(Context(classes=TREE.classes, taxonomy=TREE, features=6))
    offset = relations.log_priors([5, 4, 3, 2, 1])
    model = Model(torch.nn.Identity(), objective, logit_offset=offset)
    features = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
    plain, adjusted = objective.make_outputs(features), model._adjusted(features)
    assert torch.allclose(adjusted.z1, plain.z1 + offset.float())
    assert torch.equal(adjusted.z2, plain.z2)


# The sampler


def test_a_balanced_epoch_takes_each_class_equally_often():
    targets = torch.repeat_interleave(torch.arange(3), COUNTS)[torch.randperm(100)]
    order = evened(targets, seed=1, epoch=2)
    assert len(order) == 100
    assert sorted(torch.bincount(targets[order]).tolist()) == [33, 33, 34]
    for k in range(3):  # rounds through the samples of a class
        seen = torch.bincount(order[targets[order] == k], minlength=100)[targets == k]
        assert int(seen.max() - seen.min()) <= 1
    assert torch.equal(order, evened(targets, seed=1, epoch=2))
    assert not torch.equal(order, evened(targets, seed=1, epoch=3))
    split = ArraySplit(torch.zeros(100, 2), targets)
    epoch = list(Batches(split, batch_size=30, shuffle=True, seed=1, sampler="balanced").epoch(2))
    assert [len(batch.targets) for batch in epoch] == [30, 30, 30, 10]
    assert torch.equal(torch.cat([batch.index for batch in epoch]), order)


def test_a_class_without_training_samples_is_not_sampled():
    assert torch.bincount(torch.tensor([0, 2, 2])[evened(torch.tensor([0, 2, 2]), seed=0, epoch=0)])[1] == 0


# Metrics


@pytest.mark.parametrize("seed", range(3))
def test_balanced_metrics_are_those_of_scikit_learn(seed):
    target, predicted = positions(seed, 4, 30), positions(seed + 9, 5, 30)  # class 4 is only predicted
    found = metrics.balanced_accuracy(predicted, target), metrics.macro_f1(predicted, target)
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true") if 4 in predicted else noted():
        assert found[0].mean == pytest.approx(balanced_accuracy_score(target, predicted))
    assert found[1].mean == pytest.approx(f1_score(target, predicted, average="macro"))
    assert len(found[0].values) == 4


def noted():
    from contextlib import nullcontext

    return nullcontext()


def test_metrics_of_no_samples_are_undefined():
    nothing = torch.zeros(0, dtype=torch.long)
    for metric in (metrics.balanced_accuracy, metrics.macro_f1):
        with pytest.warns(metrics.UndefinedMetric):
            assert math.isnan(metric(nothing, nothing).mean)


# Runs


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    """Digits with few samples of most classes."""
    keep = np.concatenate([np.flatnonzero(FOUND.target == k)[: 160 if k < 2 else 16 + k] for k in range(10)])
    np.savez(tmp_path / "uneven.npz", x=FOUND.data[keep].astype("float32"), y=FOUND.target[keep])
    return tmp_path / "uneven.npz"


def test_a_run_trains_with_weights_and_keeps_them(uneven, tmp_path):
    out = tmp_path / "run"
    command = ("train", uneven, "--objective", "one-hot", *QUICK, "--class-weight", "balanced", "--out", out, "--json")
    told = json.loads(call(*command).stdout)
    assert 0 <= told["macro_f1"] <= 1
    assert 0 <= told["balanced_accuracy"] <= 1
    model = labelkin.load_run(out).model
    counts = torch.bincount(labelkin.data.load(uneven, calibration=0.05).train.targets, minlength=10)
    assert model.objective.class_weight.tolist() == pytest.approx(relations.balanced_weights(counts).tolist())
    assert RunFolder(out).config["settings"]["class_weight"] == "balanced"


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        ("--sampler", "balanced"),
        ("--logit-adjustment", "1"),
        ("--set", "one-hot.class_weight=effective"),
        ("--class-weight", "effective"),
    ],
)
def test_every_way_trains_something_else(uneven, tmp_path, given):
    weights = []
    for name, options in (("plain", ()), ("other", given)):
        result = call("train", uneven, "--objective", "one-hot", *QUICK, *options, "--out", tmp_path / name)
        assert result.exit_code == 0, result.stderr
        weights.append(labelkin.load_run(tmp_path / name).model.objective.head.weight)
    assert not torch.equal(*weights)


def test_what_does_not_fit_is_refused(uneven, tmp_path):
    out = ("--out", tmp_path / "run")
    assert "logit_adjustment: expected 0 for 'hierarchical', whose outputs are not the logits of a softmax" in refused(
        "train", uneven, "--objective", "hierarchical", "--logit-adjustment", 1, *out
    )
    assert "class_weight: expected balanced, effective, or a .csv or .json file" in refused(
        "train", uneven, "--objective", "one-hot", "--class-weight", "balance", *out
    )
    assert "sampler: expected 'random' with balanced" in refused(
        "train", uneven, "--objective", "one-hot", "--sampler", "balanced", "--balanced", 2, *out
    )
    assert not (tmp_path / "run").exists()


def test_ids_depend_on_the_settings_and_on_the_content_of_a_file_of_weights(tmp_path):
    plain = run_id(RunSpec(settings=Settings()))
    ids = {run_id(RunSpec(settings=Settings(**{name: value}))) for name, value in SETTINGS.items()}
    assert len({plain, *ids}) == 4
    file = tmp_path / "w.json"
    file.write_text('{"0": 1}')
    first = run_id(RunSpec(settings=Settings(class_weight=str(file))))
    copy = tmp_path / "copy.json"
    copy.write_text('{"0": 1}')
    assert run_id(RunSpec(settings=Settings(class_weight=str(copy)))) == first
    file.write_text('{"0": 2}')
    assert run_id(RunSpec(settings=Settings(class_weight=str(file)))) != first


SETTINGS = {"class_weight": "balanced", "sampler": "balanced", "logit_adjustment": 1.0}


@pytest.mark.long
def test_tables_and_the_report_show_rare_classes(uneven, tmp_path):
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps({"low": ["0", "1", "2", "3", "4"], "high": ["5", "6", "7", "8", "9"]}))
    command = ("compare", uneven, "--objectives", "one-hot,kin", "--taxonomy", tree, *QUICK, "--calibration", 0.2)
    result = call(*command, "--out", tmp_path / "runs", "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.stderr
    assert "F1 %" in result.stdout
    assert "balanced: accuracy averaged over the true classes" in result.stdout
    assert "Cost by class size" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_classes_are_grouped_by_size():
    groups = size_groups(np.array([50, 3, 200, 3, 7, 9]))
    assert [group.classes.tolist() for group in groups] == [[1, 3], [4, 5], [0, 2]]
    assert [group.name for group in groups] == ["3 samples", "7 to 9 samples", "50 to 200 samples"]
