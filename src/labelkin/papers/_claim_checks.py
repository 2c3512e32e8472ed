"""Checks that look inside a run, at its label vectors, outputs and layers, or at the data."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from labelkin import analysis, data, metrics, relations
from labelkin.data import Batches
from labelkin.papers._measured import Arms, Run
from labelkin.papers._published import table
from labelkin.papers._recipe import at_hand
from labelkin.runs import DataWorkspace, Predictor, RunFolder, fastest_device, load_run

BATCH = 1024
SAMPLES = 5_000  # discriminant axes settle long before a data set ends
Found = tuple[bool | None, str]
Columns = Mapping[str, Arms]


def embedding_of(run: Run) -> list[list[float]]:
    """The label vectors that a run learned, as plain numbers for the options of another."""
    vectors: Tensor = load_run(run.record.path).model.objective.label_vectors()
    rows: list[list[float]] = vectors.detach().double().cpu().tolist()
    return rows


def _predictor(claim: Mapping[str, Any], runs: Columns, key: str = "of") -> Predictor:
    column, row = claim[key]
    return load_run(runs[column][row][0].record.path).to(fastest_device())


def nearest(claim: Mapping[str, Any], runs: Columns) -> Found:
    """The nearest labels of some classes, of the first seed."""
    predictor, pairs = _predictor(claim, runs), claim["pairs"]
    deep = max(len(expected) for expected in pairs.values())
    found = analysis.nearest(predictor.model.objective, predictor.classes, deep)
    told, right = [], 0
    for name, expected in pairs.items():
        near = found.neighbours[found.names.index(name)][: len(expected)]
        right += list(near) == list(expected)
        told.append(f"{name}: {', '.join(near)} (printed {', '.join(expected)})")
    return right == len(pairs), f"{right} of {len(pairs)} as printed. {'; '.join(told)}"


def halves(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Whether average linkage of the label vectors splits the classes into the two halves first."""
    predictor = _predictor(claim, runs)
    distances = analysis.label_distances(predictor.model.objective)
    tree = analysis.linkage_tree(distances, predictor.classes)
    tops = tree.level(1).tolist()
    sides = [
        {name for name, top in zip(tree.classes, tops, strict=True) if top == side} for side in dict.fromkeys(tops)
    ]
    return set(claim["half"]) in sides, "the first split: " + " | ".join(", ".join(sorted(side)) for side in sides)


def confusions(claim: Mapping[str, Any], runs: Columns) -> Found:
    """The most frequent confusions, beside those that the paper counts."""
    column, row = claim["of"]
    first = runs[column][row][0].record
    outputs, classes = RunFolder(first.path).outputs(), load_run(first.path).classes
    counts = metrics.confusion_matrix(outputs["scores"].argmax(-1), outputs["target"], len(classes))
    counts.fill_diagonal_(0)
    order = counts.flatten().argsort(descending=True, stable=True).tolist()
    ranked = [(*divmod(place, len(classes)), int(counts.flatten()[place])) for place in order]
    top = [f"{classes[true]} as {classes[said]}" for true, said, _ in ranked[:4]]
    printed = table("002", claim["table"]).cells["CIFAR-10"]
    named = {f"{classes[true]} as {classes[said]}": count for true, said, count in ranked}
    told = ", ".join(f"{name} {named[name]} times (printed {cell['count']})" for name, cell in printed.items())
    siblings = ({"cat as dog", "dog as cat"}, {"automobile as truck", "truck as automobile"})
    return all(pair & set(top) for pair in siblings), f"{told}; most frequent: {', '.join(top)}"


def class_accuracies(claim: Mapping[str, Any], runs: Columns) -> Found:
    """By class at the end of training: runs keep no class accuracies by epoch."""
    column, row = claim["of"]
    first = runs[column][row][0].record
    outputs, predictor = RunFolder(first.path).outputs(), load_run(first.path)
    counts = metrics.confusion_matrix(outputs["scores"].argmax(-1), outputs["target"], len(predictor.classes))
    weighted = metrics.weighted_accuracy(counts, predictor.taxonomy.distance("semantic"), normalize=True).values
    plain = counts.diagonal() / counts.sum(1)
    told = ", ".join(f"{n} {p:.2f}/{w:.2f}" for n, p, w in zip(predictor.classes, plain, weighted, strict=True))
    return None, f"a curve by epoch is not kept; at the end, plain/weighted accuracy: {told}"


def approach(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Correlation of the last hidden layer's NAA distances with those of the targets, of one row against another."""
    values = {}
    for key in ("of", "than"):
        predictor = _predictor(claim, runs, key)
        targets = predictor.model.objective.label_vectors()
        found = DataWorkspace(predictor.spec).dataset
        batches = Batches(
            found.test,
            batch_size=min(BATCH, len(found.test)),
            normalize=found.normalize,
            device=predictor.mean.device,
        ).epoch(0)
        activity = analysis.class_activity(
            predictor.model, batches, layers=["backbone"], classes=len(predictor.classes), samples=len(found.test)
        )
        values[key] = float(analysis.approach(activity.distances, targets).pearson[0])
    told = ", ".join(f"{' '.join(claim[key])} {value:.3f}" for key, value in values.items())
    return values["of"] > values["than"], f"correlation with the targets' distances: {told}"


def similar(claim: Mapping[str, Any], runs: Columns) -> Found:
    """The most similar class of some classes, by discriminant analysis of the data (004 Eq. 12)."""
    if claim["data"] not in at_hand():
        return None, f"needs {claim['data']}, which is not at hand"
    matrix, classes = _lda(claim["data"])
    nearest_of = {name: classes[int(matrix[classes.index(name)].argmax())] for name in claim["pairs"]}
    told = ", ".join(f"{name}: {near}" for name, near in nearest_of.items())
    return nearest_of == dict(claim["pairs"]), f"most similar: {told}"


def similar_halves(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Whether classes are on average more similar to their own half than to the other."""
    if claim["data"] not in at_hand():
        return None, f"needs {claim['data']}, which is not at hand"
    matrix, classes = _lda(claim["data"])
    inside = torch.tensor([name in claim["half"] for name in classes])
    same = inside[:, None] == inside
    off = ~torch.eye(len(classes), dtype=torch.bool)
    within, across = float(matrix[same & off].mean()), float(matrix[~same].mean())
    return within > across, f"mean similarity within a half {within:.4f}, across {across:.4f}"


@cache
def _lda(name: str) -> tuple[Tensor, list[str]]:
    found = data.load(name, download=False)
    assert isinstance(found.train, data.ArraySplit)
    step = max(1, len(found.train) // SAMPLES)
    inputs = found.train.inputs[::step].float() / 255
    return relations.lda(inputs, found.train.targets[::step], classes=found.classes), list(found.classes)
