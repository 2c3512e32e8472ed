"""Whether probabilities mean what they say."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from labelkin._checks import check_count
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric, warn_undefined
from labelkin.metrics._validation import check_probs

ROWS = 256  # brought to double precision at a time, which no cache is too small for


@dataclass(frozen=True, eq=False)
class Calibration(Metric):
    """The error, and what a reliability diagram shows: one number per bin, NaN in bins without samples.

    `mean` is the error; `values` are the distances of confidence and accuracy in the bins, of which it is the mean
    weighted by samples.
    """

    samples: Tensor
    confidence: Tensor  # mean of the largest probability
    accuracy: Tensor

    @property
    def error(self) -> float:
        """The same as `mean`."""
        return self.mean


class BinSums(NamedTuple):
    """Sums over the samples of each bin, which add up over batches."""

    samples: Tensor
    confidence: Tensor
    hits: Tensor


def expected_calibration_error(probs: Tensor, target: Tensor, *, bins: int = 15) -> Calibration:
    """ECE (Guo et al., 2017): how far confidence and accuracy lie apart, averaged over bins of equal width.

    The confidence is the largest probability of a row; each bin holds its upper edge, and weighs as many as it has
    samples. 0 to 1, lower is better. Undefined without samples: NaN, with a warning.
    """
    return calibration_of(bin_sums(probs, target, bins))


def brier_score(probs: Tensor, target: Tensor) -> Metric:
    """The squared distance of the probabilities from the one-hot truth, summed over classes: 0 to 2, lower is better.

    Undefined without samples: NaN, with a warning.
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
    return Calibration(float(error), (confidence - accuracy).abs(), sums.samples.long(), confidence, accuracy)


def _summed(part: Tensor, place: Tensor, bins: int) -> Tensor:
    return torch.zeros(bins, dtype=torch.float64, device=part.device).index_add_(0, place, part)
