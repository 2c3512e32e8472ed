"""How often a model is right, and how bad it is when it is wrong. Each metric comes as a mean and a value a sample."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.structure import Taxonomy


class Metric(NamedTuple):
    mean: float
    values: Tensor  # one a sample that the metric is defined for


def accuracy(predicted: Tensor, target: Tensor) -> Metric:
    """The share of samples whose predicted class is the true one: 0 to 1, higher is better."""
    return _mean_of(predicted == _checked(predicted, target))


def top_k_accuracy(scores: Tensor, target: Tensor, *, k: int) -> Metric:
    """The share of samples whose true class is among the `k` best scores (n, K): 0 to 1, higher is better.

    Ties count against the sample: a class scored like the true one goes before it. With k of K or more it is 1.
    """
    check_count("k", k)
    true = scores.gather(-1, _checked(scores[..., 0], target).unsqueeze(-1))
    before = (scores >= true).sum(-1) - 1
    return _mean_of(before < k)


def mistake_severity(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> Metric:
    """The mean height of the deepest node above both the true and the predicted class, over the mistakes alone.

    From 1 (a sibling, where leaves lie at one depth) to the height of the tree; lower is better. Undefined without
    mistakes: NaN, with a warning.
    """
    wrong = predicted != _checked(predicted, target)
    pairs = (target[wrong].cpu().numpy(), predicted[wrong].cpu().numpy())
    heights = torch.from_numpy(np.asarray(taxonomy.distance("height", *pairs)))
    if not len(heights):
        warnings.warn("mistake_severity: there are no mistakes, so their severity is undefined (NaN).", stacklevel=2)
    return _mean_of(heights)


def _mean_of(values: Tensor) -> Metric:
    return Metric(float(values.double().mean()), values)


def _checked(predicted: Tensor, target: Tensor) -> Tensor:
    if predicted.shape != target.shape:
        raise InputError(
            f"target: expected shape {tuple(predicted.shape)}, like the predictions, got {tuple(target.shape)}."
        )
    return target
