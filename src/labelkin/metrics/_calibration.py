"""Calibration: how well probabilities match frequencies."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import check_count
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._validation import check_probs

ROWS = 256  # converted to double precision at a time, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class Calibration(Metric):
    """The result of `expected_calibration_error`, with the data of a reliability diagram.

    Attributes:
        mean: The error.
        values: (bins,) distance between confidence and accuracy; `mean` is their mean, weighted by samples.
        samples: (bins,) number of samples.
        confidence: (bins,) mean of the largest probability, NaN for an empty bin.
        accuracy: (bins,) share of right predictions, NaN for an empty bin.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> probs = torch.tensor([[0.75, 0.25], [0.75, 0.25]])
        >>> metrics.expected_calibration_error(probs, torch.tensor([0, 1]), bins=2).accuracy
        tensor([   nan, 0.5000], dtype=torch.float64)
    """

    samples: Tensor
    confidence: Tensor  # mean of the largest probability
    accuracy: Tensor

    @property
    def error(self) -> float:
        """The same as `mean`."""
        return self.mean


class BinSums(NamedTuple):
    """Sums over the samples of each bin; the sums of batches add up."""

    samples: Tensor
    confidence: Tensor
    hits: Tensor


def expected_calibration_error(probs: Tensor, target: Tensor, *, bins: int = 15) -> Calibration:
    """Return the mean distance between confidence and accuracy over bins of equal width (ECE, Guo et al., 2017).

    The confidence is the largest probability of a row. A bin contains its upper edge and is weighted by its samples. The
    error ranges from 0 to 1; lower is better.

    Args:
        probs: (n, K) probabilities of the classes.
        target: (n,) true class positions.
        bins: The number of bins.

    Returns:
        A `Calibration` with one value per bin. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> probs = torch.tensor([[0.75, 0.25], [0.75, 0.25]])
        >>> metrics.expected_calibration_error(probs, torch.tensor([0, 1])).mean
        0.25
    """
    return calibration_of(bin_sums(probs, target, bins))


def brier_score(probs: Tensor, target: Tensor) -> Metric:
    """Return the squared distance between probabilities and one-hot targets, summed over classes: 0 to 2, lower is better.

    Args:
        probs: (n, K) probabilities of the classes.
        target: (n,) true class positions.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.brier_score(torch.tensor([[0.5, 0.5]]), torch.tensor([0])).mean
        0.5
    """
    check_probs(probs, target)
    return mean_of("brier_score", squared_distances(probs, target))


def squared_distances(probs: Tensor, target: Tensor) -> Tensor:
    true = probs.gather(1, target.long().unsqueeze(1)).squeeze(1).double()
    squares = torch.cat([rows.double().square().sum(1) for rows in torch.split(probs, ROWS)])
    return squares - 2 * true + 1


def bin_sums(probs: Tensor, target: Tensor, bins: int, *, read_values: bool = True) -> BinSums:
    check_count("bins", bins)
    check_probs(probs, target, read_values=read_values)
    predicted = probs.argmax(-1)
    confidence = probs.gather(-1, predicted.unsqueeze(-1)).squeeze(-1).double()
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64, device=probs.device)[1:-1]
    place = torch.bucketize(confidence, edges)
    hits = (predicted == target).double()
    return BinSums(*(_summed(part, place, bins) for part in (torch.ones_like(hits), confidence, hits)))


def calibration_of(sums: BinSums) -> Calibration:
    total = sums.samples.sum()
    if not total:
        warn_undefined("expected_calibration_error: there are no samples, so it is undefined (NaN).", stacklevel=4)
    error = (sums.confidence - sums.hits).abs().sum() / total
    confidence, accuracy = sums.confidence / sums.samples, sums.hits / sums.samples
    return Calibration(float(error.detach()), (confidence - accuracy).abs(), sums.samples.long(), confidence, accuracy)


def _summed(part: Tensor, place: Tensor, bins: int) -> Tensor:
    return torch.zeros(bins, dtype=torch.float64, device=part.device).index_add_(0, place, part)
