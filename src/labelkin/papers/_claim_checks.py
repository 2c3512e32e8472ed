"""Checks of claims that need the models, the outputs or the data of runs."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from labelkin import analysis, data, metrics, relations
from labelkin.data import Batches
from labelkin.papers._measured import Arms, Run
from labelkin.papers._published import published_table
from labelkin.papers._recipe import available_data
from labelkin.runs import DataWorkspace, Predictor, RunFolder, fastest_device, load_run

BATCH = 1024
SAMPLES = 5_000  # of the data for discriminant analysis; more do not change the result
Found = tuple[bool | None, str]
Columns = Mapping[str, Arms]


def embedding_of(run: Run) -> list[list[float]]:
    """Return the label vectors that a run learned, as plain numbers for the options of another run."""
    vectors: Tensor = load_run(run.record.path).model.objective.label_vectors()
    rows: list[list[float]] = vectors.detach().double().cpu().tolist()
    return rows


def _predictor(claim: Mapping[str, Any], runs: Columns, key: str = "of") -> Predictor:
    column, row = claim[key]
    return load_run(runs[column][row][0].record.path).to(fastest_device())


def nearest(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check the nearest labels of some classes in the run with the first seed."""
    predictor, pairs = _predictor(claim, runs), claim["pairs"]
    deep = max(len(expected) for expected in pairs.values())
    found = analysis.nearest(predictor.model.objective, predictor.classes, deep)
    parts, right = [], 0
    for name, expected in pairs.items():
        near = found.neighbours[found.names.index(name)][: len(expected)]
        right += list(near) == list(expected)
        parts.append(f"{name}: {', '.join(near)} (published: {', '.join(expected)})")
    return right == len(pairs), f"{right} of {len(pairs)} as published. {'; '.join(parts)}"


def halves(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that the first split of the average linkage of the label vectors gives the two halves."""
    predictor = _predictor(claim, runs)
    distances = analysis.label_distances(predictor.model.objective)
    tree = analysis.linkage_tree(distances, predictor.classes)
    tops = tree.level(1).tolist()
    sides = [
        {name for name, top in zip(tree.classes, tops, strict=True) if top == side} for side in dict.fromkeys(tops)
    ]
    return set(claim["half"]) in sides, "the first split: " + " | ".join(", ".join(sorted(side)) for side in sides)


def confusions(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check the most frequent confusions, and count those that the paper counts."""
    column, row = claim["of"]
    first = runs[column][row][0].record
    outputs, classes = RunFolder(first.path).outputs(), load_run(first.path).classes
    counts = metrics.confusion_matrix(outputs["scores"].argmax(-1), outputs["target"], len(classes))
    counts.fill_diagonal_(0)
    order = counts.flatten().argsort(descending=True, stable=True).tolist()
    ranked = [(*divmod(place, len(classes)), int(counts.flatten()[place])) for place in order]
    top = [f"{classes[true]} as {classes[predicted]}" for true, predicted, _ in ranked[:4]]
    published = published_table("002", claim["table"]).cells["CIFAR-10"]
    named = {f"{classes[true]} as {classes[predicted]}": count for true, predicted, count in ranked}
    counted = ", ".join(f"{name} {named[name]} times (published: {cell['count']})" for name, cell in published.items())
    siblings = ({"cat as dog", "dog as cat"}, {"automobile as truck", "truck as automobile"})
    return all(pair & set(top) for pair in siblings), f"{counted}; most frequent: {', '.join(top)}"


def class_accuracies(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Return the accuracies by class at the end of training; runs do not store them by epoch."""
    column, row = claim["of"]
    first = runs[column][row][0].record
    outputs, predictor = RunFolder(first.path).outputs(), load_run(first.path)
    counts = metrics.confusion_matrix(outputs["scores"].argmax(-1), outputs["target"], len(predictor.classes))
    weighted = metrics.weighted_accuracy(counts, predictor.taxonomy.distance("semantic"), normalize=True).values
    plain = counts.diagonal() / counts.sum(1)
    by_class = ", ".join(f"{n} {p:.2f}/{w:.2f}" for n, p, w in zip(predictor.classes, plain, weighted, strict=True))
    return None, f"runs do not keep these accuracies by epoch; plain/weighted accuracy at the end: {by_class}"


def approach(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that the class distances in the last hidden layer correlate more with those of the targets in one row."""
    values = {}
    for key in ("of", "than"):
        predictor = _predictor(claim, runs, key)
        targets = predictor.model.objective.label_vectors()
        dataset = DataWorkspace(predictor.spec).dataset
        batches = Batches(
            dataset.test,
            batch_size=min(BATCH, len(dataset.test)),
            normalize=dataset.normalize,
            device=predictor.mean.device,
        ).epoch(0)
        activity = analysis.class_activity(
            predictor.model, batches, layers=["backbone"], classes=len(predictor.classes), samples=len(dataset.test)
        )
        values[key] = float(analysis.approach(activity.distances, targets).pearson[0])
    correlations = ", ".join(f"{' '.join(claim[key])} {value:.3f}" for key, value in values.items())
    return values["of"] > values["than"], f"correlation with the distances of the targets: {correlations}"


def similar(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check the most similar class of some classes, by discriminant analysis of the data (004 Eq. 12)."""
    if claim["data"] not in available_data():
        return None, f"needs {claim['data']}, which is not available"
    matrix, classes = _lda(claim["data"])
    nearest_of = {name: classes[int(matrix[classes.index(name)].argmax())] for name in claim["pairs"]}
    pairs = ", ".join(f"{name}: {near}" for name, near in nearest_of.items())
    return nearest_of == dict(claim["pairs"]), f"most similar: {pairs}"


def similar_halves(claim: Mapping[str, Any], runs: Columns) -> Found:
    """Check that classes are on average more similar to those of their own half than to the others."""
    if claim["data"] not in available_data():
        return None, f"needs {claim['data']}, which is not available"
    matrix, classes = _lda(claim["data"])
    inside = torch.tensor([name in claim["half"] for name in classes])
    same = inside[:, None] == inside
    off = ~torch.eye(len(classes), dtype=torch.bool)
    within, across = float(matrix[same & off].mean()), float(matrix[~same].mean())
    return within > across, f"mean similarity within a half {within:.4f}, across {across:.4f}"


@cache
def _lda(name: str) -> tuple[Tensor, list[str]]:
    dataset = data.load(name, download=False)
    assert isinstance(dataset.train, data.ArraySplit)
    step = max(1, len(dataset.train) // SAMPLES)
    inputs = dataset.train.inputs[::step].float() / 255
    return relations.lda(inputs, dataset.train.targets[::step], classes=dataset.classes), list(dataset.classes)
