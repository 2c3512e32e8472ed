"""Adaptive labels (001 Eq. 1-3): class means as labels, distances as logits, and the repelling term."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError
from labelkin.functional.collectives import sum_over_processes

FLOOR = 1e-6  # of a distance: the square root has no gradient at 0


class ClassSums(NamedTuple):
    """Sums (K, D) and weights (K,) of the samples of every class, over all processes."""

    total: Tensor
    weight: Tensor

    @property
    def present(self) -> Tensor:
        return self.weight > 0

    def means(self) -> Tensor:
        """Eq. 1; zero for a class without samples."""
        return self.total / torch.where(self.present, self.weight, torch.ones_like(self.weight)).unsqueeze(-1)


def class_sums(z: Tensor, target: Tensor, weight: Tensor, classes: int) -> ClassSums:
    """`z` (n, D) summed by class with sample weights; gradients reach the samples of every process."""
    total = z.new_zeros(classes, z.shape[-1]).index_add(0, target, z * weight.unsqueeze(-1))
    counts = weight.new_zeros(classes).index_add(0, target, weight)
    return ClassSums(sum_over_processes(total), sum_over_processes(counts.detach()))


def sum_by_class(batches: Iterable[tuple[Tensor, ...]], classes: int, width: int) -> ClassSums:
    """Class sums in float64 over a data set, in batches (outputs (..., D), target (...,)), or with weights as a third."""
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
    """`||z - label||_2` (..., K) of Eq. 2, exact (no expansion of the square), floored where it has no gradient."""
    flat = torch.cdist(z.reshape(-1, z.shape[-1]), labels, compute_mode="donot_use_mm_for_euclid_dist")
    return flat.clamp_min(FLOOR).reshape(*z.shape[:-1], len(labels))


def distance_to(z: Tensor, labels: Tensor) -> Tensor:
    """(n,) the distance of each sample to a label of its own, floored as above."""
    return (z - labels).square().sum(-1).clamp_min(FLOOR**2).sqrt()


def leave_one_out_means(z: Tensor, target: Tensor, weight: Tensor, sums: ClassSums) -> tuple[Tensor, Tensor]:
    """(n, D) the mean of the *others* of each sample's class, and (n,) whether there are none, where the mean is 0.

    A class present once has its own z as its label, so its distance is 0 whatever the network does; this takes that away.
    """
    others = sums.weight[target] - weight
    alone = others <= 1e-6 * sums.weight[target]
    total = sums.total[target] - weight.unsqueeze(-1) * z
    mean = total / torch.where(alone, torch.ones_like(others), others).unsqueeze(-1)
    return mean.masked_fill(alone.unsqueeze(-1), 0), alone


def repel(z: Tensor, target: Tensor, weight: Tensor, classes: int) -> Tensor:
    """Eq. 3 as a mean: cosine similarity over all pairs of samples, pairs of one class counted as zero.

    Needs only class sums: the sum over pairs of different classes is `|sum u|^2 - sum_c |sum_c u|^2`.
    """
    sums = class_sums(F.normalize(z, dim=-1), target, weight, classes)
    across = sums.total.sum(0).square().sum() - sums.total.square().sum()
    pairs = sums.weight.sum().square()
    return across / torch.where(pairs > 0, pairs, torch.ones_like(pairs))


def _check_batch(outputs: Tensor, target: Tensor, own: Tensor, classes: int, width: int) -> None:
    if outputs.shape != (*target.shape, width):
        raise InputError(f"outputs: expected shape {(*target.shape, width)}, got {tuple(outputs.shape)}.")
    if not own.numel():
        return
    low, high = int(own.min()), int(own.max())
    if low < 0 or high >= classes:
        raise InputError(f"target: expected class positions from 0 to {classes - 1}, got {low if low < 0 else high}.")
