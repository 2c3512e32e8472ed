"""Time of NAA compared with a literal implementation of its equations."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from labelkin._checks import check_count
from labelkin.analysis import class_activity
from labelkin.bench._measure import fresh_pass, machine, one_thread, timed
from labelkin.bench._result import Benchmark, Row, slow
from labelkin.functional import class_correlations, naa_distance, naa_similarity

Matrix = npt.NDArray[np.float64]


def time_naa(
    *, samples: int = 10_000, classes: int = 100, features: int = 512, repeats: int = 3, threads: int = 2
) -> Benchmark:
    """Time NAA on rectified random activations: CPU time on one thread, and one pass of `naa_distance` on `threads`.

    If a literal form would take more than five seconds, it runs on the first classes only and is extrapolated.

    Args:
        samples: Number of samples.
        classes: Number of classes.
        features: Width of the activations.
        repeats: Number of calls; the median is reported.
        threads: Threads of the pass in a new process.

    Returns:
        One row per step of the computation.

    Example:
        >>> from labelkin.bench import time_naa
        >>> time_naa(samples=20, classes=2, features=3, repeats=1, threads=1).sizes
        {'samples': 20, 'classes': 2, 'features': 3}
    """
    for argument, value in (("classes", classes), ("features", features), ("repeats", repeats)):
        check_count(argument, value, least=2 if argument == "classes" else 1)
    check_count("samples", samples, least=classes)
    activations, targets = _made(samples, classes, features)
    with one_thread():
        correlations = class_correlations(activations, targets, classes)
        similarity = naa_similarity(correlations)
        literal = literal_correlations(activations, targets, classes)
        rows = [
            Row(
                "correlations (000 Eq. 5)",
                timed(lambda: class_correlations(activations, targets, classes), repeats),
                slow(
                    lambda count: np.stack(literal_correlations(activations, targets, count)).ravel().tolist(),
                    lambda count: correlations[:count].flatten().tolist(),
                    units=classes,
                    repeats=repeats,
                ),
                {},
            ),
            Row(
                "similarities (000 Eq. 6)",
                timed(lambda: naa_similarity(correlations), repeats),
                slow(
                    lambda count: literal_similarity(literal[:count]),
                    lambda count: similarity[:count, :count].flatten().tolist(),
                    units=classes,
                    repeats=repeats,
                    work=lambda count: count * (count + 1),
                ),
                {},
            ),
            *(
                Row(name, timed(call, repeats), None, {})
                for name, call in _whole(activations, targets, classes).items()
            ),
        ]
        on = machine()
    sizes = {"samples": samples, "classes": classes, "features": features}
    return Benchmark("naa", sizes, on, rows, fresh_pass("naa", sizes, threads))


def every_call(samples: int, classes: int, features: int) -> Iterator[Callable[[], object]]:
    """Generate activations and return the calls of a pass in a new process."""
    activations, targets = _made(samples, classes, features)
    return iter([partial(naa_distance, activations, targets, classes)])


def literal_correlations(activations: Tensor, targets: Tensor, classes: int) -> list[Matrix]:
    """Compute `R = Z Z^T / m` as the slow reference: one outer product per sample."""
    rows = activations.double().numpy()
    found = []
    for k in range(classes):
        own = [row for row, target in zip(rows, targets.tolist(), strict=True) if target == k]
        found.append(sum((np.outer(row, row) for row in own), start=np.zeros((len(own[0]),) * 2)) / len(own))
    return found


def literal_similarity(correlations: Sequence[Matrix]) -> list[float]:
    """Compute similarities as the slow reference: a trace of a product of matrices for every pair of classes."""

    def trace(left: Matrix, right: Matrix) -> float:
        return float(np.trace(left @ right))

    own = [trace(a, a) for a in correlations]
    return [
        trace(a, b) / math.sqrt(own[i] * own[j]) for i, a in enumerate(correlations) for j, b in enumerate(correlations)
    ]


def _whole(activations: Tensor, targets: Tensor, classes: int) -> dict[str, Callable[[], object]]:
    net = nn.Sequential(nn.Identity())
    batches = list(zip(torch.split(activations, 100), torch.split(targets, 100), strict=True))
    return {
        "distances, form auto": lambda: naa_distance(activations, targets, classes),
        "distances, form correlation": lambda: naa_distance(activations, targets, classes, "correlation"),
        "distances, form gram": lambda: naa_distance(activations, targets, classes, "gram"),
        "class_activity, batches of 100": lambda: class_activity(net, batches, layers=["0"], classes=classes),
    }


def _made(samples: int, classes: int, features: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    targets = torch.arange(samples) % classes
    means = torch.randn(classes, features, generator=draw)
    return (means[targets] + torch.randn(samples, features, generator=draw)).relu(), targets
