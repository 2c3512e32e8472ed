"""Accuracy, severity of mistakes and cost, as a mean and one value per sample."""

import warnings

import numpy as np
import torch
from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import InputError, check_choice, check_count
from labelkin.metrics._result import Metric, UndefinedMetric, warn_undefined
from labelkin.metrics._validation import Numbers, Table, check_pair, check_taxonomy, numbers, table
from labelkin.structure import DISTANCES, DistanceKind, Taxonomy


def accuracy(predicted: Tensor, target: Tensor) -> Metric:
    """Return the share of samples whose predicted class is the true one: 0 to 1, higher is better.

    Undefined without samples: NaN, with a warning.
    """
    check_alike(predicted, target)
    check_class_positions("predicted", predicted)
    return mean_of("accuracy", predicted == target)


def top_k_accuracy(scores: Tensor, target: Tensor, *, k: int) -> Metric:
    """Return the share of samples whose true class is among the `k` best scores (n, K): 0 to 1, higher is better.

    The lowest position wins a tie, as in `argmax`, so that `k=1` is the accuracy of `scores.argmax(-1)`. A NaN counts
    against the sample: it goes before the true class, and is never a hit. With k of K or more the result is 1. Undefined
    without samples: NaN, with a warning.
    """
    check_count("k", k)
    check_ranked(scores, target)
    return mean_of("top_k_accuracy", within_top_k(scores, target, k))


def mistake_severity(
    predicted: Tensor, target: Tensor, taxonomy: Taxonomy, *, distance: DistanceKind = "height"
) -> Metric:
    """Return the mean distance in the tree between the true and the predicted class, over the mistakes alone.

    `distance` is one of `Taxonomy.distance`: by default the height of the deepest node above both classes; `"depth"` is
    the one of released code. `values` has one entry per mistake. From 1 (a sibling, where leaves lie at one depth) to the
    height of the tree; lower is better. Undefined without mistakes: NaN, with a warning.
    """
    check_taxonomy(taxonomy)
    check_choice("distance", distance, DISTANCES)
    classes = len(taxonomy.leaves)
    check_alike(predicted, target, classes)
    check_class_positions("predicted", predicted, classes)
    wrong = predicted != target
    pairs = (target[wrong].cpu().numpy(), predicted[wrong].cpu().numpy())
    distances = torch.from_numpy(np.asarray(taxonomy.distance(distance, *pairs)))
    return mean_of("mistake_severity", distances, "mistakes")


def summary(scores: Tensor, target: Tensor, taxonomy: Taxonomy | None = None) -> dict[str, float]:
    """Return the figures of a table by name: accuracy, top-5 with more than five classes, severity with a tree.

    A figure is NaN where it is undefined.
    """
    predicted = scores.argmax(-1)
    found = {"accuracy": accuracy(predicted, target).mean}
    if scores.shape[-1] > 5:
        found["top5"] = top_k_accuracy(scores, target, k=5).mean
    if taxonomy is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetric)  # without mistakes the NaN says so itself
            found["severity"] = mistake_severity(predicted, target, taxonomy).mean
    return found


def within_top_k(scores: Tensor, target: Tensor, k: int) -> Tensor:
    """Whether each true class is among the k best scores, of which the lowest positions win ties."""
    place = target.long().unsqueeze(-1)
    true = scores.gather(-1, place)
    later = torch.arange(scores.shape[-1], device=scores.device) > place
    after = ((scores < true) | ((scores == true) & later)).float().sum(-1)  # much faster than a sum of booleans
    return after >= scores.shape[-1] - k


def mean_of(metric: str, values: Tensor, what: str = "samples") -> Metric:
    """The mean of the values; without any it is NaN, with a warning to the metric's caller."""
    if not values.numel():
        warn_undefined(f"{metric}: there are no {what}, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(values.double().mean()), values)


def check_ranked(scores: Tensor, target: Tensor, *, read_values: bool = True) -> None:
    """Scores (..., K) and a true class for every row."""
    if not isinstance(scores, Tensor) or not scores.ndim:
        raise InputError(f"scores: expected a tensor (n, K), got {type(scores).__name__}.")
    check_alike(scores[..., 0], target, scores.shape[-1], read_values=read_values)


def check_alike(predicted: Tensor, target: Tensor, classes: int | None = None, *, read_values: bool = True) -> None:
    """Tensors of one shape, of which the target holds class positions."""
    for argument, given in (("predicted", predicted), ("target", target)):
        if not isinstance(given, Tensor):
            raise InputError(f"{argument}: expected a tensor, got {type(given).__name__}.")
    if predicted.shape != target.shape:
        raise InputError(
            f"target: expected shape {tuple(predicted.shape)}, like the predictions, got {tuple(target.shape)}."
        )
    check_class_positions("target", target, classes, read_values=read_values)


def expected_cost(predicted: Tensor, target: Tensor, costs: Table) -> Metric:
    """The mean of `costs[true class, predicted class]`, in the units of `costs` and within their range; lower is better.

    Costs need not be symmetric, nor 0 on the diagonal, and may be gains below 0. Undefined without samples: NaN, with a
    warning.
    """
    found = table("costs", costs).to(target.device)
    check_pair(predicted, target, len(found))
    return mean_of("expected_cost", found[target.long(), predicted.long()])


def ordinal_mse(predicted: Tensor, target: Tensor, values: Numbers | None = None) -> Metric:
    """The mean squared difference of the predicted and the true class's value: 0 and up, lower is better.

    `values[k]` is the quantity that class k stands for; by default k itself, as 000 has it for the digit that the
    outputs' argmax names. Undefined without samples: NaN, with a warning.
    """
    if values is None:
        check_pair(predicted, target)
        return mean_of("ordinal_mse", (predicted.double() - target.double()).square())
    quantity = numbers("values", values).to(target.device)
    check_pair(predicted, target, len(quantity))
    return mean_of("ordinal_mse", (quantity[predicted.long()] - quantity[target.long()]).square())
