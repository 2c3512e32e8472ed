"""The metrics that accumulate, as torchmetrics classes: update with batches, compute once, on one process or several.

Each gives what its function gives for all samples together, as a tensor in double precision. States are sums, which is
what makes them add up over batches and processes. Import this file itself: it needs torchmetrics, the package does not.
"""

import warnings
from typing import TYPE_CHECKING, Any
from zlib import crc32

import torch
from torch import Tensor

from labelkin._checks import check_choice, check_count
from labelkin._extras import require
from labelkin.metrics import basic, calibration, hierarchical
from labelkin.metrics.inputs import Table, check_pair, table
from labelkin.metrics.weighted import scaled
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

if TYPE_CHECKING:
    from torchmetrics import Metric
else:
    Metric = require("torchmetrics", extra="torchmetrics", use="labelkin.metrics.modules").Metric

__all__ = [
    "Accuracy",
    "AverageDistance",
    "BrierScore",
    "CalibrationError",
    "HierarchicalF1",
    "HierarchicalPrecision",
    "HierarchicalRecall",
    "MistakeSeverity",
    "TopKAccuracy",
    "WeightedAccuracy",
]


class _Sums(Metric):
    """A metric whose states are sums in double precision."""

    is_differentiable = False
    full_state_update = False
    _what = "samples"

    def _add_sums(self, *names: str, size: tuple[int, ...] = ()) -> None:
        for name in names:
            self.add_state(name, torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")

    def _tell_apart(self, *by: object) -> None:
        """Keep a collection from taking one metric's sums for another's.

        A `MetricCollection` updates only one of those whose states are equal after the first batch, and states of different
        trees or k may be equal then.
        """
        told = crc32(b"".join(_bytes_of(part) for part in by)).to_bytes(4, "big")
        self.add_state("_configuration", torch.tensor(list(told), dtype=torch.float64), dist_reduce_fx="max")

    def _divided(self, part: Tensor, whole: Tensor) -> Tensor:
        if not whole:
            basic.warn_undefined(
                f"{type(self).__name__}: there were no {self._what}, so it is undefined (NaN).", stacklevel=4
            )
        return part / whole


class _Mean(_Sums):
    """The mean of one value a sample."""

    total: Tensor
    count: Tensor

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._add_sums("total", "count")
        self._tell_apart(type(self).__name__)

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        raise NotImplementedError

    def update(self, given: Tensor, target: Tensor) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", basic.UndefinedMetric)  # a batch without mistakes is no news
            values = self._measure(given, target).values
        self.total += values.sum(dtype=torch.float64).to(self.total.device)
        self.count += values.numel()

    def compute(self) -> Tensor:
        return self._divided(self.total, self.count)


class Accuracy(_Mean):
    """`labelkin.metrics.accuracy` of predicted and true classes: 0 to 1, higher is better."""

    higher_is_better = True

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        return basic.accuracy(given, target)


class TopKAccuracy(_Mean):
    """`labelkin.metrics.top_k_accuracy` of scores and true classes: 0 to 1, higher is better."""

    higher_is_better = True

    def __init__(self, *, k: int, **settings: Any) -> None:
        super().__init__(**settings)
        check_count("k", k)
        self.k = k
        self._tell_apart(type(self).__name__, k)

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        return basic.top_k_accuracy(given, target, k=self.k)


class MistakeSeverity(_Mean):
    """`labelkin.metrics.mistake_severity` of predicted and true classes: lower is better, NaN without mistakes."""

    higher_is_better = False
    _what = "mistakes"

    def __init__(self, *, taxonomy: Taxonomy, **settings: Any) -> None:
        super().__init__(**settings)
        self.taxonomy = taxonomy
        self._tell_apart(type(self).__name__, taxonomy)

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        return basic.mistake_severity(given, target, self.taxonomy)


class AverageDistance(_Mean):
    """`labelkin.metrics.average_distance` of scores and true classes: 0 and up, lower is better."""

    higher_is_better = False

    def __init__(self, *, taxonomy: Taxonomy, k: int = 1, kind: DistanceKind = "height", **settings: Any) -> None:
        super().__init__(**settings)
        check_count("k", k)
        check_choice("kind", kind, DISTANCES)
        self.taxonomy, self.k, self.kind = taxonomy, k, kind
        self._tell_apart(type(self).__name__, taxonomy, k, kind)

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        return hierarchical.average_distance(given, target, self.taxonomy, k=self.k, kind=self.kind)


class BrierScore(_Mean):
    """`labelkin.metrics.brier_score` of probabilities and true classes: 0 to 2, lower is better."""

    higher_is_better = False

    def _measure(self, given: Tensor, target: Tensor) -> basic.Metric:
        return calibration.brier_score(given, target)


class _Ancestors(_Sums):
    """Sums of the ancestors that predicted and true classes have and share."""

    higher_is_better = True
    shared: Tensor
    predicted: Tensor
    true: Tensor

    def __init__(self, *, taxonomy: Taxonomy, **settings: Any) -> None:
        super().__init__(**settings)
        self.taxonomy = taxonomy
        self._add_sums("shared", "predicted", "true")
        self._tell_apart(taxonomy)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        counts = hierarchical.ancestor_counts(predicted, target, self.taxonomy)
        self.shared += counts.shared.sum().to(self.shared.device)
        self.predicted += counts.predicted.sum().to(self.predicted.device)
        self.true += counts.true.sum().to(self.true.device)


class HierarchicalPrecision(_Ancestors):
    """`labelkin.metrics.hierarchical_precision` of predicted and true classes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.predicted)


class HierarchicalRecall(_Ancestors):
    """`labelkin.metrics.hierarchical_recall` of predicted and true classes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.true)


