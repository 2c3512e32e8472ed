"""The metrics that accumulate, as torchmetrics classes: update with batches, compute once, on one process or several.

Each gives what its function gives for all samples together, as a tensor in double precision. States are sums, so they add up
over batches and processes. `update` is arithmetic on the device of what it is given: it never waits for a GPU, and checks
values on the CPU only (shapes and types always). `labelkin.metrics` imports this file, and with it torchmetrics, when one
of its classes is first used.
"""

from typing import TYPE_CHECKING, Any
from zlib import crc32

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions, ranked, reads_values
from labelkin._checks import InputError, check_choice, check_count, renamed
from labelkin._extras import require
from labelkin.metrics import _basic as basic
from labelkin.metrics import _calibration as calibration
from labelkin.metrics import _hierarchical as hierarchical
from labelkin.metrics._hierarchical import Positions
from labelkin.metrics._result import warn_undefined
from labelkin.metrics._tree_tensors import TreeTensors, class_distances, tree_tensors
from labelkin.metrics._validation import Table, check_pair, check_probs, check_scores, check_taxonomy, table
from labelkin.metrics._weighted import scaled
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy

if TYPE_CHECKING:
    from torchmetrics import Metric
else:
    Metric = require("torchmetrics", extra="torchmetrics", use="the metric classes of labelkin.metrics").Metric

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
            warn_undefined(
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

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        """Check what is given, and return one value per sample on its device."""
        raise NotImplementedError

    def update(self, given: Tensor, target: Tensor) -> None:
        values = self._values(given, target, read_values=_reads_values(given))
        self.total += values.sum(dtype=torch.float64).to(self.total.device)
        self.count += values.numel()

    def compute(self) -> Tensor:
        return self._divided(self.total, self.count)


class Accuracy(_Mean):
    """`labelkin.metrics.accuracy` of predicted and true classes: 0 to 1, higher is better."""

    higher_is_better = True

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        basic.check_alike(given, target, read_values=read_values)
        check_class_positions("predicted", given, read_values=read_values)
        return given == target


class TopKAccuracy(_Mean):
    """`labelkin.metrics.top_k_accuracy` of scores and true classes: 0 to 1, higher is better."""

    higher_is_better = True

    def __init__(self, *, k: int, **settings: Any) -> None:
        super().__init__(**settings)
        check_count("k", k)
        self.k = k
        self._tell_apart(type(self).__name__, k)

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        basic.check_ranked(given, target, read_values=read_values)
        return basic.within_top_k(given, target, self.k)


class _OnTree(_Sums):
    """A metric that keeps the arrays of its taxonomy on its device."""

    def _keep_tree(self, taxonomy: Taxonomy) -> None:
        check_taxonomy(taxonomy)
        self.taxonomy = taxonomy
        for name, part in tree_tensors(taxonomy)._asdict().items():
            self.register_buffer(f"_tree_{name}", part, persistent=False)

    def _tree(self, device: torch.device) -> TreeTensors:
        return TreeTensors(*(getattr(self, f"_tree_{name}").to(device) for name in TreeTensors._fields))


class MistakeSeverity(_Mean, _OnTree):
    """`labelkin.metrics.mistake_severity` of predicted and true classes: lower is better, NaN without mistakes."""

    higher_is_better = False
    _what = "mistakes"

    def __init__(self, *, taxonomy: Taxonomy, distance: DistanceKind = "height", **settings: Any) -> None:
        super().__init__(**settings)
        check_choice("distance", distance, DISTANCES)
        self._keep_tree(taxonomy)
        self.distance = distance
        self._tell_apart(type(self).__name__, taxonomy, distance)

    def update(self, given: Tensor, target: Tensor) -> None:
        classes, read = len(self.taxonomy.leaves), _reads_values(given)
        basic.check_alike(given, target, classes, read_values=read)
        check_class_positions("predicted", given, classes, read_values=read)
        wrong = given != target  # the distance of a class to itself is 0
        distances = class_distances(self._tree(_device(given)), self.distance, target, given)
        self.total += distances.sum().to(self.total.device)
        self.count += wrong.sum().to(self.count.device)


class AverageDistance(_Mean, _OnTree):
    """`labelkin.metrics.average_distance` of scores and true classes: 0 and up, lower is better."""

    higher_is_better = False

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        k: int = 1,
        distance: DistanceKind = "height",
        kind: DistanceKind | None = None,
        **settings: Any,
    ) -> None:
        distance = renamed("distance", distance, "kind", kind)
        super().__init__(**settings)
        check_count("k", k)
        check_choice("distance", distance, DISTANCES)
        self._keep_tree(taxonomy)
        if k > len(taxonomy.leaves):
            raise InputError(f"k: expected at most the number of classes, {len(taxonomy.leaves)}, got {k}.")
        self.k, self.distance = k, distance
        self._tell_apart(type(self).__name__, taxonomy, k, distance)

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        check_scores("scores", given, target, len(self.taxonomy.leaves), read_values=read_values)
        tree = self._tree(_device(given))
        return class_distances(tree, self.distance, target.unsqueeze(-1), ranked(given, self.k)).mean(-1)


