"""Time of the analysis of confusions and label vectors, compared with scipy, scikit-learn and pytorch-metric-learning."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin import analysis
from labelkin._checks import check_count
from labelkin._extras import require
from labelkin.bench._growth import Compared, Comparison, Growth, measured
from labelkin.bench._measure import machine, one_thread
from labelkin.structure import Taxonomy

Call = Callable[[], object]
PEERS = {"scipy": "scipy", "sklearn": "scikit-learn", "pytorch_metric_learning": "pytorch-metric-learning"}
USE = "labelkin bench analysis"
TOLERANCE = 1e-4


class Inputs(NamedTuple):
    """Random predictions of two runs, and label vectors."""

    target: Tensor
    predicted: Tensor
    other: Tensor
    vectors: Tensor
    distances: Tensor
    taxonomy: Taxonomy


def time_analysis(*, samples: int = 10_000, classes: int = 200, features: int = 128, repeats: int = 5) -> Comparison:
    """Time the functions of `labelkin.analysis` on one thread, with random predictions and label vectors.

    Results that a peer also computes are compared with labelkin's in the same run.

    Args:
        samples: number of predictions.
        classes: number of classes.
        features: width of the label vectors.
        repeats: number of calls; the median is reported.

    Returns:
        A row for each function, and growth over samples and classes.

    Example:
        >>> from labelkin.bench import time_analysis
        >>> found = time_analysis(samples=40, classes=8, features=3, repeats=1)
        >>> "confusion_matrix" in [row.case for row in found.rows]
        True
    """
    for name, value in (("samples", samples), ("classes", classes), ("features", features)):
        check_count(name, value, least=1 if name == "features" else 8)
    check_count("repeats", repeats)
    sizes = {"samples": samples, "classes": classes, "features": features}
    with one_thread():
        given = _inputs(**sizes)
        peers = _peers(given)
        rows = []
        for case, call in _ours(given).items():
            found = {name: measured(theirs, repeats, cuda=False) for name, theirs in peers.get(case, {}).items()}
            error = _difference(case, call, peers.get(case, {}))
            rows.append(Compared(case, sizes, measured(call, repeats, cuda=False), found, error))
        growth = [
            _growth("confusion_matrix", "samples", sizes, repeats),
            _growth("label_distances", "classes", sizes, repeats),
            _growth("linkage_table", "classes", sizes, repeats),
        ]
    notes = [f"{name} is not installed" for module, name in PEERS.items() if find_spec(module) is None]
    return Comparison("analysis", machine(), rows, growth, notes)


def _inputs(samples: int, classes: int, features: int) -> Inputs:
    draw = torch.Generator().manual_seed(0)
    target = torch.randint(classes, (samples,), generator=draw)

    def predicted() -> Tensor:
        wrong = torch.rand(samples, generator=draw) < 0.3
        return torch.where(wrong, torch.randint(classes, (samples,), generator=draw), target)

    vectors = torch.randn(classes, features, generator=draw, dtype=torch.float64)
    taxonomy = Taxonomy.from_paths([(f"group{k % 7}", f"class{k}") for k in range(classes)])
    return Inputs(target, predicted(), predicted(), vectors, analysis.label_distances(vectors), taxonomy)


def _ours(given: Inputs) -> dict[str, Call]:
    names = [f"class{k}" for k in range(len(given.vectors))]
    found: dict[str, Call] = {
        "confusion_matrix": lambda: (
            analysis.confusion_matrix(given.predicted, given.target, taxonomy=given.taxonomy).counts
        ),
        "costliest": lambda: analysis.costliest(given.predicted, given.target, names=names, distances=given.distances),
        "disagreement": lambda: analysis.disagreement(given.predicted, given.other, given.target, classes=len(names)),
        "label_distances": lambda: analysis.label_distances(given.vectors),
        "nearest, k 5": lambda: analysis.nearest(given.vectors, names, 5, rule="cosine"),
        "mds": lambda: analysis.mds(given.distances),
        "procrustes": lambda: analysis.procrustes(given.vectors, given.vectors.flip(0)).disparity,
    }
    if find_spec("scipy") is not None:
        found["linkage_table"] = lambda: analysis.linkage_table(given.distances)
    return found


def _peers(given: Inputs) -> dict[str, dict[str, Call]]:
    """Return {function: {package: call}} of the installed packages, with inputs converted beforehand."""
    vectors, distances = given.vectors.numpy(), given.distances.numpy()
    order = torch.from_numpy(np.argsort(given.taxonomy.preorder[given.taxonomy.leaves])).numpy()
    found: dict[str, dict[str, Call]] = {}
    if find_spec("scipy") is not None:
        cluster = require("scipy.cluster.hierarchy", extra="dev", use=USE)
        spatial = require("scipy.spatial", extra="dev", use=USE)
        pairs = distances[np.triu_indices(len(distances), 1)]
        found["linkage_table"] = {
            "scipy": lambda: cluster.linkage(pairs, "average", optimal_ordering=True),
        }
        found["label_distances"] = {"scipy": lambda: spatial.distance_matrix(vectors, vectors)}
        found["procrustes"] = {"scipy": lambda: spatial.procrustes(vectors, vectors[::-1])[2]}
    if find_spec("sklearn") is not None:
        sklearn = require("sklearn.metrics", extra="dev", use=USE)
        true, guess = given.target.numpy(), given.predicted.numpy()
        found.setdefault("label_distances", {})["scikit-learn"] = lambda: sklearn.pairwise_distances(vectors)
        found["confusion_matrix"] = {"scikit-learn": lambda: sklearn.confusion_matrix(true, guess, labels=order)}
    if find_spec("pytorch_metric_learning") is not None:
        metric = require("pytorch_metric_learning.distances", extra="dev", use=USE)
        pairwise = metric.LpDistance(normalize_embeddings=False)
        theirs = found.setdefault("label_distances", {})
        theirs["pytorch-metric-learning"] = lambda: pairwise(given.vectors, given.vectors)
    return found


def _difference(case: str, ours: Call, peers: Mapping[str, Call]) -> float | None:
    """Return the largest relative difference from a peer's result; raise if the computations are not the same."""
    if not peers:
        return None
    expected = torch.as_tensor(np.asarray(ours(), dtype=np.float64))
    scale = float(expected.abs().max()) or 1.0
    largest = 0.0
    for name, call in peers.items():
        other = torch.as_tensor(np.asarray(call(), dtype=np.float64))
        difference = float((other - expected).abs().max()) / scale
        if not difference < TOLERANCE:
            raise ArithmeticError(f"{case} differs from {name} by {difference:.1e}")
        largest = max(largest, difference)
    return largest


def _growth(case: str, over: str, sizes: Mapping[str, int], repeats: int) -> Growth:
    steps = [sizes[over] // 4, sizes[over] // 2, sizes[over]]
    seconds = []
    for step in steps:
        call = _ours(_inputs(**{**sizes, over: step}))[case]
        seconds.append(measured(call, repeats, cuda=False).timing.median)
    return Growth(case, over, steps, seconds)
