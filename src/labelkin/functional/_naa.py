"""Neurodynamical agglomerative analysis (000 Sec. 3.2): distances between classes from the activations of a network.

Activations are (samples, ...), flattened to F features, and computed in float64. A class is represented by its correlation
matrix `R = Z Z^T / m` over its m samples (Eq. 5); the similarity of two classes is the generalized cosine of their matrices
(Eq. 6). Similarities and distances are in [0, 1]. A class whose activations are all zero has no direction: it has similarity
1 (distance 0) with itself and 0 (distance 1) with all others.
"""

from typing import Literal

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, listed

Form = Literal["auto", "correlation", "gram"]
FORMS: tuple[Form, ...] = ("auto", "correlation", "gram")
CORRELATION_ENTRIES = 2**28  # K F F numbers, 2 GiB; beyond it "auto" uses "gram"
GRAM_ENTRIES = 2**24  # products in memory at once


def class_correlations(activations: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Compute the correlation matrix `R = Z Z^T / m` of each class (000 Eq. 5), (K, F, F), without centering."""
    by_class = _samples_by_class(activations, targets, classes)
    return torch.stack([own.T @ own / len(own) for own in by_class])


def naa_similarity(correlations: Tensor) -> Tensor:
    """Compute similarities `Tr(Ri Rj) / sqrt(Tr(Ri Ri) Tr(Rj Rj))` (000 Eq. 6), (K, F, F) to (K, K)."""
    if correlations.ndim != 3 or correlations.shape[1] != correlations.shape[2]:
        raise InputError(f"correlations: expected (K, F, F), got shape {tuple(correlations.shape)}.")
    return _cosines(correlations.double().flatten(1)).clamp(min=0.0)


def naa_similarity_gram(activations: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Compute the same similarities (K, K) from `Tr(Ri Rj) = |Zi^T Zj|_F^2 / (mi mj)`, without F x F matrices."""
    by_class = [own / _scale(own.abs().amax()) for own in _samples_by_class(activations, targets, classes)]
    counts = torch.tensor([len(own) for own in by_class], device=activations.device)
    samples, owners = torch.cat(by_class), torch.repeat_interleave(counts)
    products = samples.new_zeros(classes, classes)
    start = 0
    for k, own in enumerate(by_class):
        block = max(1, GRAM_ENTRIES // len(own))
        for others, their in zip(torch.split(samples[start:], block), torch.split(owners[start:], block), strict=True):
            products[k].index_add_(0, their, (others @ own.T).square().sum(-1))
        start += len(own)
    return _normalized(products + products.triu(1).T)  # the counts cancel


def naa_distance(activations: Tensor, targets: Tensor, classes: int, form: Form = "auto") -> Tensor:
    """Compute class distances `1 - cos2(Ri, Rj)` (000 Eq. 7), ready for average linkage.

    Args:
        activations: (samples, ...) activations of a layer.
        targets: (samples,) class positions; each class needs at least one sample.
        classes: The number of classes.
        form: How to compute them, with the same result. `"correlation"` stores K matrices of F x F, `"gram"` compares all
            pairs of samples. `"auto"` uses the form with fewer multiplications, unless the matrices would exceed 2 GiB.

    Returns:
        (K, K) symmetric float64 distances in [0, 1] with a zero diagonal.

    Example:
        >>> import torch
        >>> from labelkin.functional import naa_distance
        >>> naa_distance(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]), 2)
        tensor([[0., 1.],
                [1., 0.]], dtype=torch.float64)
    """
    check_choice("form", form, FORMS)
    if form == "auto":
        form = _cheaper(len(activations), activations[:1].numel(), classes)
    if form == "gram":
        return 1 - naa_similarity_gram(activations, targets, classes)
    return 1 - naa_similarity(class_correlations(activations, targets, classes))


def target_distance(targets: Tensor) -> Tensor:
    """Compute the distances `1 - cos^2(T_i, T_j)` of target vectors (K, D), (K, K) (000 Fig. 3, bottom row).

    They are in [0, 1] with a zero diagonal; a zero vector is at distance 1 from all others.
    """
    if targets.ndim != 2:
        raise InputError(
            f"targets: expected a matrix with one target vector per class, got shape {tuple(targets.shape)}."
        )
    return 1 - _cosines(targets.double()).square()


def _cheaper(samples: int, features: int, classes: int) -> Form:
    by_correlation = (samples + classes**2) * features**2
    by_gram = samples**2 * features // 2
    fits = classes * features**2 <= CORRELATION_ENTRIES
    return "correlation" if fits and by_correlation <= by_gram else "gram"


def _cosines(vectors: Tensor) -> Tensor:
    scaled = vectors / _scale(vectors.abs().amax(-1, keepdim=True))
    return _normalized(scaled @ scaled.T)


def _scale(largest: Tensor) -> Tensor:
    """Return the factor that scales the largest entry to 1, so that no square overflows or underflows; 1 for zero."""
    return torch.where(largest > 0, largest, 1.0)


def _normalized(products: Tensor) -> Tensor:
    """Return cosines from inner products: exactly symmetric, 1 on the diagonal, 0 for a zero vector."""
    norms = products.diagonal().sqrt()
    sizes = norms[:, None] * norms
    cosines = torch.where(sizes > 0, (products + products.T) / 2 / sizes, 0.0)
    return cosines.clamp(-1.0, 1.0).fill_diagonal_(1.0)


def _samples_by_class(activations: Tensor, targets: Tensor, classes: int) -> list[Tensor]:
    """Check the arguments and return the samples (m, F) of each class in float64."""
    check_count("classes", classes)
    if activations.ndim < 2 or targets.shape != activations.shape[:1]:
        raise InputError(
            "activations, targets: expected (samples, ...) and a class for each sample, "
            f"got shapes {tuple(activations.shape)} and {tuple(targets.shape)}."
        )
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise InputError(f"targets: expected class positions as whole numbers, got {targets.dtype}.")
    outside = targets[(targets < 0) | (targets >= classes)]
    if len(outside):
        raise InputError(f"targets: expected class positions from 0 to {classes - 1}, got {outside[0].item()}.")
    if not torch.isfinite(activations).all():
        raise InputError("activations: expected finite numbers, got NaN or infinity.")
    counts = targets.long().bincount(minlength=classes)
    missing = (counts == 0).nonzero().flatten().tolist()
    if missing:
        raise InputError(f"targets: no sample of class {listed(missing)}; every class needs at least one.")
    order = targets.argsort(stable=True)
    return list(torch.split(activations[order].flatten(1).double(), counts.tolist()))
