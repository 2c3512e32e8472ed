"""The structure in the gradient of an objective before anything is learned, measured on the objective itself.

At outputs of zero, where training begins, one gradient step is taken for a sample of each class. Its effect on the
log-probabilities of the classes is compared with that of plain cross entropy at the same probabilities.
"""

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin._checks import InputError
from labelkin.objectives import Objective
from labelkin.structure import Taxonomy

PROBED = 256  # maximum number of classes measured; more classes are sampled evenly
ONE_HOT = 1e-6  # a target that gives away no more than this is one-hot up to rounding


class TargetRows(NamedTuple):
    """The targets of an objective that is cross entropy to a fixed row for each class.

    Example:
        >>> from labelkin.analysis import TargetRows
        >>> TargetRows(moved=0.1, tilt=0.0, one_hot=0.0).moved
        0.1
    """

    moved: float  # the share given to other classes, averaged over classes: 0 (one-hot) to 1
    tilt: float  # its distance from equal shares, averaged over classes with a share: 0 (uniform) to 1
    one_hot: float  # the share of the classes whose row is one-hot


class GradientStructure(NamedTuple):
    """How the first gradient step of an objective treats the wrong classes, compared with cross entropy.

    Example:
        >>> from labelkin import OneHot
        >>> from labelkin.analysis._gradient_structure import measure_gradient
        >>> round(measure_gradient(OneHot(classes=5)).kin_share, 6)
        0.0
    """

    kin_share: float  # the part of the step that distinguishes between wrong classes: 0 (cross entropy) to about 1
    weakest_level: float | None  # force away from the classes of the weakest tree level, over that of the strongest
    rows: TargetRows | None  # None if the objective is not cross entropy to fixed rows


def measure_gradient(objective: Objective) -> GradientStructure:
    """Measure the structure in the gradient of an objective.

    Args:
        objective: An objective with probabilities and without state for individual samples. It is not changed, and its
            class weights are ignored.

    Returns:
        The share of the step that distinguishes between wrong classes, the weakest level of its tree, and its target rows.

    Example:
        >>> from labelkin import Hierarchical, Taxonomy
        >>> from labelkin.analysis._gradient_structure import measure_gradient
        >>> tree = Taxonomy.from_groups({"pet": ["cat", "dog"], "thing": ["car", "bus"]})
        >>> measure_gradient(Hierarchical(taxonomy=tree)).kin_share > 0.01
        True
    """
    if not isinstance(objective, Objective):
        raise InputError(f"objective: expected a labelkin objective, got {type(objective).__name__}.")
    name = type(objective).__name__
    if not objective.has_probabilities or "index" in objective.needs:
        why = "defines no probabilities" if not objective.has_probabilities else "depends on each sample's history"
        raise InputError(f"objective: {name} {why}, so its step cannot be compared with cross entropy's.")
    own = copy.deepcopy(objective).cpu().double().eval()
    own.class_weight, own.reduction = None, "mean"
    classes = own.num_classes
    target = torch.linspace(0, classes - 1, min(classes, PROBED)).round().long()
    step, log_probs = _step(own, torch.zeros(len(target), own.width, dtype=torch.float64), target)
    plain = _plain_step(log_probs.exp(), target)
    tree = getattr(own, "taxonomy", None)
    level = None if tree is None else _weakest_level(step, target, tree)
    return GradientStructure(
        _kin_share(step, plain, target), level, None if tree is not None else _target_rows(own, target)
    )


def _heads(objective: Objective, values: Tensor) -> list[Tensor]:
    """Return the outputs of each head, all at these values, with gradients enabled."""
    count = 1 if objective.outputs_type is None else len(objective.outputs_type._fields)  # type: ignore[attr-defined]
    return [values.clone().requires_grad_() for _ in range(count)]


def _outputs(objective: Objective, heads: list[Tensor]) -> Any:
    return heads[0] if objective.outputs_type is None else objective.outputs_type(*heads)


def _gradient(objective: Objective, heads: list[Tensor], target: Tensor) -> tuple[Tensor, ...]:
    """Return the gradient of each sample's own loss, by each head."""
    loss = objective.loss(_outputs(objective, heads), target) * len(target)
    return torch.autograd.grad(loss, heads, allow_unused=True, materialize_grads=True)


