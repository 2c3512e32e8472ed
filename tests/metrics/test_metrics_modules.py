"""The torchmetrics classes give what the functions give: over batches, and over two processes."""

import copy
import math
import pickle
import subprocess
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from labelkin import InputError, Taxonomy, metrics
from labelkin._extras import MissingExtra
from labelkin.metrics._tree_tensors import class_distances, tree_tensors
from labelkin.structure import DISTANCES as DISTANCES_KNOWN
from support.later import Later
from support.trees import KINDS, random_taxonomy

torchmetrics = Later("torchmetrics")

CLASSES = 9
TREE = random_taxonomy(np.random.default_rng(4), CLASSES, "unbalanced")
DISTANCES = TREE.distance("semantic")


def drawn() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    return (2 * torch.randn(61, CLASSES, generator=draw)).softmax(-1), torch.randint(CLASSES, (61,), generator=draw)


def weighted(predicted: Tensor, target: Tensor, *, normalize: bool) -> float:
    confusion = metrics.confusion_matrix(predicted, target, CLASSES)
    return metrics.weighted_accuracy(confusion, DISTANCES, normalize=normalize).mean


CASES = {  # the class, what it takes, and the function of all samples
    "accuracy": (lambda: metrics.Accuracy(), "predicted", lambda p, y: metrics.accuracy(p, y).mean),
    "top 3": (lambda: metrics.TopKAccuracy(k=3), "probs", lambda p, y: metrics.top_k_accuracy(p, y, k=3).mean),
    "severity": (
        lambda: metrics.MistakeSeverity(taxonomy=TREE),
        "predicted",
        lambda p, y: metrics.mistake_severity(p, y, TREE).mean,
    ),
    "distance": (
        lambda: metrics.AverageDistance(taxonomy=TREE, k=5, distance="edges"),
        "probs",
        lambda p, y: metrics.average_distance(p, y, TREE, k=5, distance="edges").mean,
    ),
    "precision": (
        lambda: metrics.HierarchicalPrecision(taxonomy=TREE),
        "predicted",
        lambda p, y: metrics.hierarchical_precision(p, y, TREE).mean,
    ),
    "recall": (
        lambda: metrics.HierarchicalRecall(taxonomy=TREE),
        "predicted",
        lambda p, y: metrics.hierarchical_recall(p, y, TREE).mean,
    ),
    "f1": (
        lambda: metrics.HierarchicalF1(taxonomy=TREE),
        "predicted",
        lambda p, y: metrics.hierarchical_f1(p, y, TREE).mean,
    ),
    "weighted": (
        lambda: metrics.WeightedAccuracy(distances=DISTANCES),
        "predicted",
        lambda p, y: weighted(p, y, normalize=False),
    ),
    "weighted, normalized": (
        lambda: metrics.WeightedAccuracy(distances=DISTANCES, normalize=True),
        "predicted",
        lambda p, y: weighted(p, y, normalize=True),
    ),
    "calibration": (
        lambda: metrics.CalibrationError(bins=7),
        "probs",
        lambda p, y: metrics.expected_calibration_error(p, y, bins=7).error,
    ),
    "brier": (lambda: metrics.BrierScore(), "probs", lambda p, y: metrics.brier_score(p, y).mean),
}
every_case = pytest.mark.parametrize("name", CASES)
pytestmark = pytest.mark.filterwarnings(
    "ignore:weighted_accuracy. undefined .NaN. for"
)  # a class absent from few samples


def fed(name: str) -> tuple[Tensor, Tensor]:
    probs, target = drawn()
    return (probs if CASES[name][1] == "probs" else probs.argmax(-1)), target


@every_case
def test_batches_add_up_to_the_function(name: str):
    given, target = fed(name)
    metric = CASES[name][0]()
    for rows in torch.arange(len(target)).split([30, 1, 0, 20, 10]):
        metric.update(given[rows], target[rows])
    found = metric.compute()
    assert found.dtype == torch.float64
    assert float(found) == pytest.approx(CASES[name][2](given, target), abs=1e-9)
    metric.reset()
    metric.update(given[:7], target[:7])
    assert float(metric.compute()) == pytest.approx(CASES[name][2](given[:7], target[:7]), abs=1e-9)


@every_case
def test_a_step_gives_the_batch_and_a_copy_goes_on(name: str):
    given, target = fed(name)
    metric = CASES[name][0]()
    assert float(metric(given[:20], target[:20])) == pytest.approx(CASES[name][2](given[:20], target[:20]), abs=1e-9)
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        twin.update(given[20:], target[20:])
        assert float(twin.compute()) == pytest.approx(CASES[name][2](given, target), abs=1e-9)


