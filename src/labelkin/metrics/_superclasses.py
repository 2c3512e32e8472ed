"""Superclass accuracy: from k-means clusters of outputs (000), or from summed probabilities."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from labelkin._checks import InputError, counted
from labelkin.metrics import _kmeans as kmeans
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric
from labelkin.metrics._validation import check_probs, check_rows, check_scores, group_of_class


def superclass_accuracy(probs: Tensor, target: Tensor, groups: Tensor | Sequence[int]) -> Metric:
    """Return the share of samples whose true group has the largest summed probability: 0 to 1, higher is better.

    Args:
        probs: (n, K) probabilities of the classes.
        target: (n,) true class positions.
        groups: (K,) the number of each class's group.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> metrics.superclass_accuracy(torch.tensor([[0.3, 0.3, 0.4]]), torch.tensor([0]), [0, 0, 1]).mean
        1.0
    """
    check_probs(probs, target)
    group, count = group_of_class(groups, probs.shape[1])
    group = group.to(probs.device)
    summed = probs.new_zeros(len(probs), count).index_add_(1, group, probs)
    return mean_of("superclass_accuracy", summed.argmax(-1) == group[target.long()])


def superclass_accuracy_by_kmeans(
    train_outputs: Tensor, outputs: Tensor, target: Tensor, groups: Tensor | Sequence[int], *, seed: int = 0
) -> Metric:
    """Return the share of samples whose cluster represents their group (000): 0 to 1, higher is better.

    k-means, with as many clusters as groups and the best of ten starts, is fitted on the training outputs. Each cluster
    represents one group, by the assignment that makes most samples right; so chance level is above 1 / number of groups.

    Args:
        train_outputs: (m, K) outputs on which k-means is fitted: softmax outputs in the paper, or logits.
        outputs: (n, K) outputs of the samples.
        target: (n,) true class positions.
        groups: (K,) the number of each class's group.
        seed: The seed of the starts.

    Returns:
        A `Metric` with one value per sample. Without samples the mean is NaN, with a warning.

    Example:
        >>> import torch
        >>> from labelkin import metrics
        >>> outputs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
        >>> metrics.superclass_accuracy_by_kmeans(outputs, outputs, torch.tensor([0, 0, 1, 1]), [0, 1]).mean
        1.0
    """
    check_rows("train_outputs", train_outputs)
    check_scores("outputs", outputs, target, train_outputs.shape[1])
    group, count = group_of_class(groups, outputs.shape[1])
    if len(train_outputs) < count:
        raise InputError(
            f"train_outputs: expected at least {counted(count, 'row')}, one per group, got {len(train_outputs)}."
        )
    if not len(outputs):
        return mean_of("superclass_accuracy_by_kmeans", torch.zeros(0))
    for argument, given in (("train_outputs", train_outputs), ("outputs", outputs)):
        if not given.isfinite().all():
            raise InputError(f"{argument}: expected finite numbers, got {int(given.isinf().sum())} infinite numbers.")
    found = kmeans.fit(train_outputs.detach(), count, starts=10, seed=seed)
    clusters = found.place(outputs.detach().to(train_outputs.device)).cpu().numpy()
    true = group.cpu().numpy()[target.cpu().numpy()]
    met = np.zeros((count, count), dtype=np.int64)
    np.add.at(met, (clusters, true), 1)
    _, stands_for = linear_sum_assignment(met, maximize=True)
    return mean_of("superclass_accuracy_by_kmeans", torch.from_numpy(stands_for[clusters] == true))
