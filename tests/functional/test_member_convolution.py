"""Convolutions of many small networks at once, against `conv2d` for one after another."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from labelkin.functional import convolution_for_fleets, member_convolution
from labelkin.functional._kernels import convolution


def one_by_one(images: Tensor, weight: Tensor) -> Tensor:
    return torch.stack([F.conv2d(own, of_own, padding=1) for own, of_own in zip(images, weight, strict=True)])


def loop(images: Tensor, weight: Tensor) -> Tensor:
    """Return the sum over taps and input channels, pixel by pixel."""
    members, n, _, height, width = images.shape
    found = torch.zeros(members, n, weight.shape[1], height, width, dtype=images.dtype)
    for member in range(members):
        for y in range(height):
            for x in range(width):
                for down in range(3):
                    for right in range(3):
                        row, column = y + down - 1, x + right - 1
                        if 0 <= row < height and 0 <= column < width:
                            pixel = images[member, :, :, row, column]
                            found[member, :, :, y, x] += pixel @ weight[member, :, :, down, right].T
    return found


SHAPES = [  # members, n, inputs, outputs, height, width
    (2, 3, 1, 4, 5, 7),
    (3, 9, 4, 4, 4, 3),
    (1, 1, 3, 5, 2, 2),
    (2, 2, 16, 2, 3, 3),
    (1, 2, 1, 1, 1, 1),
]


def drawn(shape: tuple[int, ...], device: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    members, n, inputs, outputs, height, width = shape
    torch.manual_seed(sum(shape))
    images = torch.randn(members, n, inputs, height, width, device=device).to(dtype)
    weight = torch.randn(members, outputs, inputs, 3, 3, device=device).to(dtype)
    return images, weight, torch.randn(members, n, outputs, height, width, device=device).to(dtype)


def test_the_equation():
    images, weight, _ = drawn(SHAPES[1], "cpu", torch.float64)
    torch.testing.assert_close(member_convolution(images, weight), loop(images, weight))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_and_gradients_are_those_of_one_after_another(shape: tuple[int, ...], device: str):
    images, weight, slope = drawn(shape, device)
    expected = [part.double().requires_grad_() for part in (images, weight)]
    (one_by_one(*expected) * slope.double()).sum().backward()
    given = [part.clone().requires_grad_() for part in (images, weight)]
    found = member_convolution(*given)
    (found * slope).sum().backward()
    torch.testing.assert_close(found.double(), one_by_one(*expected), atol=1e-5, rtol=1e-5)
    for own, other in zip(given, expected, strict=True):
        torch.testing.assert_close(own.grad.double(), other.grad, atol=2e-5, rtol=2e-5)


def test_mixed_precision_sums_in_float32(device: str):
    images, weight, slope = drawn((2, 20, 4, 4, 6, 6), device, torch.bfloat16)
    given = [part.clone().requires_grad_() for part in (images, weight)]
    (member_convolution(*given) * slope).sum().backward()
    exact = [part.double().requires_grad_() for part in (images, weight)]
    (one_by_one(*exact) * slope.double()).sum().backward()
    for own, other in zip(given, exact, strict=True):
        assert own.grad.dtype == torch.bfloat16
        assert (own.grad.double() - other.grad).norm() < 0.01 * other.grad.norm()


def test_in_another_layout(device: str):
    images, weight, _ = drawn(SHAPES[1], device)
    images = images.transpose(0, 1).contiguous().transpose(0, 1)
    weight = weight.flip(-1).transpose(1, 2).contiguous().transpose(1, 2).flip(-1)
    torch.testing.assert_close(member_convolution(images, weight), one_by_one(images, weight), atol=1e-5, rtol=1e-5)


def test_images_without_a_gradient_get_none(monkeypatch):
    calls = []
    made = convolution._convolved
    monkeypatch.setattr(convolution, "_convolved", lambda *given: calls.append(1) or made(*given))
    images, weight, slope = drawn(SHAPES[0], "cpu")
    (member_convolution(images, weight.requires_grad_()) * slope).sum().backward()
    assert len(calls) == 1  # forward alone


@pytest.mark.parametrize("in_dims", [(0, 0), (1, 0), (None, 0), (0, None)])
def test_under_vmap_members_are_convolved_together(in_dims: tuple[int | None, ...], device: str):
    images, weight, _ = drawn((3, 4, 2, 3, 5, 5), device)
    given = [
        part[0] if place is None else part.movedim(0, place)
        for part, place in zip((images, weight), in_dims, strict=True)
    ]
    leaves = [part.clone().requires_grad_() for part in given]
    found = torch.func.vmap(convolution_for_fleets, in_dims=in_dims)(*leaves)
    others = [part.clone().requires_grad_() for part in given]
    expected = torch.func.vmap(lambda x, w: F.conv2d(x, w, padding=1), in_dims=in_dims)(*others)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    found.square().sum().backward()
    expected.square().sum().backward()
    for own, other in zip(leaves, others, strict=True):
        torch.testing.assert_close(own.grad, other.grad, atol=1e-3, rtol=1e-4)


def test_alone_it_is_an_ordinary_convolution():
    images, weight, _ = drawn((1, 3, 2, 4, 6, 5), "cpu", torch.float64)
    assert torch.autograd.gradcheck(convolution_for_fleets, (images[0].requires_grad_(), weight[0].requires_grad_()))


def test_the_gradients_by_finite_differences():
    images, weight, _ = drawn(SHAPES[0], "cpu", torch.float64)
    assert torch.autograd.gradcheck(member_convolution, (images.requires_grad_(), weight.requires_grad_()))