@every_case
def test_without_samples_it_is_undefined(name: str):
    metric = CASES[name][0]()
    metric.update(*(part[:0] for part in fed(name)))
    with pytest.warns(metrics.UndefinedMetric, match="undefined"):
        assert math.isnan(metric.compute())


def test_a_batch_without_mistakes_is_passed_over_in_silence(recwarn):
    metric = metrics.MistakeSeverity(taxonomy=TREE)
    metric.update(torch.tensor([1, 2]), torch.tensor([1, 2]))
    metric.update(torch.tensor([1]), torch.tensor([0]))
    assert float(metric.compute()) == TREE.distance("height", 0, 1)
    assert not recwarn.list


@pytest.mark.slow
def test_two_processes_give_what_one_gives(tmp_path: Path):
    """Shards of 50 and 11 samples."""
    processes = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for process in processes:
        _, complaints = process.communicate(timeout=600)
        assert process.returncode == 0, complaints
    for rank in range(2):
        found = torch.load(tmp_path / f"found.{rank}")
        assert found == pytest.approx({name: CASES[name][2](*fed(name)) for name in CASES}, abs=1e-9)


@every_case
def test_an_update_waits_for_no_device(name: str):
    """Tensors without contents: whatever reads a number, or makes a shape of one, fails on them."""
    metric = CASES[name][0]().to("meta")
    metric.update(*(part.to("meta") for part in fed(name)))
    assert all(getattr(metric, state).device.type == "meta" for state in metric._defaults)


@pytest.mark.parametrize("kind", DISTANCES_KNOWN)
@pytest.mark.parametrize("tree_kind", KINDS)
def test_distances_on_tensors_are_the_taxonomys(tree_kind: str, kind):
    tree = random_taxonomy(np.random.default_rng(7), CLASSES, tree_kind)
    everyone = torch.arange(CLASSES)
    found = class_distances(tree_tensors(tree), kind, everyone.unsqueeze(1), everyone)
    assert np.array_equal(found.numpy(), tree.distance(kind))


def test_the_classes_are_at_the_package():
    public = {name: getattr(metrics, name) for name in metrics.__all__}
    kinds = {name for name, kind in public.items() if isinstance(kind, type) and issubclass(kind, torchmetrics.Metric)}
    assert kinds == {type(make()).__name__ for make, _, _ in CASES.values()}
    assert kinds <= set(dir(metrics))
    with pytest.raises(AttributeError, match="no attribute 'Accurac'"):
        _ = metrics.Accurac


def test_hierarchical_classes_take_nodes():
    draw = torch.Generator().manual_seed(0)
    nodes, target = torch.randint(len(TREE), (30,), generator=draw), torch.randint(CLASSES, (30,), generator=draw)
    metric = metrics.HierarchicalF1(taxonomy=TREE, predicted_as="nodes")
    metric.update(nodes, target)
    expected = metrics.hierarchical_f1(nodes, target, TREE, predicted_as="nodes").mean
    assert float(metric.compute()) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["accuracy", "severity", "f1", "weighted", "brier"])
def test_values_are_checked_on_the_cpu(name: str):
    given, target = fed(name)
    with pytest.raises(InputError, match="target: expected class positions from 0"):
        CASES[name][0]().update(given, target - CLASSES)


def test_without_torchmetrics_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "labelkin.metrics._torchmetrics_base")
    with pytest.raises(MissingExtra, match=r"needs torchmetrics.*pip install 'labelkin\[torchmetrics\]'"):
        import_module("labelkin.metrics._torchmetrics_base")


