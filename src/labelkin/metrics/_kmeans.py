"""k-means by Lloyd's algorithm, the best of several starts; an iteration recomputes only what changed."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

ITERATIONS = 300
TOLERANCE = 1e-4  # centers have settled if their summed squared moves are below this share of the mean variance


class Clusters(NamedTuple):
    """Centers of clusters, for rows that are centered at `origin` and divided by `scale`."""

    centers: Tensor  # (k, F) float32
    inertia: float  # sum of the squared distances of the rows to their centers
    origin: Tensor  # (F,)
    scale: Tensor

    def place(self, rows: Tensor) -> Tensor:
        """Return the cluster (m,) whose center is nearest to each row."""
        return _scores(_brought(rows, self.origin, self.scale), self.centers).argmin(0)


class _Runs(NamedTuple):
    """Several starts side by side. A score is a squared distance without the square of the row, which affects no choice."""

    rows: Tensor  # (n, F)
    squares: Tensor  # (n,)
    centers: Tensor  # (starts, k, F)
    scores: Tensor  # (starts, k, n)


def fit(rows: Tensor, clusters: int, *, starts: int = 10, seed: int = 0) -> Clusters:
    """Return the best of `starts` runs, each initialized by greedy k-means++ (Arthur and Vassilvitskii, 2007).

    A run ends as in scikit-learn, when no row changes its cluster or the centers have settled. Rows are centered, scaled and
    computed in float32.
    """
    origin = rows.mean(0, dtype=torch.float64)
    scale = torch.maximum(rows.amax(0) - origin, origin - rows.amin(0)).amax()
    scale = torch.where(scale > 0, scale, 1.0)
    brought = _brought(rows, origin, scale)
    draw = torch.Generator().manual_seed(seed)
    at_once = max(1, rows.shape[1] // clusters)  # their scores take no more memory than the rows
    best = math.inf
    for first in range(0, starts, at_once):
        runs = _seeded(brought, clusters, min(at_once, starts - first), draw)
        _iterate(runs)
        inertia = (runs.scores.amin(1).double() + runs.squares).sum(1)
        if inertia.min() < best:
            best, centers = float(inertia.min()), runs.centers[inertia.argmin()].clone()
    # A score plus the square of its row loses the small distances of tight clusters to rounding; the difference does not.
    away = brought - centers[_scores(brought, centers).argmin(0)]
    return Clusters(centers, float(away.double().square().sum()) * float(scale) ** 2, origin, scale)


def _brought(rows: Tensor, origin: Tensor, scale: Tensor) -> Tensor:
    return ((rows - origin) / scale).float()


def _scores(rows: Tensor, centers: Tensor) -> Tensor:
    """Return (k, n) scores."""
    return torch.addmm(centers.square().sum(1, keepdim=True), centers, rows.T, alpha=-2)


def _seeded(rows: Tensor, clusters: int, starts: int, draw: torch.Generator) -> _Runs:
    """Choose initial centers for all starts.

    Each next center is the best of a few rows that are drawn in proportion to their squared distance from the centers so far:
    the one that reduces the sum of these distances most. The scores are reused in the first iteration.
    """
    every = torch.arange(starts, device=rows.device)
    squares = rows.square().sum(1)
    scores = rows.new_empty(starts, clusters, len(rows))
    chosen = torch.empty(starts, clusters, dtype=torch.int64, device=rows.device)
    nearest = rows.new_full((starts, len(rows)), math.inf)
    for place in range(clusters):
        tried = _drawn(nearest, 2 + int(math.log(clusters)), draw) if place else _any(nearest, draw)
        found = _scores(rows, rows[tried.flatten()]).view(*tried.shape, len(rows))
        nearer = torch.minimum((found + squares).clamp_(min=0), nearest[:, None])
        best = nearer.sum(-1).argmin(-1)
        chosen[:, place], scores[:, place], nearest = tried[every, best], found[every, best], nearer[every, best]
    return _Runs(rows, squares, rows[chosen], scores)


def _any(weights: Tensor, draw: torch.Generator) -> Tensor:
    return torch.randint(weights.shape[1], (len(weights), 1), generator=draw).to(weights.device)


def _drawn(weights: Tensor, count: int, draw: torch.Generator) -> Tensor:
    """Return (starts, count) positions drawn in proportion to the weights; the first position if all weights are 0."""
    upto = weights.double().cumsum(1)
    at = torch.rand(len(weights), count, generator=draw, dtype=torch.float64).to(weights.device) * upto[:, -1:]
    return torch.searchsorted(upto, at).clamp_(max=weights.shape[1] - 1)


def _iterate(runs: _Runs) -> None:
    """Run Lloyd's iterations of all starts in place, updating only the sums and scores that changed."""
    starts, clusters, _ = runs.centers.shape
    settled = TOLERANCE * float(runs.rows.var(0, correction=0).mean())
    sums = torch.zeros_like(runs.centers)
    counts = runs.rows.new_zeros(starts, clusters)
    labels = [_labels(runs, start) for start in range(starts)]
    for start, own in enumerate(labels):
        sums[start].index_add_(0, own, runs.rows)
    touched = torch.ones(starts, clusters, dtype=torch.bool, device=runs.rows.device)
    running = list(range(starts))
    for _ in range(ITERATIONS):
        for start in running:
            counts[start] = labels[start].bincount(minlength=clusters)
        means = sums[touched] / counts[touched].unsqueeze(-1)
        shift = torch.zeros_like(counts).masked_scatter_(touched, (means - runs.centers[touched]).square().sum(-1))
        runs.centers[touched] = means
        runs.scores[touched] = _scores(runs.rows, means)
        touched.zero_()
        for start in [start for start in running if shift[start].sum() > settled]:
            new, old = _labels(runs, start), labels[start]
            moved = (new != old).nonzero().flatten()
            of_moved = runs.rows[moved]
            sums[start].index_add_(0, new[moved], of_moved).index_add_(0, old[moved], of_moved, alpha=-1)
            touched[start, new[moved]] = touched[start, old[moved]] = True
            labels[start] = new
        running = touched.any(1).nonzero().flatten().tolist()
        if not running:
            return


def _labels(runs: _Runs, start: int) -> Tensor:
    """Return the nearest center (n,) of each row; an empty cluster takes a row that is far from its center."""
    best, labels = runs.scores[start].min(0)
    empty = (labels.bincount(minlength=runs.scores.shape[1]) == 0).nonzero().flatten()
    if len(empty):
        labels[(best + runs.squares).topk(len(empty)).indices] = empty
    return labels
