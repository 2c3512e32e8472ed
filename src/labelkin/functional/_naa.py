"""Neurodynamical agglomerative analysis (000 Sec. 3.2): how far apart a network holds the classes.

Activations are (samples, ...), flattened to F features; everything is computed in float64. A class is its correlation
matrix `R = Z Z^T / m` over its m samples (Eq. 5), two classes are as near as the generalised cosine of theirs (Eq. 6).
Similarities and distances lie in [0, 1]. A class whose activations are all zero has no direction: it has similarity 1
(distance 0) with itself and 0 (distance 1) with every other class.
"""

from typing import Literal

import torch
from torch import Tensor

from labelkin._checks import InputError, check_choice, check_count, listed

Form = Literal["auto", "correlation", "gram"]
FORMS: tuple[Form, ...] = ("auto", "correlation", "gram")
CORRELATION_ENTRIES = 2**28  # K F F numbers: 2 GiB, beyond which "auto" goes by samples
GRAM_ENTRIES = 2**24  # products held at once


def class_correlations(activations: Tensor, targets: Tensor, classes: int) -> Tensor:
    """(K, F, F): `R = Z Z^T / m` of each class (000 Eq. 5), not centred."""
    by_class = _samples_by_class(activations, targets, classes)
    return torch.stack([own.T @ own / len(own) for own in by_class])


def naa_similarity(correlations: Tensor) -> Tensor:
    """(K, F, F) to (K, K): `Tr(Ri Rj) / sqrt(Tr(Ri Ri) Tr(Rj Rj))` (000 Eq. 6)."""
    if correlations.ndim != 3 or correlations.shape[1] != correlations.shape[2]:
        raise InputError(f"correlations: expected (K, F, F), got shape {tuple(correlations.shape)}.")
    return _cosines(correlations.double().flatten(1)).clamp(min=0.0)


def naa_similarity_gram(activations: Tensor, targets: Tensor, classes: int) -> Tensor:
    """(K, K): the same from `Tr(Ri Rj) = |Zi^T Zj|_F^2 / (mi mj)`, with nothing of F x F."""
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
    return _normalised(products + products.triu(1).T)  # the counts cancel


def naa_distance(activations: Tensor, targets: Tensor, classes: int, form: Form = "auto") -> Tensor:
    """(K, K) class distances `1 - cos2(Ri, Rj)` (000 Eq. 7), zero diagonal, symmetric: ready for average linkage.

    `form` is how they are computed, to the same result: `"correlation"` holds K matrices of F x F, `"gram"` compares
    all pairs of samples; `"auto"` takes the one with fewer multiplications, unless the matrices would exceed 2 GiB.
    """
    check_choice("form", form, FORMS)
    if form == "auto":
        form = _cheaper(len(activations), activations[:1].numel(), classes)
    if form == "gram":
        return 1 - naa_similarity_gram(activations, targets, classes)
    return 1 - naa_similarity(class_correlations(activations, targets, classes))


def target_distance(targets: Tensor) -> Tensor:
    """(K, K) from target vectors (K, D): `1 - cos^2(T_i, T_j)`, the geometry asked for (000 Fig. 3, bottom row).

    In [0, 1], zero diagonal; a vector that is zero is at distance 1 from every other.
    """
    if targets.ndim != 2:
        raise InputError(f"targets: expected a matrix with a target vector a class, got shape {tuple(targets.shape)}.")
    return 1 - _cosines(targets.double()).square()


def _cheaper(samples: int, features: int, classes: int) -> Form:
    by_correlation = (samples + classes**2) * features**2
    by_gram = samples**2 * features // 2
    fits = classes * features**2 <= CORRELATION_ENTRIES
    return "correlation" if fits and by_correlation <= by_gram else "gram"


def _cosines(vectors: Tensor) -> Tensor:
    scaled = vectors / _scale(vectors.abs().amax(-1, keepdim=True))
    return _normalised(scaled @ scaled.T)


def _scale(largest: Tensor) -> Tensor:
    """What brings the largest entry to 1, so that no square under- or overflows; zero stays zero."""
    return torch.where(largest > 0, largest, 1.0)


def _normalised(products: Tensor) -> Tensor:
    """Inner products to cosines: exactly symmetric, 1 on the diagonal, 0 beside a vector that is zero."""
    norms = products.diagonal().sqrt()
    sizes = norms[:, None] * norms
    cosines = torch.where(sizes > 0, (products + products.T) / 2 / sizes, 0.0)
    return cosines.clamp(-1.0, 1.0).fill_diagonal_(1.0)


def _samples_by_class(activations: Tensor, targets: Tensor, classes: int) -> list[Tensor]:
    """For each class its samples (m, F) in float64; bad input is refused here."""
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
