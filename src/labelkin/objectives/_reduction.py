"""Reduction of sample losses to the loss of a batch: sample weights, class weights and the reduction."""

import torch
from torch import Tensor, nn

from labelkin.functional import global_mean, is_soft, sum_over_processes, world_size
from labelkin.objectives._batch import Batch, Loss


class Reducer(nn.Module):
    """The part of `Objective` that reduces losses; see there for the arguments."""

    class_weight: Tensor | None
    class_weight_divisor: str
    reduction: str

    def _reduce(self, losses: Tensor, batch: Batch, *, class_weighted: bool = False) -> Tensor:
        """Reduce losses (n,) with sample and class weights; `class_weighted` losses have their class weights already."""
        weight = batch.weight.to(losses.dtype)
        losses = torch.where(weight > 0, losses, torch.zeros_like(losses))  # 0 * NaN is NaN
        if self.class_weight is not None and not class_weighted:
            losses = losses * self._class_factor(batch, losses.dtype)
        if self.reduction == "none":
            return weight * losses
        if self.reduction == "sum":
            return (weight * losses).sum()
        if self.class_weight is None or self.class_weight_divisor == "samples":
            return global_mean(losses, weight)
        return (weight * losses).sum() / self._divisor(self._counted(batch, losses.dtype).sum())

    def _class_factor(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        """Return (n,) class weights of the samples; class probabilities are multiplied by theirs beforehand."""
        if self.class_weight is None or is_soft(batch.target):
            return torch.ones_like(batch.weight, dtype=dtype)
        return self.class_weight[batch.target].to(dtype)

    def _counted(self, batch: Batch, dtype: torch.dtype) -> Tensor:
        """Return the contribution (n,) of each sample to the divisor of the mean."""
        weight = batch.weight.to(dtype)
        if self.class_weight is None or self.class_weight_divisor == "samples":
            return weight
        return weight * self._class_factor(batch, dtype)

    def _divisor(self, counted: Tensor) -> Tensor:
        """Return the divisor for a sum over this process's samples that gives its share of the mean over all processes."""
        total = sum_over_processes(counted.detach())
        return torch.where(total > 0, total, torch.ones_like(total)) / world_size()

    def _batch_term(self, term: Tensor, batch: Batch) -> Tensor:
        """Scale a term of the whole batch so that its weight relative to the sample losses is the same under any reduction."""
        if self.reduction != "sum":
            return term
        return term * sum_over_processes(self._counted(batch, term.dtype).sum().detach()) / world_size()

    def _only_term(self, name: str, losses: Tensor, batch: Batch) -> Loss:
        """Return the loss of an objective with one term, from losses (n,)."""
        total = self._reduce(losses, batch)
        return Loss(total, {name: total})
