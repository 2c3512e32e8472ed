"""Adaptive labels (001 Eq. 1-3): class means as labels, distances to them as logits, and the repelling term."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional._collectives import sum_over_processes, world_size
from labelkin.functional._state import finite_rows

FLOOR = 1e-6  # smallest distance: the square root has no finite gradient at 0
NEGLIGIBLE = 1e-6  # a vector shorter than this has no direction


class ClassSums(NamedTuple):
    """Sums (K, D) and weights (K,) of the samples of every class, over all processes.

    Example:
        >>> import torch
        >>> from labelkin.functional import ClassSums
        >>> ClassSums(torch.tensor([[2.0], [0.0]]), torch.tensor([4.0, 0.0])).means()
        tensor([[0.5000],
                [0.0000]])
    """

    total: Tensor
    weight: Tensor

    @property
    def present(self) -> Tensor:
        """Return (K,): whether a class has samples."""
        return self.weight > 0

    def means(self) -> Tensor:
        """Return the class means (K, D) of 001 Eq. 1; zero for a class without samples."""
        return self.total / torch.where(self.present, self.weight, torch.ones_like(self.weight)).unsqueeze(-1)


def class_sums(z: Tensor, target: Tensor, weight: Tensor, classes: int) -> ClassSums:
    """Sum outputs by class, over all processes: the numerator and denominator of the class means (001 Eq. 1).

    Args:
        z: (n, D) outputs. Gradients reach the samples of every process.
        target: (n,) class positions.
        weight: (n,) sample weights.
        classes: number of classes K.

    Returns:
        `ClassSums` with sums (K, D) and weights (K,).

    Example:
        >>> import torch
        >>> from labelkin.functional import class_sums
        >>> z = torch.tensor([[1.0], [3.0], [5.0]])
        >>> class_sums(z, torch.tensor([0, 0, 1]), torch.ones(3), 2).means().flatten()
        tensor([2., 5.])
    """
    total = z.new_zeros(classes, z.shape[-1]).index_add(0, target, z * weight.unsqueeze(-1))
    counts = weight.new_zeros(classes).index_add(0, target, weight)
    return ClassSums(sum_over_processes(total), sum_over_processes(counts.detach()))


def sum_by_class(batches: Iterable[tuple[Tensor, ...]], classes: int, width: int) -> ClassSums:
    """Sum by class in float64 over batches of (outputs (..., D), target (...,)), with weights as an optional third."""
    total, weight = torch.zeros(classes, width, dtype=torch.float64), torch.zeros(classes, dtype=torch.float64)
    with torch.no_grad():
        for outputs, target, *given in batches:
            total, weight = total.to(outputs.device), weight.to(outputs.device)
            each = given[0].reshape(-1).double() if given else total.new_ones(target.numel())
            own = target.reshape(-1).long().masked_fill(each == 0, 0)  # padding may hold anything
            _check_batch(outputs, target, own, classes, width)
            rows = outputs.reshape(-1, width).double().masked_fill((each == 0).unsqueeze(-1), 0)
            total.index_add_(0, own, rows * each.unsqueeze(-1))
            weight.index_add_(0, own, each)
    return ClassSums(sum_over_processes(total), sum_over_processes(weight))


def label_distances(z: Tensor, labels: Tensor) -> Tensor:
    """Compute the Euclidean distances `||z - label||_2` of 001 Eq. 2.

    They are exact (the square is not expanded), and at least 1e-6, because the root has no finite gradient at 0.

    Args:
        z: (..., D) outputs.
        labels: (K, D) one label per class.

    Returns:
        (..., K) the distance of each output to each label.

    Example:
        >>> import torch
        >>> from labelkin.functional import label_distances
        >>> label_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]]))
        tensor([[5., 4.]])
    """
    flat = torch.cdist(z.reshape(-1, z.shape[-1]), labels, compute_mode="donot_use_mm_for_euclid_dist")
    return flat.clamp_min(FLOOR).reshape(*z.shape[:-1], len(labels))


def distance_to(z: Tensor, labels: Tensor) -> Tensor:
    """Compute the distance (n,) of each sample to its own label, at least 1e-6."""
    return (z - labels).square().sum(-1).clamp_min(FLOOR**2).sqrt()


def leave_one_out_means(z: Tensor, target: Tensor, weight: Tensor, sums: ClassSums) -> tuple[Tensor, Tensor]:
    """Compute the mean of the other samples of each sample's class (001 Eq. 1 without the sample itself; our variant).

    With one sample per class, a class mean is the sample, so its distance is 0 whatever the network does.

    Args:
        z: (n, D) outputs.
        target: (n,) class positions.
        weight: (n,) sample weights.
        sums: `class_sums` of the same batch.

    Returns:
        Means (n, D), and a bool (n,) that is true where a class has no other sample and the mean is 0.

    Example:
        >>> import torch
        >>> from labelkin.functional import class_sums, leave_one_out_means
        >>> z, target, weight = torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), torch.ones(3)
        >>> means, alone = leave_one_out_means(z, target, weight, class_sums(z, target, weight, 2))
        >>> means.flatten(), alone
        (tensor([3., 1., 0.]), tensor([False, False,  True]))
    """
    others = sums.weight[target] - weight
    alone = others <= 1e-6 * sums.weight[target]
    total = sums.total[target] - weight.unsqueeze(-1) * z
    mean = total / torch.where(alone, torch.ones_like(others), others).unsqueeze(-1)
    return mean.masked_fill(alone.unsqueeze(-1), 0), alone


def repel(z: Tensor, target: Tensor, weight: Tensor, classes: int) -> Tensor:
    """Compute the mean cosine similarity over all pairs of samples, with pairs of one class counted as 0 (001 Eq. 3).

    It needs only class sums: the sum over pairs of different classes is `|sum u|^2 - sum_c |sum_c u|^2`.

    Args:
        z: (n, D) outputs.
        target: (n,) class positions.
        weight: (n,) sample weights.
        classes: number of classes.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> from labelkin.functional import repel
        >>> repel(torch.tensor([[1.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]), torch.ones(2), 2)  # 2 of 4 pairs
        tensor(0.5000)
    """
    sums = class_sums(F.normalize(z, dim=-1), target, weight, classes)
    across = sums.total.sum(0).square().sum() - sums.total.square().sum()
    pairs = sums.weight.sum().square()
    return across / torch.where(pairs > 0, pairs, torch.ones_like(pairs))


def anchored_labels(means: Tensor, share: Tensor | float) -> Tensor:
    """Compute unit labels between unit vectors and class means, `unit((1 - b) e_c + b unit(mean_c - mean of means))` (ours).

    A class whose mean is 0 has had no samples: its label is `e_c`, and the mean of means leaves it out.

    Args:
        means: (K, D) running means of normalized outputs, D at least K.
        share: the share b of the class means, from 0 to 1.

    Returns:
        (K, D) one label per class.

    Example:
        >>> import torch
        >>> from labelkin.functional import anchored_labels
        >>> anchored_labels(torch.tensor([[0.6, 0.8], [0.6, -0.8]]), 0.25)  # (3, 1) and (0, 2), as unit vectors
        tensor([[0.9487, 0.3162],
                [0.0000, 1.0000]])
    """
    seen = (means != 0).any(-1, keepdim=True)
    middle = means.sum(0) / seen.sum().clamp_min(1)
    apart = F.normalize(means - middle, dim=-1, eps=NEGLIGIBLE) * seen
    start = torch.eye(*means.shape, dtype=means.dtype, device=means.device)
    return F.normalize((1 - share) * start + share * apart, dim=-1, eps=NEGLIGIBLE)


def running_means(means: Tensor, sums: ClassSums, momentum: float) -> Tensor:
    """Move running means of classes toward those of a batch, `momentum * mean_c + (1 - momentum) * batch mean_c`.

    A class that had no samples before, whose mean is 0, takes the mean of the batch. A class without samples in the batch
    keeps its mean, and so does one whose batch mean is not finite.

    Args:
        means: (K, D) the running means.
        sums: `class_sums` of the batch.
        momentum: the share of the old mean that is kept.

    Returns:
        (K, D) the new running means.

    Example:
        >>> import torch
        >>> from labelkin.functional import ClassSums, running_means
        >>> sums = ClassSums(torch.tensor([[2.0], [6.0], [0.0]]), torch.tensor([1.0, 2.0, 0.0]))
        >>> running_means(torch.tensor([[1.0], [0.0], [5.0]]), sums, momentum=0.75).flatten()
        tensor([1.2500, 3.0000, 5.0000])
    """
    batch = sums.means()
    moved = torch.where((means != 0).any(-1, keepdim=True), momentum * means + (1 - momentum) * batch, batch)
    return torch.where(sums.present.unsqueeze(-1) & finite_rows(moved), moved, means)


def moved_rows(rows: Tensor, values: Tensor, target: Tensor, weight: Tensor, momentum: float) -> Tensor:
    """Move the row of each class toward the mean of its samples, `momentum * row_c + (1 - momentum) * mean_c`.

    It is `running_means` for rows that have a first value, in time proportional to the samples. Classes without samples keep
    their rows.

    Args:
        rows: (K, D) one row per class.
        values: (n, D) one value per sample.
        target: (n,) class positions.
        weight: (n,) sample weights. Samples of all processes count.
        momentum: the share of the old row that is kept.

    Returns:
        (K, D) the new rows.

    Example:
        >>> import torch
        >>> from labelkin.functional import moved_rows
        >>> rows, values = torch.tensor([[1.0], [5.0]]), torch.tensor([[2.0], [4.0]])
        >>> moved_rows(rows, values, torch.tensor([0, 0]), torch.ones(2), momentum=0.5).flatten()
        tensor([2., 5.])
    """
    counts = sum_over_processes(weight.new_zeros(len(rows)).index_add(0, target, weight))[target]
    share = torch.where(weight > 0, (1 - momentum) * weight / counts, 0.0).to(rows.dtype)
    steps = share.unsqueeze(-1) * (values - rows[target])
    if world_size() == 1:
        return rows.index_add(0, target, steps)
    return rows + sum_over_processes(torch.zeros_like(rows).index_add(0, target, steps))


def _check_batch(outputs: Tensor, target: Tensor, own: Tensor, classes: int, width: int) -> None:
    if outputs.shape != (*target.shape, width):
        raise InputError(f"outputs: expected shape {(*target.shape, width)}, got {tuple(outputs.shape)}.")
    if not own.numel():
        return
    low, high = int(own.min()), int(own.max())
    if low < 0 or high >= classes:
        raise InputError(f"target: expected class positions from 0 to {classes - 1}, got {low if low < 0 else high}.")
