"""NAA of a network's layers against 000 Eq. 5-7 written out, and what a trained network shows."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau, pearsonr
from sklearn.datasets import load_digits
from torch import nn

from labelkin._checks import InputError
from labelkin.analysis import activity_memory, approach, class_activity, leaf_order, linkage_table, linkage_tree
from labelkin.data import Minibatch
from labelkin.relations import groups, smooth

HALVES = groups([0] * 5 + [1] * 5)


class Tiny(nn.Module):
    """Two classes of layers to catch: a convolution, and a ReLU that overwrites what came before it."""

    def __init__(self, classes=3):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.drop = nn.Dropout(0.5)
        self.hidden = nn.Linear(2 * 2 * 2, 5)
        self.act = nn.ReLU(inplace=True)
        self.last = nn.Linear(5, classes)

    def forward(self, x):
        return self.last(self.act(self.hidden(self.drop(self.conv(x)).flatten(1))))


LAYERS = ["conv", "hidden", "act", "last"]


def tiny(samples=20, classes=3):
    torch.manual_seed(0)
    model = Tiny(classes)
    targets = torch.cat([torch.arange(classes), torch.randint(classes, (samples - classes,))])
    return model, torch.randn(samples, 1, 4, 4) + targets[:, None, None, None], targets


def by_hand(model, inputs):
    """The activations of each layer, made one layer at a time without hooks."""
    with torch.no_grad():
        conv = model.conv(inputs)
        hidden = model.hidden(conv.flatten(1))
        act = hidden.clamp(min=0)
        return {"conv": conv.flatten(1), "hidden": hidden, "act": act, "last": model.last(act)}


def literal_distance(activations, targets, classes):
    """Traces written out, with Z as features x samples."""
    z = [activations[targets == k].double().numpy().T for k in range(classes)]
    r = [own @ own.T / own.shape[1] for own in z]

    def trace(i, j):
        return sum(r[i][a][b] * r[j][b][a] for a in range(len(r[i])) for b in range(len(r[i])))

    return [[1 - trace(i, j) / math.sqrt(trace(i, i) * trace(j, j)) for j in range(classes)] for i in range(classes)]


def parts(inputs, targets, *ends):
    return [(inputs[a:b], targets[a:b]) for a, b in pairwise([0, *ends, len(targets)])]


@pytest.mark.parametrize("form", ["auto", "correlation", "gram"])
@pytest.mark.parametrize("ends", [(), (7, 9), tuple(range(1, 20))])
def test_distances_are_equation_7(form, ends):
    model, inputs, targets = tiny()
    found = class_activity(model, parts(inputs, targets, *ends), layers=LAYERS, classes=3, form=form)
    assert found.layers == tuple(LAYERS)
    assert found.counts.tolist() == [int((targets == k).sum()) for k in range(3)]
    for layer, activations in by_hand(model, inputs).items():
        expected = torch.tensor(literal_distance(activations, targets, 3), dtype=torch.float64)
        distances = found.distances[LAYERS.index(layer)]
        assert distances.dtype == torch.float64
        torch.testing.assert_close(distances, expected, atol=1e-6, rtol=0)  # activations are float32, by other batches


@pytest.mark.parametrize("form", ["correlation", "gram"])
def test_the_sums_are_exact_in_float64(form):
    _, inputs, targets = tiny(samples=60)
    rows = inputs.flatten(1).double().repeat(1, 4) * 1e-2 + 1  # almost parallel: too near for float32
    found = class_activity(
        nn.Identity(), parts(rows, targets, 13, 40, 55), layers=[], classes=3, with_input=True, form=form
    )
    expected = torch.tensor(literal_distance(rows, targets, 3), dtype=torch.float64)
    assert found.layers == ("(input)",)
    torch.testing.assert_close(found.distances[0], expected, atol=1e-13, rtol=0)


def test_the_model_is_left_as_it_was():
    model, inputs, targets = tiny()
    model.train()
    model.conv.eval()
    class_activity(model, [(inputs, targets)], layers=LAYERS, classes=3)
    assert model.training
    assert model.drop.training
    assert not model.conv.training
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_padding_is_left_out():
    model, inputs, targets = tiny()
    weight = torch.ones(len(targets))
    weight[12:] = 0
    padded = [Minibatch(inputs, targets, torch.arange(len(targets)), weight)]
    found = class_activity(model, padded, layers=["last"], classes=3)
    expected = class_activity(model, [(inputs[:12], targets[:12])], layers=["last"], classes=3)
    torch.testing.assert_close(found.distances, expected.distances, atol=1e-6, rtol=0)
    assert found.counts.sum() == 12


def test_memory_is_said_and_kept_to():
    model, inputs, targets = tiny()
    said = activity_memory(model, inputs[:1], layers=["conv", "last"], classes=3, form="correlation")
    assert said.features == (8, 3)
    sums = [8 * 3 * 8 * 8, 8 * 3 * 3 * 3]
    assert said.bytes == sum(s + s // 16 for s in sums) + sums[0]
    kept = activity_memory(model, inputs[:1], layers=["conv", "last"], classes=3, form="gram", samples=20)
    assert kept.bytes == 4 * 20 * (8 + 3) + 16 * (20 * 8 + 20 * 20)
    batches = [(inputs, targets)]
    assert class_activity(model, batches, layers=["conv", "last"], classes=3, form="correlation").memory == said
    assert class_activity(model, batches, layers=["conv", "last"], classes=3, form="gram").memory == kept
    with pytest.raises(InputError, match=r"NAA needs .* GiB for conv \(8 features, correlation\).*more than"):
        class_activity(model, batches, layers=["conv"], classes=3, form="correlation", limit=1000)


@pytest.mark.parametrize(
    ("classes", "features", "samples", "limit", "form"),
    [
        (3, 200, 20, 2**30, "gram"),  # (20 + 9) 200^2 against 20^2 200 / 2 multiplications
        (3, 200, None, 2**30, "correlation"),  # nothing is known of the samples
        (3, 3, 20, 2**30, "correlation"),
        (100, 512, 10_000, 2**30, "correlation"),  # 5.2e9 against 25.6e9
        (100, 512, 10_000, 400 * 2**20, "gram"),  # 412.5 MiB against 354.75
        (100, 512, 10_000, 1, "gram"),  # neither fits: the smaller is what the refusal speaks of
    ],
)
def test_auto_takes_the_form_with_less_work_that_fits(classes, features, samples, limit, form):
    model, inputs = nn.Sequential(nn.Linear(4, features)), torch.zeros(1, 4)
    said = activity_memory(model, inputs, layers=["0"], classes=classes, samples=samples, limit=limit)
    assert said.forms == (form,)


def test_memory_is_logged_before_anything_is_held(caplog):
    model, inputs, targets = tiny()
    with caplog.at_level("INFO", logger="labelkin.analysis"):
        class_activity(model, [(inputs, targets)], layers=["hidden"], classes=3)
    assert "NAA needs" in caplog.text
    assert "hidden (5 features, correlation)" in caplog.text


class Twice(Tiny):
    def forward(self, x):
        return self.last(self.act(self.act(self.hidden(self.conv(x).flatten(1)))))


def use(**changes):
    model, inputs, targets = tiny()
    arguments = {"model": model, "batches": [(inputs, targets)], "layers": ["last"], "classes": 3} | changes
    return class_activity(arguments.pop("model"), arguments.pop("batches"), **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": ["hiden"]}, "no layer 'hiden'. Did you mean 'hidden'"),
        ({"layers": ["zzz"]}, "no layer 'zzz'. It has 'conv', 'drop'"),
        ({"layers": ["act"], "model": Twice()}, "'act' ran 2 times"),
        ({"layers": ["drop"], "model": Twice()}, "'drop' did not run"),
        (
            {"layers": ["1"], "model": nn.Sequential(nn.Flatten(), nn.LSTM(16, 2))},
            "'1': expected real activations .*got tuple",
        ),
        ({"batches": []}, "at least one batch"),
        ({"classes": 4}, "no sample of class 3"),
        ({"classes": 2}, "from 0 to 1, got 2"),
        ({"form": "gramm"}, "Did you mean 'gram'"),
        ({"form": "gram", "batches": iter([(torch.zeros(1, 1, 4, 4), torch.zeros(1).long())])}, "give samples"),
        ({"batches": [(torch.full((3, 1, 4, 4), torch.nan), torch.arange(3))]}, "'last'.*NaN"),
        ({"batches": [(torch.zeros(3, 1, 4, 4), torch.zeros(3))]}, "class positions"),
        (
            {
                "model": nn.Identity(),
                "layers": [],
                "with_input": True,
                "form": "correlation",
                "batches": [(torch.eye(3, dtype=torch.float64) * 1e200, torch.arange(3))],
            },
            "too large",
        ),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(InputError, match=message):
        use(**changes)


def test_approach_by_hand():
    targets = smooth(groups([0, 0, 1, 1]), 0.4)
    cosine = 2 * 0.6 * 0.4 / (0.6**2 + 0.4**2)
    wanted = np.array([1 - cosine**2, 1, 1, 1, 1, 1 - cosine**2])  # pairs 01 02 03 12 13 23
    first = np.array([0.1, 0.5, 0.4, 0.6, 0.7, 0.3])
    layers = torch.zeros(2, 4, 4, dtype=torch.float64)
    row, column = torch.triu_indices(4, 4, offset=1)
    layers[0, row, column], layers[1, row, column] = torch.from_numpy(first), torch.from_numpy(3 * wanted)
    layers[1, row, column] += 1e-14 * torch.arange(6)  # rounding breaks no ties
    found = approach(layers + layers.mT, targets)
    expected = [pearsonr(first, wanted).statistic, 1.0]
    assert found.pearson.tolist() == pytest.approx(expected)
    assert found.kendall.tolist() == pytest.approx([kendalltau(first, wanted).statistic, 1.0])


def test_one_hot_targets_have_no_geometry_to_approach():
    with pytest.warns(UserWarning, match="undefined"):
        found = approach(torch.rand(1, 4, 4), torch.eye(4))
    assert found.pearson.isnan().all()
    assert found.kendall.isnan().all()


def trained_on_digits(targets, seed=0):
    digits = load_digits()
    inputs, labels = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(-1))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model[:5](inputs), targets[labels].float()).backward()
        optimizer.step()
    batches = list(zip(inputs.split(256), labels.split(256), strict=True))
    return class_activity(model, batches, layers=["1", "3", "5"], classes=10, with_input=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1])
def test_training_brings_the_layers_to_the_targets_geometry(seed):
    targets = smooth(HALVES, 0.5)
    found = approach(trained_on_digits(targets, seed).distances, targets)
    given, first, second, probabilities = found.pearson.tolist()
    assert given < first < 0.3  # the digits themselves know nothing of the halves
    assert second > 0.9
    assert probabilities > 0.99
    ceiling = math.sqrt(20 * 25 / (45 * 44 / 2))  # tau-b where the targets tie in all but 20 x 25 pairs of pairs
    assert found.kendall[0] < 0.1
    assert found.kendall[-1] == pytest.approx(ceiling, abs=0.01)
    assert found.kendall.max() <= ceiling + 1e-12


@pytest.mark.long
def test_the_tree_of_the_last_layer_is_the_grouping():
    names = tuple("0123456789")
    distances = trained_on_digits(smooth(HALVES, 0.5)).distances[-1]
    tree = linkage_tree(distances, names)
    assert tree.classes == names
    halves = {frozenset(tree.names[i] for i in tree.subtree(int(c)) if tree.is_leaf[i]) for c in tree.children[0]}
    assert halves == {frozenset("01234"), frozenset("56789")}
    order = leaf_order(distances)
    assert sorted(order) == list(range(10))
    assert len({k < 5 for k in order[:5].tolist()}) == 1


def test_trees_by_hand():
    places = torch.tensor([0.0, 10.0, 1.0, 12.0])  # pairs (0, 2) at 1 and (1, 3) at 2, then 10.5 on average
    distances = (places[:, None] - places).abs()
    table = linkage_table(distances)
    assert table[:, 2].tolist() == pytest.approx([1.0, 2.0, (10 + 12 + 9 + 11) / 4])
    assert linkage_tree(distances, list("abcd")).to_newick().count("(") == 3
    assert leaf_order(distances).tolist() in ([0, 2, 1, 3], [3, 1, 2, 0])
    line = torch.rand(15, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sorted_out = leaf_order((line[:, None] - line).abs()).tolist()
    assert sorted_out in (line.argsort().tolist(), line.argsort(descending=True).tolist())
    tree = linkage_tree(distances, list("abcd"))
    assert tree.distance("height")[0].tolist() == [0, 2, 1, 2]


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        ([[0, 1], [2, 0]], "symmetric"),
        ([[0, -1], [-1, 0]], "not negative"),
        ([[1, 1], [1, 1]], "zero diagonal"),
        ([[0, 1, 2]], "square"),
    ],
)
def test_what_is_no_distance_is_refused(distances, message):
    with pytest.raises(InputError, match=message):
        leaf_order(distances)