def test_the_functions_import_neither_torchmetrics_nor_scikit_learn():
    code = "import sys, labelkin.metrics; print({'torchmetrics', 'sklearn', 'scipy.stats'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def work(rank: int, folder: Path) -> None:
    """One of the two processes."""
    meeting = f"file://{folder}/store"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=timedelta(seconds=600))
    found = {}
    for name, (make, _, _) in CASES.items():
        given, target = (part.split([50, 11])[rank] for part in fed(name))
        metric = make()
        metric.update(given, target)
        found[name] = float(metric.compute())
    torch.save(found, folder / f"found.{rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))


def wide(k: int) -> Tensor:
    """Scores that prefer the first class, and the others in order."""
    return -torch.arange(10.0).expand(k, 10)


def test_a_collection_keeps_metrics_apart_that_begin_alike():
    """torchmetrics updates one of several whose states are equal after the first batch; here all are right in it."""
    other = random_taxonomy(np.random.default_rng(5), 10, "unbalanced")
    tree = random_taxonomy(np.random.default_rng(6), 10, "unbalanced")
    apart = {
        "top 1": metrics.TopKAccuracy(k=1),
        "top 5": metrics.TopKAccuracy(k=5),
        "height": metrics.AverageDistance(taxonomy=tree),
        "edges": metrics.AverageDistance(taxonomy=tree, distance="edges"),
        "other": metrics.AverageDistance(taxonomy=other),
    }
    collection = torchmetrics.MetricCollection(copy.deepcopy(apart))
    for scores, target in [(wide(2), torch.tensor([0, 0])), (wide(10), torch.full((10,), 3))]:
        collection.update(scores, target)
        for metric in apart.values():
            metric.update(scores, target)
    assert collection.compute() == {name: metric.compute() for name, metric in apart.items()}


def test_a_collection_keeps_trees_and_tables_apart():
    trees = [random_taxonomy(np.random.default_rng(seed), CLASSES, "unbalanced") for seed in (1, 2)]
    apart = {f"severity {i}": metrics.MistakeSeverity(taxonomy=tree) for i, tree in enumerate(trees)}
    apart |= {f"f1 {i}": metrics.HierarchicalF1(taxonomy=tree) for i, tree in enumerate(trees)}
    apart |= {f"weighted {i}": metrics.WeightedAccuracy(distances=t.distance("semantic")) for i, t in enumerate(trees)}
    collection = torchmetrics.MetricCollection(copy.deepcopy(apart))
    right = torch.zeros(3, dtype=torch.int64)
    for predicted, target in [(right, right), (torch.arange(CLASSES), torch.arange(CLASSES).flip(0))]:
        collection.update(predicted, target)
        for metric in apart.values():
            metric.update(predicted, target)
    assert collection.compute() == {name: metric.compute() for name, metric in apart.items()}


def test_a_collection_still_shares_what_is_the_same():
    same = torchmetrics.MetricCollection(
        [metrics.HierarchicalPrecision(taxonomy=TREE), metrics.HierarchicalRecall(taxonomy=TREE)]
    )
    same.update(torch.tensor([0, 1]), torch.tensor([0, 2]))
    assert [len(group) for group in same.compute_groups.values()] == [2]


@every_case
def test_it_hands_its_value_and_range_to_the_plot(name: str, monkeypatch):
    seen = {}

    def plotted(val, ax, **options):
        seen.update(options, val=val, ax=ax)
        return "figure", "axes"

    monkeypatch.setattr("torchmetrics.metric.plot_single_or_multi_val", plotted)
    given, target = fed(name)
    metric = CASES[name][0]()
    metric.update(given, target)
    assert metric.plot() == ("figure", "axes")
    assert float(seen["val"]) == float(metric.compute())
    assert seen["higher_is_better"] is metric.higher_is_better
    top = {"severity": None, "distance": None, "brier": 2.0}.get(name, 1.0)
    assert (seen["lower_bound"], seen["upper_bound"]) == (0.0, top)
    assert metric.plot([metric.compute()] * 2, ax="mine") == ("figure", "axes")
    assert (len(seen["val"]), seen["ax"]) == (2, "mine")


@every_case
def test_it_is_plotted_by_matplotlib(name: str):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    given, target = fed(name)
    metric = CASES[name][0]()
    curve = [metric(given[rows], target[rows]) for rows in torch.arange(len(target)).split(20)]
    _, axes = metric.plot(curve)
    (line,) = axes.get_lines()[:1]
    np.testing.assert_allclose(line.get_ydata(), [float(value) for value in curve])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_another_dtype_of_the_states_leaves_the_tree_as_it_is(name: str, dtype: torch.dtype):
    make, takes, function = CASES[name]
    probs, target = drawn()
    given = probs if takes == "probs" else probs.argmax(-1)
    expected = pytest.approx(function(given, target), rel=4 * torch.finfo(dtype).eps)
    metric = make().set_dtype(dtype)
    metric.update(given, target)
    assert metric.compute().dtype == dtype
    assert float(metric.compute()) == expected
    parent = torch.nn.ModuleList([make()]).type(dtype)
    parent[0].update(given, target)
    assert float(parent[0].compute()) == expected


@pytest.mark.parametrize("name", ["Accuracy", "MistakeSeverity", "HierarchicalF1"])
def test_scores_where_classes_are_needed_are_named(name: str):
    """Other metrics of torchmetrics take scores; the message blamed the shape of the target."""
    tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
    metric = getattr(metrics, name)(**({} if name == "Accuracy" else {"taxonomy": tree}))
    with pytest.raises(
        InputError, match=r"^predicted: expected .*got shape \(4, 3\); of scores, pass scores.argmax\(-1\)"
    ):
        metric.update(torch.rand(4, 3), torch.tensor([0, 1, 2, 0]))