def _step(objective: Objective, values: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the change of the log-probabilities per unit of a gradient step on the outputs, (n, K), and the log-probabilities.

    The derivative along the step is that of `weights -> sum(step * gradient of sum(weights * log_probs))`.
    """
    heads = _heads(objective, values)
    downhill = [-part for part in _gradient(objective, heads, target)]
    log_probs = objective.log_probs(_outputs(objective, heads))
    weights = torch.zeros_like(log_probs, requires_grad=True)
    back = torch.autograd.grad(log_probs, heads, weights, create_graph=True, allow_unused=True, materialize_grads=True)
    along = sum(((part * way).sum() for part, way in zip(back, downhill, strict=True)), torch.zeros(()))
    try:
        (change,) = torch.autograd.grad(along, weights)
    except NotImplementedError as error:  # distances to labels are not logits
        name = type(objective).__name__
        raise InputError(
            f"objective: {name} has no logits, so its step cannot be compared with cross entropy's."
        ) from error
    return change, log_probs.detach()


def _plain_step(probs: Tensor, target: Tensor) -> Tensor:
    """Return the same for cross entropy on logits of these probabilities."""
    step = F.one_hot(target, probs.shape[-1]).double() - probs
    return step - (probs * step).sum(-1, keepdim=True)


def _kin_share(step: Tensor, plain: Tensor, target: Tensor) -> float:
    """Return the mean over the classes of `sum |r_j| / sum |step_j|`, where r is the difference between wrong classes.

    That is their deviation from their own mean, less that of plain cross entropy at the scale at which both raise the true
    class equally over the mean of the wrong ones.
    """
    raised, apart = _split(step, target)
    plain_raised, plain_apart = _split(plain, target)
    own = apart - raised / plain_raised * plain_apart
    size = step.abs().sum(-1)
    return float((own.abs().sum(-1) / torch.where(size > 0, size, 1.0)).mean())


def _split(step: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return how far the true class rises over the mean of the others, (n, 1), and their deviations from that mean, (n, K)."""
    true = target.unsqueeze(-1)
    mean = (step.sum(-1, keepdim=True) - step.gather(-1, true)) / (step.shape[-1] - 1)
    return step.gather(-1, true) - mean, (step - mean).scatter(-1, true, 0.0)


def _weakest_level(step: Tensor, target: Tensor, tree: Taxonomy) -> float:
    """Return the median of (least / most) of the mean force between the true class and the classes at one distance.

    It is over the classes that have others at several distances; 1 if there are none.
    """
    found = tree.distance("height", target.numpy()[:, None], range(step.shape[-1]))
    distance = torch.from_numpy(found)
    rise = step.gather(-1, target.unsqueeze(-1)) - step
    levels = [distance == height for height in np.unique(found) if height]
    # NaN if a class has no others at a distance
    means = torch.stack([((rise * level).sum(-1) / level.sum(-1)).abs() for level in levels])
    several = means.isfinite().sum(0) > 1
    most, least = means.nan_to_num(-torch.inf).amax(0)[several], means.nan_to_num(torch.inf).amin(0)[several]
    return float(torch.where(most > 0, least / most, 0.0).median()) if len(most) else 1.0


def _target_rows(objective: Objective, target: Tensor) -> TargetRows | None:
    """Return the rows T of an objective whose gradient is `softmax(outputs) - T[y]` everywhere; None for others."""
    if objective.outputs_type is not None or objective.width != objective.num_classes:
        return None
    draw = torch.Generator().manual_seed(0)
    points = [torch.zeros(len(target), objective.width), torch.randn(len(target), objective.width, generator=draw)]
    logits = [point.double() for point in points]
    if not torch.allclose(objective.log_probs(logits[1]), F.log_softmax(logits[1], -1)):
        return None
    rows, elsewhere = (
        point.softmax(-1) - _gradient(objective, _heads(objective, point), target)[0] for point in logits
    )
    if not torch.allclose(rows, elsewhere, atol=ONE_HOT / 10):
        return None
    true = target.unsqueeze(-1)
    others = rows.scatter(-1, true, 0.0)
    moved = others.sum(-1)
    given = others[moved > ONE_HOT] / moved[moved > ONE_HOT].unsqueeze(-1)
    equal = torch.full_like(rows, 1 / (rows.shape[-1] - 1)).scatter(-1, true, 0.0)[moved > ONE_HOT]
    tilt = float((given - equal).abs().sum(-1).mean()) / 2 if len(given) else 0.0
    return TargetRows(float(moved.mean()), tilt, float((moved <= ONE_HOT).double().mean()))
