"""Metrics that accumulate over batches and processes, as torchmetrics classes.

Each computes the mean that its function computes over all samples, as a tensor in double precision. States are sums, so
they add up over batches and processes. `update` computes on the device of its arguments: it never waits for a GPU, and
checks values on the CPU only (shapes and dtypes always). `labelkin.metrics` imports this file, and with it torchmetrics, when
one of its classes is first used.
"""

from typing import Any

from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import check_count, renamed
from labelkin.metrics import _basic as basic
from labelkin.metrics import _calibration as calibration
from labelkin.metrics._torchmetrics_base import MeanMetric, SumsMetric, values_are_read
from labelkin.metrics._validation import Table, check_pair, check_probs, table
from labelkin.metrics._weighted import scaled


class Accuracy(MeanMetric):
    """Accumulate `labelkin.metrics.accuracy` of predicted and true classes: 0 to 1, higher is better.

    Args:
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metric = metrics.Accuracy()
        >>> metric.update(torch.tensor([0, 1]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        basic.check_alike(given, target, read_values=read_values)
        check_class_positions("predicted", given, read_values=read_values)
        return given == target


class TopKAccuracy(MeanMetric):
    """Accumulate `labelkin.metrics.top_k_accuracy` of scores and true classes: 0 to 1, higher is better.

    Args:
        k: The number of best classes.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metric = metrics.TopKAccuracy(k=2)
        >>> metric.update(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([1]))
        >>> metric.compute()
        tensor(1., dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0

    def __init__(self, *, k: int, **settings: Any) -> None:
        super().__init__(**settings)
        check_count("k", k)
        self.k = k
        self._tell_apart(type(self).__name__, k)

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        basic.check_ranked(given, target, read_values=read_values)
        return basic.within_top_k(given, target, self.k)


class BrierScore(MeanMetric):
    """Accumulate `labelkin.metrics.brier_score` of probabilities and true classes: 0 to 2, lower is better.

    Args:
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metric = metrics.BrierScore()
        >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = False
    plot_upper_bound = 2.0

    def _values(self, given: Tensor, target: Tensor, *, read_values: bool) -> Tensor:
        check_probs(given, target, read_values=read_values)
        return calibration.squared_distances(given, target)


class WeightedAccuracy(SumsMetric):
    """Accumulate the mean of `labelkin.metrics.weighted_accuracy`: 0 to 1, higher is better.

    Args:
        distances: (K, K) distances between the classes.
        normalize: Divide the distances by their mean over pairs of different classes.
        normalise: The former spelling of `normalize`, deprecated.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metric = metrics.WeightedAccuracy(distances=[[0, 3], [3, 0]])
        >>> metric.update(torch.tensor([0, 1]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
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
        check_pair(predicted, target, len(self.distances), read_values=values_are_read(predicted))
        self.hits += (predicted == target).sum()
        self.misses += self.distances[target.long(), predicted.long()].sum()

    def compute(self) -> Tensor:
        return self._divided(self.hits, self.hits + self.misses)


class CalibrationError(SumsMetric):
    """Accumulate `labelkin.metrics.expected_calibration_error` of probabilities and true classes: 0 to 1, lower is better.

    Args:
        bins: The number of bins.
        **settings: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metric = metrics.CalibrationError()
        >>> metric.update(torch.tensor([[0.75, 0.25], [0.75, 0.25]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    higher_is_better = False
    plot_upper_bound = 1.0
    samples: Tensor
    confidence: Tensor
    hits: Tensor

    def __init__(self, *, bins: int = 15, **settings: Any) -> None:
        super().__init__(**settings)
        check_count("bins", bins)
        self.bins = bins
        self._add_sums(*calibration.BinSums._fields, size=(bins,))

    def update(self, probs: Tensor, target: Tensor) -> None:
        sums = calibration.bin_sums(probs, target, self.bins, read_values=values_are_read(probs))
        self.samples += sums.samples
        self.confidence += sums.confidence
        self.hits += sums.hits

    def compute(self) -> Tensor:
        sums = calibration.BinSums(self.samples, self.confidence, self.hits)
        return self.samples.new_tensor(calibration.calibration_of(sums).mean)
