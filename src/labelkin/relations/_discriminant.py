"""Kin as the data show it: how the class means lie after linear discriminant analysis."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import InputError, check_choice, check_count, listed
from labelkin._extras import require
from labelkin.relations._matrices import cosines, count_classes, kin_rows, read_numbers

RANK = 1e-4  # singular values below this are rounding; scikit-learn's own bound
AT_THE_CENTRE = 1e-9  # what rounding leaves of a mean that is zero


def lda(
    inputs: Any,
    targets: Any,
    *,
    classes: int | Sequence[str] | None = None,
    components: int | None = None,
    weight: Any = None,
    similarity: Literal["logistic"] | Callable[[Tensor], Tensor] = "logistic",
) -> Tensor:
    """`s(d)` for every other class with `d = 1 - cos` of the class means on the discriminant axes (004 Eq. 12).

    `inputs` (samples, ...) are flattened and centred, then projected on the first `components` axes (all unless given:
    K - 1, or the number of features). The paper does not speak of centring; without it, the cosines measure the mean
    image. `targets` are class positions; `classes` (number or names) says how many there are. `similarity` is
    `"logistic"`, `s = 1 / (1 + e^d)`, or a function of a tensor of distances that falls over [0, 2], not below 0.
    `weight` (samples,) holds sample weights above 0: a sample of weight 2 counts as two, and only ratios matter.

    Returns (K, K) float64, entries in [0, 1], zero diagonal. Dividing rows by their sums breaks the symmetry that the
    paper claims. The logistic `s` spans only .12 to .5, so that the relation is never far from uniform: compare it with
    plain label smoothing. No class is isolated under it (under another `similarity`, one with nothing above 0 is). A
    class whose mean is the mean of the data has no direction and counts as `d = 1` from all others.
    """
    features, labels, count = _checked_samples(inputs, targets, classes)
    most = min(count - 1, features.shape[1])
    if components is not None:
        check_count("components", components)
        if components > most:
            raise InputError(f"components: expected at most {most} (classes - 1, or the features), got {components}.")
    measure = _checked_similarity(similarity)
    if weight is None:
        sklearn = require("sklearn.discriminant_analysis", extra="sklearn", use="relations.lda")
        analysis = sklearn.LinearDiscriminantAnalysis(n_components=components or most)
        analysis.fit(features.numpy(), labels.numpy())
        projected = torch.as_tensor(analysis.transform(features.numpy()))  # which subtracts the mean of the data first
        means = torch.stack([projected[labels == k].mean(0) for k in range(count)])
    else:
        means = _weighted_means(features, labels, _checked_weight(weight, len(labels)), count)[:, : components or most]
    longest = means.norm(dim=-1).max().item()  # in standard deviations within classes
    if longest <= AT_THE_CENTRE:
        raise InputError("inputs: the means of the classes coincide, so that no axis tells them apart.")
    return kin_rows(measure(1 - cosines(means, zero_below=AT_THE_CENTRE * longest)))


def _checked_samples(inputs: Any, targets: Any, classes: int | Sequence[str] | None) -> tuple[Tensor, Tensor, int]:
    features, labels = read_numbers("inputs", inputs).cpu(), read_numbers("targets", targets).cpu()
    if labels.ndim != 1 or labels.is_floating_point() or features.ndim < 2 or len(features) != len(labels):
        raise InputError(
            "inputs, targets: expected (samples, ...) numbers and a class position for each sample, "
            f"got shapes {tuple(features.shape)} and {tuple(labels.shape)} of {labels.dtype}."
        )
    if not len(labels):
        raise InputError("inputs: expected samples of every class, got none.")
    count = count_classes(int(labels.max()) + 1 if classes is None else classes)
    check_class_positions("targets", labels, count)
    missing = (labels.long().bincount(minlength=count) == 0).nonzero().flatten().tolist()
    if missing:
        raise InputError(f"targets: no sample of class {listed(missing)}; every class needs at least one.")
    features, labels = features.flatten(1).double(), labels.long()
    firsts = torch.stack([features[labels == k][0] for k in range(count)])
    if torch.equal(features, firsts[labels]):
        raise InputError(
            "inputs: expected samples that vary within their class, got the same sample for all of a class."
        )
    return features, labels, count


def _checked_weight(weight: Any, samples: int) -> Tensor:
    """Return sample weights (samples,) in float64, scaled to a mean of 1."""
    weights = read_numbers("weight", weight).cpu().double()
    if weights.shape != (samples,) or not bool((weights > 0).all()):
        raise InputError(f"weight: expected a number above 0 for each of {samples} samples.")
    return weights / weights.mean()


def _weighted_means(features: Tensor, labels: Tensor, weight: Tensor, count: int) -> Tensor:
    """Return the class means on the discriminant axes, (K, axes), of weighted samples.

    Follows scikit-learn's "svd" solver, which takes no weights: whiten the scatter within classes, then take the
    principal axes of the class means, most important first.
    """
    totals = torch.zeros(count, dtype=torch.float64).index_add(0, labels, weight)
    sums = torch.zeros(count, features.shape[1], dtype=torch.float64)
    means = sums.index_add(0, labels, weight.unsqueeze(-1) * features) / totals.unsqueeze(-1)
    centered = weight.sqrt().unsqueeze(-1) * (features - means[labels])
    deviation = (centered.square().sum(0) / weight.sum()).sqrt()
    deviation = torch.where(deviation > 0, deviation, 1.0)
    _, size, axes = torch.linalg.svd(centered / deviation / max(len(labels) - count, 1) ** 0.5, full_matrices=False)
    whitening = (axes[size > RANK] / deviation).T / size[size > RANK]
    between = (means - (totals / totals.sum()) @ means) @ whitening
    _, size, axes = torch.linalg.svd(totals.sqrt().unsqueeze(-1) * between, full_matrices=False)
    projected: Tensor = between @ axes[size > RANK * size.max()].T
    return projected


def _checked_similarity(similarity: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if isinstance(similarity, str):
        check_choice("similarity", similarity, ("logistic",))
        return lambda distance: torch.sigmoid(-distance)
    distances = torch.linspace(0, 2, 201, dtype=torch.float64)
    values = similarity(distances)
    falls = isinstance(values, Tensor) and values.shape == distances.shape and bool((values.diff() <= 0).all())
    if not falls or not values[0] > values[-1] or values[-1] < 0:
        raise InputError(
            "similarity: expected a function that maps a tensor of distances to similarities which fall over [0, 2] "
            "and are not negative."
        )
    return similarity
