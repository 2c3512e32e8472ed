"""Learned mixing on real digits: what becomes of the share given away (004 Eq. 10-11, and the prior that is ours).

A linear head on 8 x 8 digits, Adam at .02, 400 batches of 128, eps starting at .2; "collapsed" is below .01 or above .49.
"""

from functools import cache
from typing import Any

import pytest
import torch

from labelkin import MixedCrossEntropy, Objective
from support.real import build_on_digits, digits

every_mixing = pytest.mark.parametrize("mixing", ["shared", "class", "matrix"])


@cache
def trained(mixing: str, **options: Any) -> Objective:
    objective = build_on_digits("mixed-cross-entropy", mixing=mixing, learn=True, **options)
    features, target = digits()
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.02)
    draw = torch.Generator().manual_seed(0)
    for _ in range(400):
        rows = torch.randint(len(features), (128,), generator=draw)
        optimizer.zero_grad()
        objective.loss(objective(features[rows]), target[rows]).backward()
        optimizer.step()
    return objective


def accuracy(objective: Objective) -> float:
    features, target = digits()
    return float((objective.scores(objective(features)).argmax(-1) == target).float().mean())


def shares(objective: Objective) -> torch.Tensor:
    """(K,) what each class gives away, read off its targets."""
    return 1 - objective.label_vectors().diagonal()


@pytest.mark.long
@every_mixing
def test_without_a_prior_exact_mixing_collapses(mixing: str):
    objective = trained(mixing, prior=0.0)
    assert objective.collapsed()
    assert objective.mean_eps() < 0.01
    assert accuracy(objective) > 0.95


@pytest.mark.long
@every_mixing
@pytest.mark.parametrize("constraint", ["exact", "penalty"])
def test_the_defaults_hold_mixing_off_its_ends(mixing: str, constraint: str):
    objective = trained(mixing, constraint=constraint)
    assert not objective.collapsed(), f"mean eps {objective.mean_eps().item():.3f}"
    assert (shares(objective) > 0).all()
    assert (shares(objective) < 0.5).all()
    assert accuracy(objective) > 0.95


@pytest.mark.long
@every_mixing
def test_strong_penalties_hold_mixing_off_its_ends(mixing: str):
    """Eq. 11 as printed puts the diagonal at (1 + (K - 1) c) / K, so a matrix needs a margin too."""
    objective = trained(mixing, constraint="penalty", beta=1.0, gamma=1.0, margin=0.75)
    assert not objective.collapsed()
    assert 0.1 < objective.mean_eps() < 0.2
    assert accuracy(objective) > 0.95


@every_mixing
@pytest.mark.parametrize("constraint", ["exact", "penalty"])
def test_mean_eps_is_reported_with_the_loss(mixing: str, constraint: str):
    objective = build_on_digits("mixed-cross-entropy", 100, mixing=mixing, learn=True, constraint=constraint, eps=0.3)
    assert isinstance(objective, MixedCrossEntropy)
    features, target = (part[:100] for part in digits())
    terms = objective.loss_terms(objective(features), target).terms
    torch.testing.assert_close(terms["mean_eps"], torch.tensor(0.3), rtol=1e-4, atol=0)
    torch.testing.assert_close(terms["mean_eps"], objective.mean_eps().detach())
    assert not terms["mean_eps"].requires_grad
