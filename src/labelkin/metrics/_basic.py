"""Accuracy, severity of mistakes and cost; and metrics in which every class has the same weight, however rare it is."""

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

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.accuracy(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 2])).values
        tensor([ True,  True, False])
    """
    check_alike(predicted, target)
    check_class_positions("predicted", predicted)
    return mean_of("accuracy", predicted == target)


def top_k_accuracy(scores: Tensor, target: Tensor, *, k: int) -> Metric:
    """Return the share of samples whose true class is among the `k` best scores: 0 to 1, higher is better.

    Among equal scores the lowest class position comes first, as in `argmax`, so that `k=1` is the accuracy of
    `scores.argmax(-1)`. A NaN counts against the sample: it ranks before the true class and is never a hit.

    Args:
        scores: (..., K) scores of the classes.
        target: (...,) true class positions.
        k: The number of best classes. With K or more, the result is 1.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.top_k_accuracy(torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([1]), k=2).mean
        1.0
    """
    check_count("k", k)
    check_ranked(scores, target)
    return mean_of("top_k_accuracy", within_top_k(scores, target, k))


def mistake_severity(
    predicted: Tensor, target: Tensor, taxonomy: Taxonomy, *, distance: DistanceKind = "height"
) -> Metric:
    """Return the mean distance in the tree between true and predicted class over the mistakes; lower is better.

    With `distance="height"` it ranges from 1 (a sibling, if all leaves have the same depth) to the height of the tree.

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.
        taxonomy: The tree of the classes.
        distance: The kind of distance; see `Taxonomy.distance`. `"depth"` is that of released code.

    Returns:
        A `Metric` with one value per mistake. Without mistakes the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import Taxonomy, metrics
        >>> tree = Taxonomy.from_nested({"animal": ["cat", "dog"], "machine": ["car"]})
        >>> metrics.mistake_severity(torch.tensor([1, 2, 2]), torch.tensor([0, 0, 2]), tree).mean
        1.5
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
    """Return the usual metrics by name: accuracy, top-5 accuracy for more than five classes, and severity if there is a tree.

    Args:
        scores: (..., K) scores of the classes.
        target: (...,) true class positions.
        taxonomy: The tree of the classes, if there is one.

    Returns:
        The means by name; a mean is NaN if the metric is undefined.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.summary(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
        {'accuracy': 0.5}
    """
    predicted = scores.argmax(-1)
    found = {"accuracy": accuracy(predicted, target).mean}
    if scores.shape[-1] > 5:
        found["top5"] = top_k_accuracy(scores, target, k=5).mean
    if taxonomy is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetric)  # NaN means that there are no mistakes
            found["severity"] = mistake_severity(predicted, target, taxonomy).mean
    return found


def within_top_k(scores: Tensor, target: Tensor, k: int) -> Tensor:
    """Return whether each true class is among the k best scores; among equal scores the lowest positions come first."""
    place = target.long().unsqueeze(-1)
    true = scores.gather(-1, place)
    later = torch.arange(scores.shape[-1], device=scores.device) > place
    after = ((scores < true) | ((scores == true) & later)).float().sum(-1)  # much faster than a sum of booleans
    return after >= scores.shape[-1] - k


def mean_of(metric: str, values: Tensor, what: str = "samples") -> Metric:
    """Return the mean of the values; without values it is NaN, with a warning to the caller of the metric."""
    if not values.numel():
        warn_undefined(f"{metric}: there are no {what}, so it is undefined (NaN).", stacklevel=4)
    return Metric(float(values.detach().double().mean()), values)


def check_ranked(scores: Tensor, target: Tensor, *, read_values: bool = True) -> None:
    """Check scores (..., K) and one true class per row."""
    if not isinstance(scores, Tensor) or not scores.ndim:
        raise InputError(f"scores: expected a tensor (n, K), got {type(scores).__name__}.")
    check_alike(scores[..., 0], target, scores.shape[-1], read_values=read_values)


