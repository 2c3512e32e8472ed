"""Metrics implemented literally from their definitions, in plain Python loops.

`labelkin bench metrics` times this slow reference and checks against it; nothing else uses it. Each form returns one
value per sample (or class), and the mean last.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from labelkin.bench._peers import Predictions

Rows = list[list[float]]


class Plain(NamedTuple):
    """Predictions as lists."""

    scores: Rows
    probs: Rows
    predicted: list[int]
    target: list[int]
    parents: list[int]
    leaves: list[int]
    heights: list[int]
    distances: Rows
    groups: list[int]
    vectors: Rows
    curve: list[float]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of predicted and true class."""
        return list(zip(self.predicted, self.target, strict=True))


def plain(given: Predictions) -> Plain:
    """Convert predictions to lists."""
    tree = given.taxonomy
    parents, leaves = tree.parents.tolist(), tree.leaves.tolist()
    return Plain(
        scores=given.logits.tolist(),
        probs=given.probs.tolist(),
        predicted=given.predicted.tolist(),
        target=given.target.tolist(),
        parents=parents,
        leaves=leaves,
        heights=_heights(parents, leaves),
        distances=given.distances.tolist(),
        groups=given.groups.tolist(),
        vectors=given.vectors.tolist(),
        curve=given.curve,
    )


def _heights(parents: list[int], leaves: list[int]) -> list[int]:
    heights = [0] * len(parents)
    for leaf in leaves:
        node, steps = leaf, 0
        while node >= 0:
            heights[node] = max(heights[node], steps)
            node, steps = parents[node], steps + 1
    return heights


def accuracy(given: Plain) -> list[float]:
    """Return whether each prediction is right."""
    return with_mean([float(guess == true) for guess, true in given.pairs])


def balanced_accuracy(given: Plain) -> list[float]:
    """Return the share of each class's samples that are right."""
    found = []
    for k in sorted(set(given.target)):
        own = [guess == true for guess, true in given.pairs if true == k]
        found.append(sum(own) / len(own))
    return with_mean(found)


def macro_f1(given: Plain) -> list[float]:
    """Return the F1 score of each class that occurs."""
    found = []
    for k in sorted({*given.target, *given.predicted}):
        right = sum(guess == true == k for guess, true in given.pairs)
        both = sum((guess == k) + (true == k) for guess, true in given.pairs)
        found.append(2 * right / both)
    return with_mean(found)


def top_k(given: Plain, k: int) -> list[float]:
    """Return whether the true class is among the k best scores."""
    hits = []
    for row, true in zip(given.scores, given.target, strict=True):
        before = sum(1 for place, score in enumerate(row) if place != true and not score < row[true])
        hits.append(float(before < k))
    return with_mean(hits)


def severity(given: Plain) -> list[float]:
    """Return the height of the lowest common ancestor of each mistake."""
    return with_mean([_height(given, guess, true) for guess, true in given.pairs if guess != true])


def average_distance(given: Plain, k: int) -> list[float]:
    """Return the mean height of the lowest common ancestors of the true class and the k best classes."""
    values = []
    for row, true in zip(given.scores, given.target, strict=True):
        best = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:k]
        values.append(sum(_height(given, place, true) for place in best) / k)
    return with_mean(values)


def least_average_distance(given: Plain, k: int) -> list[float]:
    """Return the mean height of the lowest common ancestors of the true class and the k classes nearest to it."""
    classes = range(len(given.scores[0]))
    return with_mean([sum(sorted(_height(given, place, true) for place in classes)[:k]) / k for true in given.target])


def hops(given: Plain, k: int) -> list[float]:
    """Return HOPS@k."""
    values = []
    for row, true in zip(given.scores, given.target, strict=True):
        heights = [_height(given, place, true) for place in range(len(row))]
        different = sorted(set(heights))
        ranks = [different.index(height) for height in heights]
        expected = sorted(ranks)
        counts = [expected.count(rank) for rank in range(len(different))]
        found = worst = 0.0
        best = sorted(range(len(row)), key=row.__getitem__, reverse=True)[:k]
        for place, (rank, answer) in enumerate(zip(expected, best, strict=False)):
            start, end = 0.5**rank, 0.0 if rank == expected[-1] else 0.5 ** (rank + 1)
            weight = start + (end - start) * (place - sum(counts[:rank])) / counts[rank]
            found += weight * abs(rank - ranks[answer])
            worst += weight * abs(rank - expected[k - 1 - place])
        values.append(max(0.0, 1 - found / worst))
    return with_mean(values)


def ancestors_shared(given: Plain, part: Callable[[int, int], float]) -> list[float]:
    """Return hP, hR or hF; `part` computes the divisor from the sizes of the predicted and the true ancestor set."""
    values, above, below = [], 0, 0.0
    for guess, true in given.pairs:
        ours, theirs = (set(_way_up(given, place)) for place in (guess, true))
        shared, whole = len(ours & theirs), part(len(ours), len(theirs))
        values.append(shared / whole)
        above, below = above + shared, below + whole
    return [*values, above / below]


