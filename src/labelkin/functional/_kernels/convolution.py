"""3 x 3 convolutions of many small networks at once, each with its own weights.

They are computed by Triton on CUDA, and as grouped convolutions elsewhere.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.grad import conv2d_input, conv2d_weight

from labelkin.functional._kernels import fused

MOST_MEMBER_CHANNELS = 16  # with more, libraries use matrix units, which are faster


def has_member_convolution(images: Tensor) -> bool:
    """Return whether there is a kernel for images on this device."""
    return fused.uses_triton(images)


def member_convolution(images: Tensor, weight: Tensor) -> Tensor:
    """Convolve the images of each member with its own 3 x 3 weights, with stride 1 and zeros around the images.

    Args:
        images: (members, n, inputs, height, width) images.
        weight: (members, outputs, inputs, 3, 3) weights.

    Returns:
        (members, n, outputs, height, width) images.
    """
    found: Tensor = _MemberConvolution.apply(images, weight)  # type: ignore[no-untyped-call]
    return found


def convolution_for_fleets(images: Tensor, weight: Tensor) -> Tensor:
    """Convolve images (n, inputs, height, width) as `conv2d` does with padding 1; under `vmap`, with `member_convolution`."""
    found: Tensor = _Convolution.apply(images, weight)  # type: ignore[no-untyped-call]
    return found


class _MemberConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(images, weight)
        return _convolved(images, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_images = of_weight = None
        if ctx.needs_input_grad[0]:  # a convolution with the mirrored weights
            of_images = _convolved(gradient, weight.flip(-1, -2).transpose(1, 2))
        if ctx.needs_input_grad[1]:
            of_weight = _weight_gradient(images, gradient).to(weight.dtype)
        return of_images, of_weight


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(images: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(images, weight, padding=1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        images, weight = ctx.saved_tensors
        return (
            conv2d_input(images.shape, weight, gradients[0], padding=1),  # type: ignore[no-untyped-call]
            conv2d_weight(images, weight.shape, gradients[0], padding=1),  # type: ignore[no-untyped-call]
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], images: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        of_members = [
            given.expand(info.batch_size, *given.shape) if place is None else given.movedim(place, 0)
            for given, place in zip((images, weight), in_dims, strict=True)
        ]
        return member_convolution(*of_members), 0


def _convolved(images: Tensor, weight: Tensor) -> Tensor:
    if fused.uses_triton(images):
        from labelkin.functional._kernels import triton_convolution

        return triton_convolution.convolved(images, weight)
    joined = images.transpose(0, 1).flatten(1, 2)  # n, members x inputs
    found = F.conv2d(joined, weight.flatten(0, 1), padding=1, groups=len(images))
    return found.reshape(len(found), *weight.shape[:2], *found.shape[2:]).transpose(0, 1)


def _weight_gradient(images: Tensor, gradient: Tensor) -> Tensor:
    if fused.uses_triton(images):
        from labelkin.functional._kernels import triton_convolution

        return triton_convolution.weight_gradient(images, gradient)
    joined, slopes = images.transpose(0, 1).flatten(1, 2), gradient.transpose(0, 1).flatten(1, 2)
    shape = (slopes.shape[1], images.shape[2], 3, 3)
    found: Tensor = conv2d_weight(joined, shape, slopes, padding=1, groups=len(images))  # type: ignore[no-untyped-call]
    return found.reshape(len(images), -1, *shape[1:])
