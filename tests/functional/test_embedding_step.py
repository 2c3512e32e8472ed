"""The terms of the label embedding network with gradients in closed form, against `embedding_terms` and autograd in float64."""

import math

import pytest
import torch
import torch.nn.functional as F

from labelkin.functional import embedding_terms
from labelkin.functional._kernels import EmbeddingOptions, embedding_with_gradients
from support.numeric import positions, values

COEFFICIENTS = (1.0, 0.7, 1.3, 2.0, 0.4)
OPTIONS = {
    "paper": EmbeddingOptions(2.0, 0.3, 1.0, absolute=False, rectified=False),
    "low rank": EmbeddingOptions(2.0, 0.3, 1.0, absolute=False, rectified=True),
    "squared": EmbeddingOptions(0.5, 0.1, 2.0, absolute=False, rectified=True),
    "power 1.5": EmbeddingOptions(1.0, 0.2, 1.5, absolute=False, rectified=False),
    "absolute": EmbeddingOptions(3.0, 0.9, 1.0, absolute=True, rectified=True),
}


def drawn(rows, classes, seed=0):
    """z1, z2, e, target and share; z2 is right for about half of the samples, and two samples do not count."""
    z1, z2, e = (values(seed + i, rows, classes) for i in range(3))
    target = positions(seed, classes, rows)
    target[::2] = z2.argmax(-1)[::2]
    share = torch.linspace(0.5, 2.0, rows, dtype=torch.float64)
    share[1:3] = 0
    return z1, z2, e, target, share


def by_autograd(z1, z2, e, target, share, options):
    """Terms, right, predicted and the three gradients of the definition, in float64."""
    lowest = torch.finfo(z1.dtype).min / 4  # masks a class in float32, but not in float64
    inputs = [part.detach().double().masked_fill(part < lowest, -math.inf).requires_grad_() for part in (z1, z2, e)]
    first, second, embedding = inputs
    found = embedding_terms(
        first, second, F.relu(embedding) if options.rectified else embedding, target,
        tau=options.tau, alpha=options.alpha, p=options.p, absolute=options.absolute,
    )  # fmt: skip
    terms = torch.stack(found[:5], -1)
    counted = torch.cat([terms[:, :4], (terms[:, 4] * found.right)[:, None]], -1)
    weights = share.double()[:, None] * torch.tensor(COEFFICIENTS, dtype=torch.float64, device=share.device)
    total = (weights * torch.where(share[:, None] > 0, counted, 0)).sum()
    return terms.detach(), found.right, first.argmax(-1), torch.autograd.grad(total, inputs)


def check(device, dtype, tolerance, given, options):
    z1, z2, e, target, share = (part.to(device) for part in given)
    z1, z2, e = (part.to(dtype) for part in (z1, z2, e))
    expected = by_autograd(z1, z2, e, target, share, options)
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    coefficients = torch.tensor(COEFFICIENTS, dtype=exact, device=device)
    found = embedding_with_gradients(z1, z2, e, target, share.to(exact), coefficients, options)
    torch.testing.assert_close(found.terms.double(), expected[0], atol=tolerance, rtol=tolerance)
    assert torch.equal(found.right, expected[1])
    assert torch.equal(found.predicted, expected[2])
    for got, wanted in zip((z1, z2, e), expected[3], strict=True):
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("classes", [1, 2, 33, 130])
def test_it_is_the_definition_by_autograd(name, classes, device):
    check(device, torch.float32, 2e-5, drawn(7, classes), OPTIONS[name])


def test_many_classes(device):
    """More than one block of columns of either size."""
    for classes in (1030, 4100):
        check(device, torch.float32, 2e-5, drawn(3, classes), OPTIONS["low rank"])


@pytest.mark.parametrize("name", OPTIONS)
def test_float64_is_exact(name):
    check("cpu", torch.float64, 1e-10, drawn(9, 12), OPTIONS[name])


def test_bfloat16_is_within_its_rounding(device):
    check(device, torch.bfloat16, 1e-2, drawn(7, 33), OPTIONS["low rank"])


def test_classes_masked_in_both_heads(device):
    z1, z2, e, target, share = drawn(6, 10)
    target = torch.tensor([0, 1, 2, 3, 4, 5])
    z1[:, 7:] = -math.inf
    z1[:, 9] = torch.finfo(torch.float32).min
    z2[:, 8:] = -math.inf
    check(device, torch.float32, 2e-5, (z1, z2, e, target, share), OPTIONS["low rank"])


def test_samples_of_weight_0_get_no_gradient_whatever_they_hold(device):
    z1, z2, e, target, share = (part.to(device) for part in drawn(4, 5))
    z1, z2, e = (part.float() for part in (z1, z2, e))
    share = torch.zeros(4, device=device)
    z1[0], z2[1] = -math.inf, -math.inf
    coefficients = torch.tensor(COEFFICIENTS, device=device)
    embedding_with_gradients(z1, z2, e, target, share, coefficients, OPTIONS["paper"])
    assert not any(part.any() for part in (z1, z2, e))


def test_the_first_of_equal_logits_is_the_answer(device):
    z = [torch.zeros(2, 2050, device=device) for _ in range(3)]
    target, share = torch.tensor([0, 1], device=device), torch.ones(2, device=device)
    found = embedding_with_gradients(
        *z, target, share, torch.tensor(COEFFICIENTS, device=device), OPTIONS["paper"]
    )  # fmt: skip
    assert found.right.tolist() == [True, False]
    assert found.predicted.tolist() == [0, 0]
