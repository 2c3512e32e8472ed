"""Class similarity from data: class means after linear discriminant analysis."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from labelkin._arrays import check_class_positions
from labelkin._checks import InputError, check_choice, check_count, counted, listed
from labelkin._extras import require
from labelkin.relations._matrices import cosines, count_classes, kin_rows, read_numbers

RANK = 1e-4  # singular values below this are rounding errors; scikit-learn's threshold
AT_THE_CENTER = 1e-9  # relative norm up to which a mean counts as zero


def lda(
    inputs: Any,
    targets: Any,
    *,
    classes: int | Sequence[str] | None = None,
    components: int | None = None,
    weight: Any = None,
    similarity: Literal["logistic"] | Callable[[Tensor], Tensor] = "logistic",
) -> Tensor:
    """Compute a relation from the class means of the data after linear discriminant analysis (004 Eq. 12).

    The similarity of two classes is `s(d)` with `d = 1 - cos` of their means on the discriminant axes; each row is divided by
    its sum, which breaks the symmetry that the paper claims. The data are centered first. The paper does not mention centering;
    without it, the cosines would measure the mean image.

    The logistic `s` ranges only from .12 to .5, so the relation is close to uniform: compare it with plain label smoothing. A
    class whose mean is the mean of the data has no direction and counts as `d = 1` from all others.

    Args:
        inputs: (samples, ...) numbers, which are flattened.
        targets: (samples,) class positions.
        classes: The number of classes, or their names. None means the largest position plus one.
        components: The number of axes, at most K - 1 and at most the number of features. None means all.
        weight: (samples,) positive sample weights. A sample of weight 2 counts as two; only ratios matter.
        similarity: `"logistic"`, which is `s = 1 / (1 + e^d)`, or a function of a tensor of distances that decreases over
            [0, 2] and is not negative.

    Returns:
        (K, K) float64 relation. With `"logistic"` no class is isolated.

    Example:
        >>> from labelkin import relations
        >>> inputs = [[0.0, 0.1], [0.1, 0.0], [1.0, 0.1], [0.9, 0.2], [0.0, 5.0], [0.2, 5.1]]
        >>> relation = relations.lda(inputs, [0, 0, 1, 1, 2, 2])
        >>> bool(relation[0, 1] > relation[0, 2])
        True
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
        projected = torch.as_tensor(analysis.transform(features.numpy()))  # this subtracts the mean of the data
        means = torch.stack([projected[labels == k].mean(0) for k in range(count)])
    else:
        means = _weighted_means(features, labels, _checked_weight(weight, len(labels)), count)[:, : components or most]
    longest = means.norm(dim=-1).max().item()  # in standard deviations within classes
    if longest <= AT_THE_CENTER:
        raise InputError("inputs: all class means are equal, so no axis separates the classes.")
    return kin_rows(measure(1 - cosines(means, zero_below=AT_THE_CENTER * longest)))


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
        raise InputError(f"weight: expected one weight above 0 for each of {counted(samples, 'sample')}.")
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
            "similarity: expected a function that maps a tensor of distances to similarities that decrease over [0, 2] "
            "and are not negative."
        )
    return similarity
