"""Probabilities for samples whose classes occur in other shares than in the samples that the model was calibrated on."""

from typing import Any

import torch
from torch import Tensor

from labelkin._checks import InputError, check_number, counted
from labelkin.decide._validation import check_probs

MOST_STEPS, SMALLEST_STEP = 10_000, 1e-9  # of the expectation maximization


def adjust_shares(probs: Tensor, shares: Tensor, trained: Tensor) -> Tensor:
    """Return probabilities for new class shares.

    If the classes of new samples occur in other shares than before, but the samples of each class are as before (label shift),
    Bayes' rule gives the new probabilities: `p_k shares_k / trained_k`, divided by their sum (Saerens et al., Adjusting the
    outputs of a classifier to new a priori probabilities, 2002). The decisions by them cost less than those by `probs`.

    The shares that `probs` stand for are best measured by the mean of calibrated probabilities over held-out samples,
    `probs.mean(0)`, which has no zeros and varies less than counts (Alexandari et al., 2020).

    Args:
        probs: (n, K) calibrated probabilities of the classes.
        shares: (K,) shares of the classes in the new samples, or their counts. A class with share 0 does not occur.
        trained: (K,) shares of the classes that `probs` stand for, or their counts; all larger than 0.

    Returns:
        (n, K) probabilities in float64. A sample without a probable class that occurs gets even ones over
        the classes that occur.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> probs = torch.tensor([[0.6, 0.4]])  # of a model that was trained on as many sick as healthy people
        >>> decide.adjust_shares(probs, torch.tensor([0.1, 0.9]), torch.tensor([0.5, 0.5])).round(decimals=3)
        tensor([[0.1430, 0.8570]], dtype=torch.float64)
    """
    check_probs("probs", probs)
    return reweighted(probs, share_ratios(shares, trained, probs.shape[-1]))


def estimate_shares(probs: Tensor, trained: Tensor, *, prior: float = 10.0) -> Tensor:
    """Estimate the class shares of new samples, without labels, from the probabilities of a model.

    These are the shares of greatest posterior probability, found by expectation maximization (Saerens et al., 2002): the mean
    of the probabilities that `adjust_shares` gives for them, together with `prior` samples per class in the former shares.
    Without this prior, classes that the model confuses get shares that are far off if there are many classes. If the shares did
    not change, decisions with estimated shares cost a little more than without; use `adjust_shares` with known ones if you can.

    Args:
        probs: (n, K) calibrated probabilities of the classes in the new samples.
        trained: (K,) shares of the classes that `probs` stand for, or their counts; see `adjust_shares`.
        prior: The number of samples per class that the former shares count as; 0 for the shares of greatest likelihood.

    Returns:
        (K,) shares in float64.

    Example:
        >>> import torch
        >>> from labelkin import decide
        >>> probs = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).repeat_interleave(torch.tensor([60, 40]), dim=0)
        >>> decide.estimate_shares(probs, torch.tensor([0.5, 0.5]), prior=0).round(decimals=3)
        tensor([0.6250, 0.3750], dtype=torch.float64)
    """
    check_probs("probs", probs)
    check_number("prior", prior, low=0)
    classes = probs.shape[-1]
    former = 1 / share_ratios(torch.ones(classes), trained, classes) / classes
    shares, added = former, prior * classes * former
    for _ in range(MOST_STEPS):
        counts = reweighted(probs.detach().cpu(), shares / former).sum(0) + added
        new = counts / counts.sum()
        if float((new - shares).abs().sum()) < SMALLEST_STEP:
            return new
        shares = new
    return shares


def share_ratios(shares: Any, trained: Any, classes: int) -> Tensor:
    """Return the factors (K,) of the probabilities of the classes, new share / old share, in float64."""
    new, old = checked_shares("shares", shares, classes), checked_shares("trained", trained, classes)
    if not bool((old > 0).all()):
        raise InputError(
            f"trained: expected shares above 0, got {float(old.min()):g} for the class at position {int(old.argmin())}; "
            "its probabilities say nothing about how often it occurs."
        )
    return new / old


def checked_shares(argument: str, shares: Any, classes: int) -> Tensor:
    """Return shares or counts (K,) as shares in float64, which sum to 1."""
    try:
        found = torch.as_tensor(shares).detach().cpu().double()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{argument}: expected {counted(classes, 'number')}, one for each class, got {shares!r:.60}."
        ) from None
    if found.shape != (classes,):
        raise InputError(f"{argument}: expected shape ({classes},), a number for each class, got {tuple(found.shape)}.")
    if not bool(found.isfinite().all()) or bool((found < 0).any()):
        raise InputError(f"{argument}: expected finite numbers of at least 0, got a minimum of {float(found.min()):g}.")
    if not bool(found.any()):
        raise InputError(f"{argument}: expected at least one share above 0, got only zeros.")
    return found / found.sum()


def reweighted(probs: Tensor, ratios: Tensor) -> Tensor:
    """Return probabilities (n, K), multiplied by these factors of the classes and divided by their sums, in float64."""
    ratios = ratios.to(probs.device)
    found = probs.double() * ratios
    total = found.sum(-1, keepdim=True)
    occurs = (ratios > 0).double()
    return torch.where(total > 0, found / total, occurs / occurs.sum())
