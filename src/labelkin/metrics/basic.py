"""How often a model is right, and how bad it is when it is wrong. Each metric comes as a mean and a value a sample."""

import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelkin._checks import InputError, check_count
from labelkin.metrics.inputs import check_taxonomy, check_whole
from labelkin.structure import Taxonomy


class Metric(NamedTuple):
    mean: float
    values: Tensor  # one a sample that the metric is defined for


class UndefinedMetric(UserWarning):
    """A metric has no value for what it was given, and is NaN."""


def accuracy(predicted: Tensor, target: Tensor) -> Metric:
    """The share of samples whose predicted class is the true one: 0 to 1, higher is better.

    Undefined without samples: NaN, with a warning.
    """
    right = predicted == _checked(predicted, target)
    check_whole("predicted", predicted)
    return mean_of("accuracy", right)


def top_k_accuracy(scores: Tensor, target: Tensor, *, k: int) -> Metric:
    """The share of samples whose true class is among the `k` best scores (n, K): 0 to 1, higher is better.

    Ties count against the sample, and so does NaN: a class not scored below the true one goes before it. With k of K or
    more it is 1. Undefined without samples: NaN, with a warning.
    """
    check_count("k", k)
    if not isinstance(scores, Tensor) or not scores.ndim:
        raise InputError(f"scores: expected a tensor (n, K), got {type(scores).__name__}.")
    classes = _checked(scores[..., 0], target, scores.shape[-1])
    true = scores.gather(-1, classes.long().unsqueeze(-1))
    after = (scores < true).float().sum(-1)  # several times as fast as the sum of booleans
    return mean_of("top_k_accuracy", after >= scores.shape[-1] - k)


def mistake_severity(predicted: Tensor, target: Tensor, taxonomy: Taxonomy) -> Metric:
    """The mean height of the deepest node above both the true and the predicted class, over the mistakes alone.

    From 1 (a sibling, where leaves lie at one depth) to the height of the tree; lower is better. Undefined without
    mistakes: NaN, with a warning.
    """
    check_taxonomy(taxonomy)
    classes = len(taxonomy.leaves)
    wrong = predicted != _checked(predicted, target, classes)
    check_whole("predicted", predicted, classes)
    pairs = (target[wrong].cpu().numpy(), predicted[wrong].cpu().numpy())
    heights = torch.from_numpy(np.asarray(taxonomy.distance("height", *pairs)))
    return mean_of("mistake_severity", heights, "mistakes")


def mean_of(metric: str, values: Tensor, what: str = "samples") -> Metric:
    """The mean of the values; without any it is NaN, with a warning to the metric's caller."""
    if not values.numel():
        warn_undefined(f"{metric}: there are no {what}, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(values.double().mean()), values)


def warn_undefined(sentence: str, *, stacklevel: int = 3) -> None:
    warnings.warn(sentence, UndefinedMetric, stacklevel=stacklevel)


def _checked(predicted: Tensor, target: Tensor, classes: int | None = None) -> Tensor:
    for argument, given in (("predicted", predicted), ("target", target)):
        if not isinstance(given, Tensor):
            raise InputError(f"{argument}: expected a tensor, got {type(given).__name__}.")
    if predicted.shape != target.shape:
        raise InputError(
            f"target: expected shape {tuple(predicted.shape)}, like the predictions, got {tuple(target.shape)}."
        )
    check_whole("target", target, classes)
    return target