class HierarchicalF1(_Ancestors):
    """`labelkin.metrics.hierarchical_f1` of predicted and true classes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(2 * self.shared, self.predicted + self.true)


class WeightedAccuracy(_Sums):
    """`labelkin.metrics.weighted_accuracy`, overall, of predicted and true classes: 0 to 1, higher is better."""

    higher_is_better = True
    hits: Tensor
    misses: Tensor
    distances: Tensor

    def __init__(self, *, distances: Table, normalise: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        size = len(table("distances", distances))
        self.register_buffer("distances", scaled(distances, size, normalise=normalise), persistent=False)
        self._add_sums("hits", "misses")
        self._tell_apart(self.distances)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        check_pair(predicted, target, len(self.distances))
        self.hits += (predicted == target).sum()
        self.misses += self.distances[target.long(), predicted.long()].sum()

    def compute(self) -> Tensor:
        return self._divided(self.hits, self.hits + self.misses)


class CalibrationError(_Sums):
    """`labelkin.metrics.expected_calibration_error` of probabilities and true classes: 0 to 1, lower is better."""

    higher_is_better = False
    samples: Tensor
    confidence: Tensor
    hits: Tensor

    def __init__(self, *, bins: int = 15, **settings: Any) -> None:
        super().__init__(**settings)
        check_count("bins", bins)
        self.bins = bins
        self._add_sums(*calibration.BinSums._fields, size=(bins,))

    def update(self, probs: Tensor, target: Tensor) -> None:
        sums = calibration.bin_sums(probs, target, self.bins)
        self.samples += sums.samples
        self.confidence += sums.confidence
        self.hits += sums.hits

    def compute(self) -> Tensor:
        sums = calibration.BinSums(self.samples, self.confidence, self.hits)
        return self.samples.new_tensor(calibration.calibration_of(sums).error)


def _bytes_of(part: object) -> bytes:
    if isinstance(part, Taxonomy):
        return part.parents.tobytes() + part.leaves.tobytes()
    return part.cpu().numpy().tobytes() if isinstance(part, Tensor) else f"{part};".encode()
