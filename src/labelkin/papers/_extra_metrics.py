"""Metrics that papers report and that runs do not record."""

import json
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import torch
from torch import Tensor

from labelkin import functional, metrics
from labelkin._files import write_text
from labelkin.data import Batches, Split
from labelkin.functional import tree_index
from labelkin.papers._measured import Run
from labelkin.papers._published import Table
from labelkin.runs import MEASURES, DataWorkspace, Record, RunFolder, fastest_device, load_run, read_measures
from labelkin.structure import Taxonomy, catalogue

EVALUATION_BATCH = 1024


def extra_measures(record: Record, wanted: Sequence[str]) -> dict[str, float]:
    """Return the measures of 000 ("mse" and "kmeans") of a finished run. They are computed once and stored in its folder."""
    known = read_measures(record.path)
    taken = dict(known)
    if "mse" in wanted and "digit_mse" not in known:
        taken["digit_mse"] = _digit_mse(record)
    if "kmeans" in wanted and "kmeans_accuracy" not in known:
        taken["kmeans_accuracy"] = _kmeans_accuracy(record)
    if taken != known:
        write_text(record.path / MEASURES, json.dumps(taken, indent=1) + "\n")
    return taken


def _digit_mse(record: Record) -> float:
    """Return the squared difference of true and predicted digit, averaged over the test set (000)."""
    outputs = RunFolder(record.path).outputs()
    return float((outputs["scores"].argmax(-1) - outputs["target"]).double().square().mean())


def _kmeans_accuracy(record: Record) -> float:
    """Return the accuracy of superclasses found by k-means on the softmax outputs (000); the run's tree groups the classes."""
    predictor = load_run(record.path).to(fastest_device())
    outputs = RunFolder(record.path).outputs()
    train = DataWorkspace(predictor.spec).dataset.train
    with torch.no_grad():
        scores = [predictor(inputs).float().cpu() for inputs in _inputs(train, predictor.mean.device)]
    members = catalogue.groups(str(record.config["taxonomy"]))
    group_of = {name: place for place, names in enumerate(members.values()) for name in names}
    found = metrics.superclass_accuracy_by_kmeans(
        torch.cat(scores).softmax(-1),
        outputs["scores"].float().softmax(-1),
        outputs["target"],
        [group_of[name] for name in predictor.classes],
    )
    return found.mean


def _inputs(split: Split, device: torch.device) -> Iterator[Tensor]:
    for batch in Batches(split, batch_size=min(EVALUATION_BATCH, len(split)), device=device).epoch(0):
        yield batch.inputs[batch.weight > 0]


BATCH, REPEATS = 128, 7


def time_hierarchical(published: Table) -> dict[str, dict[str, list[Run]]]:
    """Time loss and gradient of a batch of 128 on CIFAR-10's tree. Returns seven times for each row, after one to warm up."""
    tree = catalogue.taxonomy("cifar10")
    index = tree_index(tree)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BATCH, len(tree) - 1, generator=generator, requires_grad=True)
    nodes = torch.tensor(tree.leaves)[torch.randint(len(tree.classes), (BATCH,), generator=generator)]
    found = {
        "over samples": _timed(lambda: hierarchical_by_loop(logits, nodes, tree).sum()),
        "tensors": _timed(lambda: functional.hierarchical(logits, nodes, index).sum()),
    }
    column = next(iter(published.cells))
    return {
        column: {row: [Run(row, n, {"seconds": s}, ()) for n, s in enumerate(times)] for row, times in found.items()}
    }


def _timed(loss: Callable[[], Tensor]) -> list[float]:
    spent = []
    for _ in range(1 + REPEATS):
        begun = perf_counter()
        loss().backward()  # type: ignore[no-untyped-call]
        spent.append(perf_counter() - begun)
    return spent[1:]


def hierarchical_by_loop(logits: Tensor, nodes: Tensor, tree: Taxonomy) -> Tensor:
    """Compute 002 Eq. 2 one sample at a time. Returns (n,) losses."""
    return torch.stack([_one(row, int(node), tree) for row, node in zip(logits, nodes, strict=True)])


def _one(logits: Tensor, node: int, tree: Taxonomy) -> Tensor:
    probability: dict[int, Tensor] = {}
    for children in tree.children:
        for child in children.tolist():
            total = sum((logits[other - 1].exp() for other in children.tolist()), torch.zeros(()))
            probability[child] = logits[child - 1].exp() / total
    marked = [above for above in tree.ancestors(node).tolist() if above != 0]
    loss = torch.zeros(())
    for child, p in probability.items():
        count = sum(child in tree.ancestors(m).tolist() for m in marked)
        if count:
            loss = loss - count * p.log()
    for inner in range(1, len(tree)):
        if not tree.is_leaf[inner]:
            reach = torch.ones(())
            for above in tree.ancestors(inner).tolist():
                reach = reach * probability[above] if above != 0 else reach
            loss = loss + reach
    return loss