class BrierScore(_Mean):
    """`labelkin.metrics.brier_score` of probabilities and true classes: 0 to 2, lower is better."""

    higher_is_better = False

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        check_probs(given, target, read_values=read_values)
        return calibration.squared_distances(given, target)


class _Ancestors(_OnTree):
    """Sums of the ancestors that predicted and true classes have and share.

    `predicted_as` and `target_as` are those of `labelkin.metrics.hierarchical_precision`.
    """

    higher_is_better = True
    shared: Tensor
    predicted: Tensor
    true: Tensor

    def __init__(
        self,
        *,
        taxonomy: Taxonomy,
        predicted_as: Positions = "classes",
        target_as: Positions = "classes",
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        hierarchical.check_positions_as(predicted_as, target_as)
        self._keep_tree(taxonomy)
        self.predicted_as, self.target_as = predicted_as, target_as
        self._add_sums("shared", "predicted", "true")
        self._tell_apart(taxonomy, predicted_as, target_as)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        counts = hierarchical.ancestor_counts(
            predicted,
            target,
            self._tree(_device(predicted)),
            predicted_as=self.predicted_as,
            target_as=self.target_as,
            read_values=_reads_values(predicted),
        )
        self.shared += counts.shared.sum().to(self.shared.device)
        self.predicted += counts.predicted.sum().to(self.predicted.device)
        self.true += counts.true.sum().to(self.true.device)


class HierarchicalPrecision(_Ancestors):
    """`labelkin.metrics.hierarchical_precision` of predicted and true classes or nodes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.predicted)


class HierarchicalRecall(_Ancestors):
    """`labelkin.metrics.hierarchical_recall` of predicted and true classes or nodes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(self.shared, self.true)


class HierarchicalF1(_Ancestors):
    """`labelkin.metrics.hierarchical_f1` of predicted and true classes or nodes: 0 to 1, higher is better."""

    def compute(self) -> Tensor:
        return self._divided(2 * self.shared, self.predicted + self.true)


class WeightedAccuracy(_Sums):
    """`labelkin.metrics.weighted_accuracy`, overall, of predicted and true classes: 0 to 1, higher is better."""

    higher_is_better = True
    hits: Tensor
    misses: Tensor
    distances: Tensor

    def __init__(
        self, *, distances: Table, normalize: bool = False, normalise: bool | None = None, **settings: Any
    ) -> None:
        normalize = renamed("normalize", normalize, "normalise", normalise)
        super().__init__(**settings)
        size = len(table("distances", distances))
        self.register_buffer("distances", scaled(distances, size, normalize=normalize), persistent=False)
        self._add_sums("hits", "misses")
        self._tell_apart(self.distances)

    def update(self, predicted: Tensor, target: Tensor) -> None:
        check_pair(predicted, target, len(self.distances), read_values=_reads_values(predicted))
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
        sums = calibration.bin_sums(probs, target, self.bins, read_values=_reads_values(probs))
        self.samples += sums.samples
        self.confidence += sums.confidence
        self.hits += sums.hits

    def compute(self) -> Tensor:
        sums = calibration.BinSums(self.samples, self.confidence, self.hits)
        return self.samples.new_tensor(calibration.calibration_of(sums).mean)


def _device(given: object) -> torch.device:
    return given.device if isinstance(given, Tensor) else torch.device("cpu")


def _reads_values(given: object) -> bool:
    return isinstance(given, Tensor) and reads_values(given)


def _bytes_of(part: object) -> bytes:
    if isinstance(part, Taxonomy):
        return part.parents.tobytes() + part.leaves.tobytes()
    return part.cpu().numpy().tobytes() if isinstance(part, Tensor) else f"{part};".encode()