def check_alike(predicted: Tensor, target: Tensor, classes: int | None = None, *, read_values: bool = True) -> None:
    """Check that both tensors have the same shape and that the target holds class positions."""
    for argument, given in (("predicted", predicted), ("target", target)):
        if not isinstance(given, Tensor):
            raise InputError(f"{argument}: expected a tensor, got {type(given).__name__}.")
    if predicted.shape[:-1] == target.shape and target.ndim:
        raise InputError(
            f"predicted: expected one class per sample, got shape {tuple(predicted.shape)}; of scores, pass scores.argmax(-1)."
        )
    if predicted.shape != target.shape:
        raise InputError(
            f"target: expected shape {tuple(predicted.shape)}, like the predictions, got {tuple(target.shape)}."
        )
    check_class_positions("target", target, classes, read_values=read_values)


def expected_cost(predicted: Tensor, target: Tensor, costs: Table) -> Metric:
    """Return the mean of `costs[true class, predicted class]`, in the units of the costs; lower is better.

    Args:
        predicted: (n,) predicted class positions.
        target: (n,) true class positions.
        costs: (K, K) costs. They need not be symmetric or 0 on the diagonal, and may be negative (gains).

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.expected_cost(torch.tensor([1, 1]), torch.tensor([0, 1]), [[0, 5], [1, 0]]).mean
        2.5
    """
    found = table("costs", costs).to(target.device)
    check_pair(predicted, target, len(found))
    return mean_of("expected_cost", found[target.long(), predicted.long()])


def ordinal_mse(predicted: Tensor, target: Tensor, values: Numbers | None = None) -> Metric:
    """Return the mean squared difference between the values of predicted and true class: 0 and up, lower is better.

    Args:
        predicted: (n,) predicted class positions.
        target: (n,) true class positions.
        values: (K,) the value of each class. None means the class position, as in 000 for digits.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.ordinal_mse(torch.tensor([3, 1]), torch.tensor([1, 1])).mean
        2.0
    """
    if values is None:
        check_pair(predicted, target)
        return mean_of("ordinal_mse", (predicted.double() - target.double()).square())
    quantity = numbers("values", values).to(target.device)
    check_pair(predicted, target, len(quantity))
    return mean_of("ordinal_mse", (quantity[predicted.long()] - quantity[target.long()]).square())


def balanced_accuracy(predicted: Tensor, target: Tensor) -> Metric:
    """Return the mean over the classes of the share of their samples that are right: 0 to 1, higher is better.

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.

    Returns:
        A `Metric` with one value per class that occurs in `target`, in their order. Without samples the mean is NaN, with a
        warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.balanced_accuracy(torch.tensor([0, 0, 0, 0]), torch.tensor([0, 0, 0, 1])).mean
        0.5
    """
    true, _, right = _counts(predicted, target)
    return mean_of("balanced_accuracy", (right / true)[true > 0])


def macro_f1(predicted: Tensor, target: Tensor) -> Metric:
    """Return the mean F1 score of the classes, `2 right / (true + predicted)`: 0 to 1, higher is better.

    The mean is over the classes that occur as true or predicted ones, as in scikit-learn.

    Args:
        predicted: (...,) predicted class positions.
        target: (...,) true class positions.

    Returns:
        A `Metric` with one value per class that occurs, in their order. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.macro_f1(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])).values
        tensor([0.6667, 0.6667], dtype=torch.float64)
    """
    true, answered, right = _counts(predicted, target)
    both = true + answered
    return mean_of("macro_f1", (2 * right / both)[both > 0])


def _counts(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return how often each class is the true one, the prediction, and both."""
    check_alike(predicted, target)
    check_class_positions("predicted", predicted)
    predicted, target = predicted.reshape(-1).cpu().long(), target.reshape(-1).cpu().long()
    classes = int(torch.cat([predicted, target]).max()) + 1 if target.numel() else 0

    def count(positions: Tensor) -> Tensor:
        return torch.bincount(positions, minlength=classes).double()

    return count(target), count(predicted), count(target[predicted == target])