def confusion(given: Plain) -> list[float]:
    """Return the confusion matrix, row by row."""
    counts = [[0.0] * len(given.leaves) for _ in given.leaves]
    for guess, true in given.pairs:
        counts[true][guess] += 1
    return [count for row in counts for count in row]


def weighted_counts(given: Plain) -> list[float]:
    """Return hits and weighted errors of each class."""
    hits, negatives, positives = ([0.0] * len(given.leaves) for _ in range(3))
    for guess, true in given.pairs:
        hits[true] += guess == true
        negatives[true] += given.distances[true][guess]
        positives[guess] += given.distances[true][guess]
    return [*hits, *negatives, *positives]


def weighted(given: Plain, errors: Sequence[str]) -> list[float]:
    """Return `hits / (hits + weighted errors)` of each class, and the macro average."""
    hits, missed = [0.0] * len(given.leaves), [0.0] * len(given.leaves)
    for guess, true in given.pairs:
        hits[true] += guess == true
        for side in errors:
            missed[true if side == "true" else guess] += given.distances[true][guess] / len(errors)
    values = [h / (h + m) if h + m else math.nan for h, m in zip(hits, missed, strict=True)]
    defined = [value for value in values if value == value]
    return [*values, sum(defined) / len(defined)]


def weighted_accuracy(given: Plain) -> list[float]:
    """Return the weighted accuracy of each class, and over all."""
    hits = sum(guess == true for guess, true in given.pairs)
    return [*weighted(given, ["true"])[:-1], hits / (hits + sum(given.distances[t][g] for g, t in given.pairs))]


def expected_cost(given: Plain) -> list[float]:
    """Return the cost of each prediction."""
    return with_mean([given.distances[true][guess] for guess, true in given.pairs])


def ordinal_mse(given: Plain) -> list[float]:
    """Return the squared difference of class positions."""
    return with_mean([float((guess - true) ** 2) for guess, true in given.pairs])


def superclass(given: Plain) -> list[float]:
    """Return whether the most probable group is right."""
    hits = []
    for row, true in zip(given.probs, given.target, strict=True):
        sums: dict[int, float] = {}
        for prob, group in zip(row, given.groups, strict=True):
            sums[group] = sums.get(group, 0.0) + prob
        hits.append(float(max(sums, key=sums.__getitem__) == given.groups[true]))
    return with_mean(hits)


def calibration_error(given: Plain, bins: int = 15) -> list[float]:
    """Return the expected calibration error."""
    inside: dict[int, list[tuple[float, bool]]] = {}
    for row, true in zip(given.probs, given.target, strict=True):
        confidence = max(row)
        inside.setdefault(math.ceil(confidence * bins) - 1, []).append((confidence, row.index(confidence) == true))
    return [
        sum(abs(sum(c for c, _ in found) - sum(h for _, h in found)) for found in inside.values()) / len(given.probs)
    ]


def brier(given: Plain) -> list[float]:
    """Return the Brier score of each sample."""
    return with_mean(
        [
            sum((prob - (place == true)) ** 2 for place, prob in enumerate(row))
            for row, true in zip(given.probs, given.target, strict=True)
        ]
    )


def structure_correlation(given: Plain, classes: int) -> list[float]:
    """Return Kendall's tau-b of the first `classes` rows, computed over all pairs. No mean is appended."""
    return [_tau_b(given, row) for row in range(classes)]


def summary(given: Plain) -> list[float]:
    """Return the means of the metrics of a summary."""
    return [form(given)[-1] for form in (accuracy, lambda given: top_k(given, 5), severity)]


def auac(given: Plain) -> list[float]:
    """Return the area under the accuracy curve."""
    return [sum(given.curve) / len(given.curve)]


def epochs_saved(given: Plain) -> list[float]:
    """Return the share of epochs that are not needed to reach the best accuracy."""
    best = max(given.curve)
    return [1 - next(epoch for epoch, value in enumerate(given.curve, 1) if value >= best) / len(given.curve)]


def with_mean(values: list[float]) -> list[float]:
    """Append the mean."""
    return [*values, sum(values) / len(values) if values else math.nan]


def _way_up(given: Plain, place: int) -> list[int]:
    """Return the nodes from a class up to the one below the root."""
    node, found = given.leaves[place], []
    while node:
        found.append(node)
        node = given.parents[node]
    return found


def _height(given: Plain, left: int, right: int) -> float:
    above = set(_way_up(given, left))
    return float(given.heights[next((node for node in _way_up(given, right) if node in above), 0)])


def _tau_b(given: Plain, row: int) -> float:
    others = [place for place in range(len(given.vectors)) if place != row]
    ours = [math.dist(given.vectors[row], given.vectors[place]) for place in others]
    theirs = [given.distances[row][place] for place in others]
    agree = moving = moving_there = 0
    for i in range(len(others)):
        for j in range(i):
            here = (ours[i] > ours[j]) - (ours[i] < ours[j])
            there = (theirs[i] > theirs[j]) - (theirs[i] < theirs[j])
            agree, moving, moving_there = agree + here * there, moving + abs(here), moving_there + abs(there)
    return agree / math.sqrt(moving * moving_there)
