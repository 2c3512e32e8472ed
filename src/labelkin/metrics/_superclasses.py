"""Whether the outputs tell the superclass: by clusters of outputs (000), or by adding up probabilities."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from labelkin._checks import InputError
from labelkin.metrics import _kmeans as kmeans
from labelkin.metrics._basic import mean_of
from labelkin.metrics._result import Metric
from labelkin.metrics._validation import check_probs, check_rows, check_scores, group_of_class


def superclass_accuracy(probs: Tensor, target: Tensor, groups: Tensor | Sequence[int]) -> Metric:
    """The share of samples whose true group has the largest probability, summed over its classes.

    `groups[k]` is the group of class k. 0 to 1, higher is better. Undefined without samples: NaN, with a warning.
    """
    check_probs(probs, target)
    group, count = group_of_class(groups, probs.shape[1])
    group = group.to(probs.device)
    summed = probs.new_zeros(len(probs), count).index_add_(1, group, probs)
    return mean_of("superclass_accuracy", summed.argmax(-1) == group[target.long()])


def superclass_accuracy_by_kmeans(
    train_outputs: Tensor, outputs: Tensor, target: Tensor, groups: Tensor | Sequence[int], *, seed: int = 0
) -> Metric:
    """The share of samples in the cluster that stands for their group (000): 0 to 1, higher is better.

    k-means with as many clusters as groups, the best of ten starts, is fitted on `train_outputs` (n, K) and places
    `outputs` (m, K): softmax outputs in the paper, logits where you pass them. `groups[k]` is the group of class k. Each
    cluster stands for one group, by the assignment that makes most samples of `outputs` right; so chance lies above
    one in the number of groups. Undefined without samples: NaN, with a warning.
    """
    check_rows("train_outputs", train_outputs)
    check_scores("outputs", outputs, target, train_outputs.shape[1])
    group, count = group_of_class(groups, outputs.shape[1])
    if len(train_outputs) < count:
        raise InputError(
            f"train_outputs: expected a row for each of {count} groups at least, got {len(train_outputs)}."
        )
    if not len(outputs):
        return mean_of("superclass_accuracy_by_kmeans", torch.zeros(0))
    for argument, given in (("train_outputs", train_outputs), ("outputs", outputs)):
        if not given.isfinite().all():
            raise InputError(f"{argument}: expected finite numbers, got {int(given.isinf().sum())} infinite ones.")
    found = kmeans.fit(train_outputs.detach(), count, starts=10, seed=seed)
    clusters = found.place(outputs.detach().to(train_outputs.device)).cpu().numpy()
    true = group.cpu().numpy()[target.cpu().numpy()]
    met = np.zeros((count, count), dtype=np.int64)
    np.add.at(met, (clusters, true), 1)
    _, stands_for = linear_sum_assignment(met, maximize=True)
    return mean_of("superclass_accuracy_by_kmeans", torch.from_numpy(stands_for[clusters] == true))
